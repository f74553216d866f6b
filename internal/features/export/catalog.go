package export

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"ledgerindexer/ledger"
)

// catalog lists what a place holds of an export.
type catalog struct {
	place   Place
	records bool // the export is of records of the transaction history, not of updates
	done    []Manifest
	left    map[string]int64 // files of an export that ended early, with their sizes
}

// load reads the manifests, in the order of their ranges, and looks for the files that they name. Those that are
// missing or were cut, a manifest that is damaged, and two that overlap, are a *ledger.Problem. The list of an object
// store may come late: what it lacks is asked for by its name, and so is the manifest of a file that it has.
func (c *catalog) load(ctx context.Context) error {
	found, err := c.place.List(ctx)
	if err != nil {
		return fmt.Errorf("list %s: %w", c.place, err)
	}
	named := map[string]bool{}
	for _, name := range manifestsOf(found) {
		m, err := c.manifest(ctx, name)
		if errors.Is(err, fs.ErrNotExist) { // it is gone, or there never was one
			continue
		}
		if err != nil {
			return err
		}
		if m.Records != c.records {
			of := map[bool]string{true: "the records of the transaction history", false: "updates"}
			return &ledger.Problem{
				What: fmt.Sprintf("%s in %s is of %s, and not of %s", name, c.place, of[m.Records], of[c.records]),
				Do:   "name another place: records are exported (`indexer export --records`) into one of their own, and not pruned",
			}
		}
		if n := len(c.done); n > 0 && m.From < c.done[n-1].To && m.Participant == c.done[n-1].Participant &&
			m.Scope == c.done[n-1].Scope {
			return &ledger.Problem{
				What: fmt.Sprintf("%s overlaps with %s in %s", m.Name(), c.done[n-1].Name(), c.place),
				Do: "remove one of the two manifests, of whose range nothing was pruned that only its files have, and export " +
					"again, which writes the offsets that are in none then",
			}
		}
		for _, file := range m.named() {
			named[file.Name] = true
			if size, listed := found[file.Name]; !listed || size != file.Bytes {
				if err := c.check(ctx, &m, file); err != nil {
					return err
				}
			}
		}
		c.done = append(c.done, m)
	}
	c.left = map[string]int64{}
	for name, size := range found {
		if _, ours := rangeOf(name); ours && !named[name] {
			c.left[name] = size
		}
	}
	return nil
}

// manifestsOf are the names of the manifests in a list, and those of the manifests that its whole files may have, in
// order.
func manifestsOf(found map[string]int64) []string {
	names := map[string]bool{}
	for name := range found {
		if strings.HasPrefix(name, manifests+"/") && strings.HasSuffix(name, ".json") {
			names[name] = true
		}
		if of, ours := rangeOf(name); ours && !strings.HasSuffix(name, part) {
			names[manifestName(of.From, of.To)] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// refuseOtherKind refuses what is of a network where a participant's is meant, and the other way round: records of both
// can be of the same network.
func (c *catalog) refuseOtherKind(network bool) error {
	i := slices.IndexFunc(c.done, func(m Manifest) bool { return m.OfNetwork != network })
	if i < 0 {
		return nil
	}
	of := map[bool]string{true: "a network", false: "a participant's database"}
	do := map[bool]string{true: "leave --network out", false: "give --network"}
	return &ledger.Problem{
		What: fmt.Sprintf("%s in %s is of %s, and not of %s", c.done[i].Name(), c.place, of[!network], of[network]),
		Do:   do[network] + ", or name another place: each has a place of its own",
	}
}

// damaged says of a file that it is not as a manifest says. An export may have written both again since the manifest
// was read.
func (c *catalog) damaged(ctx context.Context, m *Manifest, file File, what string) error {
	now, err := c.manifest(ctx, m.Name())
	if errors.Is(err, fs.ErrNotExist) || err == nil && !slices.Contains(now.named(), file) {
		return &ledger.Problem{
			What: fmt.Sprintf("%s in %s was written again while %s was read", m.Name(), c.place, file.Name),
			Do:   "run the command again when the export that writes it is done",
		}
	}
	if err != nil { // which of the two it is stays open
		return err
	}
	return &ledger.Problem{
		What: fmt.Sprintf("the file %s of the export is damaged: it %s", file.Name, what),
		Do: fmt.Sprintf("bring it back from a copy, or, if none of the updates after offset %d up to %d were pruned, "+
			"remove %s: then they are exported again",
			m.From, m.To, m.Name()),
	}
}

func (c *catalog) manifest(ctx context.Context, name string) (Manifest, error) {
	text, err := c.read(ctx, name)
	if err != nil {
		return Manifest{}, fmt.Errorf("read %s: %w", name, err)
	}
	return readManifest(name, text)
}

func (c *catalog) read(ctx context.Context, name string) ([]byte, error) {
	text := memory{most: maxManifest}
	err := c.place.Read(ctx, name, &text)
	return text.held.Bytes(), err
}

// Check reads every file, and compares its digest with the manifest's.
func (c *catalog) Check(ctx context.Context) error {
	checked := map[string]bool{} // manifests name the same packages
	for i := range c.done {
		for _, file := range c.done[i].named() {
			if err := ctx.Err(); err != nil {
				return err
			}
			if checked[file.Name] {
				continue
			}
			checked[file.Name] = true
			if err := c.check(ctx, &c.done[i], file); err != nil {
				return err
			}
		}
	}
	return nil
}

// check reads a file and compares its digest; another one than the manifest's is a *ledger.Problem.
func (c *catalog) check(ctx context.Context, m *Manifest, file File) error {
	got := counter{w: io.Discard, sum: sha256.New()}
	err := c.place.Read(ctx, file.Name, &got)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c.damaged(ctx, m, file, "is missing")
	case err != nil:
		return fmt.Errorf("read %s: %w", file.Name, err)
	case got.bytes != file.Bytes:
		return c.damaged(ctx, m, file, fmt.Sprintf("has %d bytes instead of %d", got.bytes, file.Bytes))
	case hex.EncodeToString(got.sum.Sum(nil)) != file.SHA256:
		return c.damaged(ctx, m, file, "has another SHA-256 than its manifest says")
	}
	return nil
}
