// Package export writes what analysts read as Parquet files, with a manifest for each range of offsets, or of records.
// It knows no SQL.
package export

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// Options say what is exported.
type Options struct {
	Through ledger.Offset // up to here; 0: up to the watermark
	Updates int64         // the most updates in a range
	Full    bool          // only verified ranges of as many updates as that
	// OfNetwork says that the database holds the updates of a network.
	OfNetwork bool
	Records   bool           // export the records of the transaction history instead of updates; offsets are their seqs
	Wrote     func(Manifest) // is called for each range that was written
}

// Open opens a place by its name: a folder, or a bucket as s3://bucket/prefix. With write it makes a folder that is
// missing.
func Open(name string, write bool) (place Place, err error) {
	if strings.HasPrefix(name, scheme) {
		place, err = openBucket(name, os.Getenv)
	} else {
		place, err = openFolder(name, write)
	}
	if err != nil {
		return nil, fmt.Errorf("open the place of the export: %w", err)
	}
	return place, nil
}

// Export is a running export. It is not safe for concurrent use.
type Export struct {
	catalog
	database  *store.Store
	options   Options
	relations []store.ExportRelation // of the analysts, as the database has them
	published bool                   // the tables show all ranges that are done
	// the watermark when the export began; an export of other than full ranges ends there. 0: not known yet
	end ledger.Offset
}

// Begin locks a place in the database and reads what was exported there. A missing or truncated file and a damaged
// manifest are a *ledger.Problem, and so is another export at work there. The caller calls unlock after the export.
func Begin(ctx context.Context, database *store.Store, place Place,
	options Options) (e *Export, unlock func(), err error) {
	locked, unlock, err := database.LockExport(ctx, place.URL())
	if err != nil {
		return nil, nil, err
	}
	e = &Export{catalog: catalog{place: lockedPlace{place, locked}, records: options.Records}, database: database,
		options: options}
	err = place.AbortUploads(ctx)
	if err == nil {
		err = e.load(ctx)
	}
	if err == nil {
		err = e.refuseOtherKind(options.OfNetwork)
	}
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return e, unlock, nil
}

// lockedPlace is a place in which nothing changes any more once its lock was lost.
type lockedPlace struct {
	Place
	locked context.Context
}

// Write: see Place.
func (l lockedPlace) Write(ctx context.Context, name string, fill func(io.Writer) error) error {
	return l.within(ctx, func(ctx context.Context) error { return l.Place.Write(ctx, name, fill) })
}

// Remove: see Place.
func (l lockedPlace) Remove(ctx context.Context, name string) error {
	return l.within(ctx, func(ctx context.Context) error { return l.Place.Remove(ctx, name) })
}

func (l lockedPlace) within(ctx context.Context, change func(context.Context) error) error {
	if l.locked.Err() != nil {
		return context.Cause(l.locked)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.locked, cancel)()
	err := change(ctx)
	return cmp.Or(context.Cause(l.locked), err)
}

// clean removes what an interrupted export left, so that no engine finds rows twice. Whole files without a manifest
// whose updates were pruned are a *ledger.Problem: their manifest may have been lost, and nothing else has these
// updates.
func (e *Export) clean(ctx context.Context, state store.ExportState) error {
	if len(e.left) == 0 {
		return nil
	}
	for name, size := range e.left {
		pruned, err := e.ofPruned(ctx, name, size, state)
		if err != nil {
			return err
		}
		if pruned {
			return &ledger.Problem{
				What: fmt.Sprintf("no manifest of %s names %s, whose updates were pruned", e.place, name),
				Do: "bring the manifest back from a copy, or remove the file if there never was one: then an export ended " +
					"before it was done",
			}
		}
	}
	if err := e.publish(ctx, e.done); err != nil { // the tables may still name them, if their manifest was removed
		return err
	}
	for name := range e.left {
		if err := e.place.Remove(ctx, name); err != nil {
			return fmt.Errorf("remove %s, which an export that ended early left in %s: %w", name, e.place, err)
		}
	}
	clear(e.left)
	return nil
}

