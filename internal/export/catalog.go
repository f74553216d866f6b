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

// catalog is what lies in the place of an export.
type catalog struct {
	place   Place
	records bool // it is to have records of the transaction history, in place of updates
	done    []Manifest
	left    map[string]int64 // files of an export that ended early, with their sizes
}

// load reads the manifests, in the order of their ranges, and looks for the files that they name. Those that are missing or were cut, a manifest that is damaged, and two
// that overlap, are a *ledger.Problem.
func (c *catalog) load(ctx context.Context) error {
	found, err := c.place.List(ctx)
	if err != nil {
		return fmt.Errorf("list %s: %w", c.place, err)
	}
	named := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if !strings.HasPrefix(name, manifests+"/") || !strings.HasSuffix(name, ".json") {
			continue
		}
		m, err := c.manifest(ctx, name)
		if err != nil {
			return err
		}
		if m.Records != c.records {
			of := map[bool]string{true: "the records of the transaction history", false: "updates"}
			return &ledger.Problem{
				What: fmt.Sprintf("%s in %s is of %s, and not of %s", name, c.place, of[m.Records], of[c.records]),
				Do:   "name another place: records are exported (`indexer export --records`) into one of their own, and neither imported nor pruned",
			}
		}
		if n := len(c.done); n > 0 && m.From < c.done[n-1].To && m.Participant == c.done[n-1].Participant && m.Scope == c.done[n-1].Scope {
			return &ledger.Problem{
				What: fmt.Sprintf("%s overlaps with %s in %s", m.Name(), c.done[n-1].Name(), c.place),
				Do: "remove one of the two manifests, of whose range nothing was pruned that only its files have, and export again, which writes the offsets that are in " +
					"none then",
			}
		}
		for _, file := range m.named() {
			named[file.Name] = true
			size, ok := found[file.Name]
			if !ok {
				if err := c.find(ctx, &m, file); err != nil {
					return err
				}
			} else if size != file.Bytes {
				return damaged(&m, file, fmt.Sprintf("has %d bytes instead of %d", size, file.Bytes))
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

// refuseOtherKind refuses what is of a network where a participant's is meant, and the other way round: records of both can be of the same network.
func (c *catalog) refuseOtherKind(network bool) error {
	i := slices.IndexFunc(c.done, func(m Manifest) bool { return m.OfNetwork != network })
	if i < 0 {
		return nil
	}
	of := map[bool]string{true: "a network (--network)", false: "a participant's database"}
	return &ledger.Problem{
		What: fmt.Sprintf("%s in %s is of %s, and not of %s", c.done[i].Name(), c.place, of[!network], of[network]),
		Do:   "name another place, or another pair of schemas: each has a place of its own",
	}
}

// find looks for a file that is not in the list: that of an object store may come late.
func (c *catalog) find(ctx context.Context, m *Manifest, file File) error {
	content, err := c.open(ctx, m, file)
	if err != nil {
		return err
	}
	return content.Close()
}

func damaged(m *Manifest, file File, what string) error {
	return &ledger.Problem{
		What: fmt.Sprintf("the file %s of the export is damaged: it %s", file.Name, what),
		Do: fmt.Sprintf("bring it back from a copy, or, if none of the updates after offset %d up to %d were pruned, remove %s: then they are exported again",
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
	file, err := c.place.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
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
			content, err := c.open(ctx, &c.done[i], file)
			if err != nil {
				return err
			}
			content.Close()
		}
	}
	return nil
}

// open opens a file that has the digest that its manifest says. What is open stays as it is: an export puts other files in the place of those that
// change. One that has another digest is a *ledger.Problem.
func (c *catalog) open(ctx context.Context, m *Manifest, file File) (content Content, err error) {
	content, err = c.place.Open(ctx, file.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, damaged(m, file, "is missing")
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file.Name, err)
	}
	sum := sha256.New()
	if _, err = io.Copy(sum, io.NewSectionReader(content, 0, file.Bytes)); err != nil {
		content.Close()
		return nil, fmt.Errorf("read %s: %w", file.Name, err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != file.SHA256 {
		content.Close()
		return nil, damaged(m, file, "has another SHA-256 than its manifest says")
	}
	return content, nil
}