// ofPruned reports whether a file may be all that there is of updates that were pruned. One that ends where the
// database begins may have been written since, of what is carried there: then its range has no updates.
func (e *Export) ofPruned(ctx context.Context, name string, size int64, state store.ExportState) (bool, error) {
	of, _ := rangeOf(name)
	switch {
	case strings.HasSuffix(name, part), of.From >= state.PrunedTo,
		slices.ContainsFunc(e.done, func(m Manifest) bool { return m.From == of.From && m.To == of.To }):
		return false, nil
	case of.To != state.PrunedTo:
		return true, nil
	case !strings.HasPrefix(name, "updates/"):
		return false, nil
	case size > maxEmpty:
		return true, nil
	}
	content := memory{most: maxEmpty}
	err := e.place.Read(ctx, name, &content)
	if errors.Is(err, fs.ErrNotExist) { // a list that comes late has it still
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", name, err)
	}
	parsed, err := parquet.OpenFile(bytes.NewReader(content.held.Bytes()), int64(content.held.Len()),
		parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	return err != nil || parsed.NumRows() > 0, nil // one that is damaged says nothing
}

// rangeOf is the range of which a file is, or was to become one, and whether it is such a file: where no manifest names
// it, an export ended early.
func rangeOf(name string) (of ledger.Range, ours bool) {
	base, unfinished := strings.CutSuffix(name, part)
	relation, file, _ := strings.Cut(base, "/")
	if relation == packages { // a whole one is used by the next manifest
		return of, unfinished
	}
	if relation == manifests {
		_, err := fmt.Sscanf(file, "%d-%d.json", &of.From, &of.To)
		return of, unfinished && err == nil
	}
	span, writing, _ := strings.Cut(strings.TrimSuffix(file, ".parquet"), ".")
	_, err := fmt.Sscanf(span, "%d-%d", &of.From, &of.To)
	return of, err == nil && writing != "" && base == fileName(relation, of.From, of.To, writing)
}

// Next exports the next range, in one snapshot of the database, and reports whether there was one. If the export can't
// continue, the error is a *ledger.Problem.
func (e *Export) Next(ctx context.Context) (wrote bool, err error) {
	in := e.database.Export
	if e.options.Records {
		in = e.database.ExportRecords
	}
	err = in(ctx, func(snapshot *store.ExportSnapshot) error {
		state, err := snapshot.State(ctx)
		if err != nil {
			return err
		}
		switch {
		case state.Started:
		case e.options.Full:
			return nil
		case !e.options.Records:
			return e.database.NothingIndexed(ctx, "export")
		}
		through, err := e.through(state)
		if err != nil {
			return err
		}
		if e.relations, err = snapshot.Relations(ctx); err != nil {
			return err
		}
		outdated, gap, err := plan(e.place.String(), e.done, state, through)
		if err != nil {
			return err
		}
		if err := e.clean(ctx, state); err != nil {
			return err
		}
		// After a reset, and where a history was read again, there may be nothing to put in the place of what is not in the
		// database.
		if err := e.forget(ctx, snapshot, outdated, func(m *Manifest) bool { return m.To > state.Watermark }); err != nil {
			return err
		}
		to, err := e.cut(ctx, snapshot, state, gap)
		if err != nil {
			return err
		}
		if to <= gap.From {
			wrote, err = e.addViews(ctx, snapshot, state, through)
			if err != nil || wrote || e.published {
				return err
			}
			return e.publish(ctx, e.done)
		}
		if err := e.forget(ctx, snapshot, outdated, func(m *Manifest) bool {
			return m.From < to && m.To > gap.From
		}); err != nil {
			return err
		}
		wrote = true
		return e.write(ctx, snapshot, state, gap.From, to)
	})
	return wrote, err
}

// through returns the offset up to which to export.
func (e *Export) through(state store.ExportState) (ledger.Offset, error) {
	switch {
	case !state.Started && e.options.Records:
		return 0, &ledger.Problem{
			What: "there is nothing to export: no record of the transaction history is stored, or it is being read again",
			Do: "run `indexer run` with --scan-url until it has caught up; the records of a network's updates (--network) " +
				"follow them",
		}
	case !e.options.Records && (state.Scope == "" || state.Participant == "" && state.Network == ""):
		return 0, &ledger.Problem{What: "the database does not know whose ledger it holds, or in which scope",
			Do: "run `indexer run` once"}
	case e.options.Through > state.Watermark:
		return 0, &ledger.Problem{
			What: fmt.Sprintf("the database goes up to %s %d, and --through is %d", unit(e.options.Records), state.Watermark,
				e.options.Through),
			Do: "wait until the indexer has come so far, or name a lower offset",
		}
	}
	through := state.Watermark
	if e.options.Through > 0 {
		through = e.options.Through
	}
	if e.options.Full {
		return min(through, state.Verified), nil
	}
	if e.end == 0 {
		e.end = state.Watermark
	}
	return min(through, e.end), nil // else an export beside a busy indexer would write small ranges without end
}

// cut returns where the next range ends. What is carried from below the history floor is a range of its own.
func (e *Export) cut(ctx context.Context, snapshot *store.ExportSnapshot, state store.ExportState,
	gap ledger.Range) (ledger.Offset, error) {
	if gap.From == 0 && state.HistoryFloor > 0 && gap.To >= state.HistoryFloor {
		return state.HistoryFloor, nil
	}
	if gap.To <= gap.From {
		return 0, nil
	}
	at, err := snapshot.Cut(ctx, gap.From, gap.To, e.options.Updates)
	if err != nil || at > 0 {
		return at, err
	}
	last := !slices.ContainsFunc(e.done, func(m Manifest) bool { return m.To > gap.From })
	if e.options.Full && last {
		return 0, nil
	}
	return gap.To, nil
}

// forget removes outdated ranges, those that which returns true for: from the tables first, then the manifest of each,
// then its files. Where the snapshot is lost what is left of them stays: pruning, which waits for the snapshot, may
// have relied on these files since.
func (e *Export) forget(ctx context.Context, snapshot *store.ExportSnapshot, outdated []Manifest,
	which func(*Manifest) bool) error {
	going := slices.DeleteFunc(slices.Clone(outdated), func(m Manifest) bool { return !which(&m) })
	left := slices.DeleteFunc(slices.Clone(e.done), func(m Manifest) bool { return among(going, m) })
	if len(left) == len(e.done) {
		return nil
	}
	if err := e.publish(ctx, left); err != nil {
		return err
	}
	for i := range going {
		names := []string{going[i].Name()}
		for _, file := range going[i].Files {
			names = append(names, file.Name)
		}
		for _, name := range names {
			if err := snapshot.Lasts(ctx); err != nil {
				return err
			}
			if err := e.place.Remove(ctx, name); err != nil {
				return fmt.Errorf("remove %s, whose rows have changed: %w", name, err)
			}
		}
	}
	e.done = left
	return nil
}

// write writes the files of a range, and then its manifest.
func (e *Export) write(ctx context.Context, snapshot *store.ExportSnapshot, state store.ExportState,
	from, to ledger.Offset) error {
	m := Manifest{
		Format: format, Participant: state.Participant, Network: state.Network,
		Scope: state.Scope, ScopeDefinition: state.ScopeDefinition, SchemaVersion: state.SchemaVersion,
		From: from, To: to, CompleteFrom: max(from, state.HistoryFloor), StateFrom: state.StateFloor,
		Narrowed: state.ChangedTo != "", OfNetwork: e.options.OfNetwork, Records: state.Records, PrunedTo: state.PrunedTo,
		Change: newest(state).Number, ChangedAt: newest(state).At,
	}
	var err error
	if m.Packages, err = e.writePackages(ctx, snapshot); err != nil {
		return err
	}
	if m.Seals, err = snapshot.Seals(ctx, from, to); err != nil {
		return err
	}
	if m.Files, err = e.writeRelations(ctx, snapshot, e.relations, from, to); err != nil {
		return err
	}
	if err := e.writeManifest(ctx, m); err != nil {
		return err
	}
	e.done = append(e.done, m)
	return nil
}

// addViews writes the typed views that the first range lacks, or of which it lacks columns, and then its manifest, in
// the place of the one before. The other files stay: only where rows changed in the database is a range ever removed,
// which pruning relies on.
func (e *Export) addViews(ctx context.Context, snapshot *store.ExportSnapshot, state store.ExportState,
	through ledger.Offset) (wrote bool, err error) {
	lacking := func(m *Manifest) []store.ExportRelation {
		return slices.DeleteFunc(slices.Clone(e.relations), func(r store.ExportRelation) bool { return !m.lacks(r) })
	}
	n := slices.IndexFunc(e.done, func(m Manifest) bool {
		return m.To <= through && state.HistoryFloor <= m.CompleteFrom && len(lacking(&m)) > 0
	})
	if n < 0 {
		return false, nil
	}
	m, views := e.done[n], lacking(&e.done[n])
	m.Files = slices.DeleteFunc(slices.Clone(m.Files), func(file File) bool {
		return slices.ContainsFunc(views, func(r store.ExportRelation) bool { return r.Name == file.Relation })
	})
	// else the files with fewer columns go first, so that no engine finds rows twice
	if len(m.Files) == len(e.done[n].Files) {
		files, err := e.writeRelations(ctx, snapshot, views, m.From, m.To)
		if err != nil {
			return false, err
		}
		m.Files = append(m.Files, files...)
	}
	if err := e.writeManifest(ctx, m); err != nil {
		return false, err
	}
	for _, file := range e.done[n].Files {
		if !slices.Contains(m.Files, file) {
			e.left[file.Name] = file.Bytes
		}
	}
	e.done[n] = m
	return true, nil
}

func (e *Export) writeRelations(ctx context.Context, snapshot *store.ExportSnapshot, relations []store.ExportRelation,
	from, to ledger.Offset) (files []File, err error) {
	writing := strings.ToLower(rand.Text()[:8])
	for _, relation := range relations {
		name := fileName(relation.Name, from, to, writing)
		file, err := e.writeRelation(ctx, snapshot, relation, name, from, to)
		if err != nil {
			return nil, fmt.Errorf("write %s in %s: %w", name, e.place, err)
		}
		files = append(files, file)
	}
	return files, nil
}

func (e *Export) writeManifest(ctx context.Context, m Manifest) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = e.place.Write(ctx, m.Name(), func(w io.Writer) error {
			_, err := w.Write(append(text, '\n'))
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("write %s in %s: %w", m.Name(), e.place, err)
	}
	e.published = false
	e.options.Wrote(m)
	return nil
}

func (e *Export) writeRelation(ctx context.Context, snapshot *store.ExportSnapshot, relation store.ExportRelation,
	name string, from, to ledger.Offset) (File, error) {
	file := File{Relation: relation.Name, Name: name, Of: relation.Of, Columns: columnsOf(relation)}
	err := e.place.Write(ctx, file.Name, func(w io.Writer) error {
		counted := counter{w: w, sum: sha256.New()}
		out := newParquetWriter(&counted, relation)
		if err := snapshot.Rows(ctx, relation, from, to, out.write); err != nil {
			return err
		}
		if err := out.close(); err != nil {
			return err
		}
		file.Rows, file.Bytes, file.SHA256 = out.rows, counted.bytes, hex.EncodeToString(counted.sum.Sum(nil))
		return nil
	})
	return file, err
}

// writePackages writes the stored packages that no manifest names yet, and returns the files of all stored ones. It
// leaves out a damaged package, whose id is not the SHA-256 of its content.
func (e *Export) writePackages(ctx context.Context, snapshot *store.ExportSnapshot) ([]File, error) {
	ids, err := snapshot.Packages(ctx)
	if err != nil {
		return nil, err
	}
	written := map[string]File{}
	for i := range e.done {
		for _, file := range e.done[i].Packages {
			written[file.SHA256] = file
		}
	}
	files := []File{}
	for _, id := range ids {
		file, there := written[id]
		if there {
			files = append(files, file)
			continue
		}
		file = File{Relation: packages, Name: packages + "/" + id, SHA256: id, Rows: 1}
		content, err := snapshot.PackageContent(ctx, id)
		if sum := sha256.Sum256(content); err == nil && hex.EncodeToString(sum[:]) != id {
			continue
		}
		if err == nil {
			file.Bytes = int64(len(content))
			err = e.place.Write(ctx, file.Name, func(w io.Writer) error {
				_, err := w.Write(content)
				return err
			})
		}
		if err != nil {
			return nil, fmt.Errorf("write %s in %s: %w", file.Name, e.place, err)
		}
		files = append(files, file)
	}
	return files, nil
}

// counter counts and digests what is written.
type counter struct {
	w     io.Writer
	bytes int64
	sum   hash.Hash
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.bytes += int64(n)
	c.sum.Write(p[:n])
	return n, err
}
