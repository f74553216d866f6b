package export

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"

	"github.com/parquet-go/parquet-go"

	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// Held says how much of a database the files of an export hold.
type Held struct {
	To  ledger.Offset // the end of a range: the files hold everything that the database shows up to here
	Why string        // why that is less than was asked for, with the file; empty: it is not less
	// Behind says that an export that runs would have written more: of what was asked for and is not exported there is as much as its largest range has.
	Behind bool
	// Compared is the end of the last range of which files were compared, and Change the number of the newest change (ledger.rewrites) before. As long as
	// nothing up to there changes after that, no export removes these files.
	Compared ledger.Offset
	Change   int64
}

// Reaches says how far an export reaches by its manifests, up to an offset. It compares no files: see Holds, which has the same limits and errors.
func Reaches(ctx context.Context, database *store.Store, place Place, ofNetwork bool, upTo ledger.Offset) (Held, error) {
	_, held, err := reach(ctx, database, place, ofNetwork, upTo)
	return held, err
}

// Holds compares the files of an export with a database, range by range up to an offset, 0 being as far as something stays in the database: each file must
// be as it was written, and have the rows that the database still has of its range. A range that goes on behind the offset is left out: of one that was pruned in part
// no export could write again what changes in the rest. Files of what was pruned completely are not read; they only have to exist. Errors are a *ledger.Problem if an export could not continue there, a
// range has changed since, or a file has other rows. A database that can't be pruned yet returns an empty Held.
func Holds(ctx context.Context, database *store.Store, place Place, ofNetwork bool, upTo ledger.Offset) (Held, error) {
	compared, held, err := reach(ctx, database, place, ofNetwork, upTo)
	if err != nil {
		return held, err
	}
	floor := compared.state.HistoryFloor
	for n := range compared.done {
		m := &compared.done[n]
		if m.From >= held.To {
			break
		}
		if m.To < floor {
			continue
		}
		within := ledger.Range{From: m.From, To: m.To}
		if floor > m.CompleteFrom { // a part was pruned since
			within.From = floor
		}
		if err := compared.holds(ctx, m, within); err != nil {
			return held, err
		}
		held.Compared = m.To
	}
	return held, nil
}

// reach is Reaches, with what is needed to compare the files.
func reach(ctx context.Context, database *store.Store, place Place, ofNetwork bool, upTo ledger.Offset) (compared comparison, held Held, err error) {
	c := catalog{place: place}
	if err := c.load(ctx); err != nil {
		return compared, held, err
	}
	if err := c.refuseOtherKind(ofNetwork); err != nil {
		return compared, held, err
	}
	compared = comparison{catalog: &c, database: database}
	err = database.Export(ctx, func(snapshot *store.ExportSnapshot) (err error) {
		if compared.state, err = snapshot.State(ctx); err != nil || !compared.state.Started || compared.state.Incomplete {
			return err
		}
		if compared.relations, err = snapshot.Relations(ctx); err != nil {
			return err
		}
		compared.relations = slices.DeleteFunc(compared.relations, func(r store.ExportRelation) bool { return r.Computed })
		held, err = reachOf(ctx, snapshot, &c, compared.state, upTo)
		return err
	})
	return compared, held, err
}

func reachOf(ctx context.Context, snapshot *store.ExportSnapshot, c *catalog, state store.ExportState, upTo ledger.Offset) (held Held, err error) {
	end := "there is more of it than was asked for"
	if upTo == 0 {
		upTo, end = state.Watermark-1, "something has to stay"
	}
	outdated, gap, err := plan(c.place.String(), c.done, state, upTo)
	if err != nil {
		return held, err
	}
	held = Held{To: min(gap.From, upTo), Change: newest(state).Number}
	if n := slices.IndexFunc(outdated, func(m Manifest) bool { return m.From < upTo }); n >= 0 {
		return held, &ledger.Problem{
			What: fmt.Sprintf("the updates of %s in %s were %s after they had been exported", outdated[n].Name(), c.place, changedSince(&outdated[n], state).Reason),
			Do:   "run `indexer export`, which writes them again, and prune then",
		}
	}
	if held.To < upTo {
		held.Why = fmt.Sprintf("no manifest in %s has what is after offset %d", c.place, held.To)
		full, err := snapshot.Cut(ctx, held.To, upTo, c.largestRange())
		if err != nil {
			return held, err
		}
		held.Behind = full > 0
	}
	for n := range c.done {
		if m := &c.done[n]; m.From < held.To && m.To > held.To {
			held.To, held.Why = m.From, fmt.Sprintf("%s in %s goes up to offset %d: a range is pruned as a whole, and %s", m.Name(), c.place, m.To, end)
		}
	}
	return held, nil
}

// largestRange returns the number of updates in the range that has the most; 1 where there is no range.
func (c *catalog) largestRange() int64 {
	most := int64(1)
	for n := range c.done {
		if file, err := c.done[n].file("updates"); err == nil {
			most = max(most, file.Rows)
		}
	}
	return most
}

// comparison compares files with a database.
type comparison struct {
	*catalog
	database  *store.Store
	relations []store.ExportRelation
	state     store.ExportState // when it began
}

// holds compares the files of one manifest.
func (c *comparison) holds(ctx context.Context, m *Manifest, within ledger.Range) error {
	for _, file := range m.Files {
		if err := c.holdsFile(ctx, m, file, within); err != nil {
			return err
		}
	}
	for _, relation := range c.relations {
		if _, err := m.file(relation.Name); err != nil {
			return err
		}
	}
	return nil
}

// holdsFile compares a file with its digest and, if it is of one of the analysts' relations, its rows with those of the database. The rows
// of other files, which are computed or for imports, follow from the same tables, except offset checkpoints. It reads the file first, which
// may take long, so that no transaction stays open meanwhile.
func (c *comparison) holdsFile(ctx context.Context, m *Manifest, file File, within ledger.Range) error {
	content, err := c.open(ctx, m, file)
	if err != nil {
		return err
	}
	defer content.Close()
	n := slices.IndexFunc(c.relations, func(r store.ExportRelation) bool { return r.Name == file.Relation })
	if n < 0 {
		return nil
	}
	var exported rowSum
	if err := exported.addFile(content, file, c.relations[n].Place, within); err != nil {
		return fmt.Errorf("read %s: %w", file.Name, err)
	}
	return c.database.Export(ctx, func(snapshot *store.ExportSnapshot) error {
		stored, err := sumOf(ctx, snapshot, c.relations[n], within)
		if err != nil || stored.sum == exported.sum && stored.rows == exported.rows {
			return err
		}
		now, err := snapshot.State(ctx)
		if err != nil {
			return err
		}
		if now.HistoryFloor != c.state.HistoryFloor || newest(now).Number != newest(c.state).Number {
			return &ledger.Problem{
				What: fmt.Sprintf("the database changed while it was compared with %s in %s: it was pruned, or rows were written again", file.Name, c.place),
				Do:   "run it again, after `indexer export` where rows were written again",
			}
		}
		return &ledger.Problem{
			What: fmt.Sprintf("after offset %d up to %d %s in %s has %d rows, and the database %d, or others, though no change was noted",
				within.From, within.To, file.Name, c.place, exported.rows, stored.rows),
			Do: fmt.Sprintf("see which is right (`indexer verify`), then remove %s if nothing of its range was pruned, and export again", m.Name()),
		}
	})
}

// sumOf returns the sum of a relation's rows in a range of the database.
func sumOf(ctx context.Context, snapshot *store.ExportSnapshot, relation store.ExportRelation, within ledger.Range) (sum rowSum, err error) {
	name := func(n int) string { return relation.Columns[n].Name }
	var values []parquet.Value
	err = snapshot.Rows(ctx, relation, within.From, within.To, func(row [][]byte) (err error) {
		values = values[:0]
		for n, column := range relation.Columns {
			if values, err = appendValues(values, column, row[n], n); err != nil {
				return fmt.Errorf("column %s: %w", column.Name, err)
			}
		}
		sum.add(values, name)
		return nil
	})
	return sum, err
}

// rowSum is a digest of rows that does not depend on their order: the sum of their SHA-256. NULL counts nothing, so a column that a later
// release adds, and leaves NULL in existing rows, does not change it.
type rowSum struct {
	rows int64
	sum  [4]uint64
	text []byte
}

func (s *rowSum) add(row []parquet.Value, name func(column int) string) {
	s.text = s.text[:0]
	for _, value := range row {
		if value.DefinitionLevel() == 0 {
			continue
		}
		s.text = append(append(s.text, name(value.Column())...), 0, byte(value.RepetitionLevel()), byte(value.DefinitionLevel()))
		at := len(s.text)
		s.text = value.AppendBytes(append(s.text, make([]byte, 8)...))
		binary.LittleEndian.PutUint64(s.text[at:], uint64(len(s.text)-at-8))
	}
	digest, carry := sha256.Sum256(s.text), uint64(0)
	for n := range s.sum {
		s.sum[n], carry = bits.Add64(s.sum[n], binary.LittleEndian.Uint64(digest[8*n:]), carry)
	}
	s.rows++
}

// addFile adds the rows of a file that lie in a range.
func (s *rowSum) addFile(content Content, file File, place string, within ledger.Range) error {
	parsed, err := parquet.OpenFile(content, file.Bytes, parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true), parquet.ReadBufferSize(64<<10))
	if err != nil {
		return err
	}
	leaf, ok := parsed.Schema().Lookup(place)
	if !ok {
		return fmt.Errorf("it has no column %s", place)
	}
	columns := parsed.Schema().Columns()
	for _, group := range parsed.RowGroups() {
		if err := s.addGroup(group, leaf.ColumnIndex, columns, within); err != nil {
			return err
		}
	}
	return nil
}

func (s *rowSum) addGroup(group parquet.RowGroup, place int, columns [][]string, within ledger.Range) error {
	rows := group.Rows()
	defer rows.Close()
	buffer := make([]parquet.Row, 64)
	for {
		n, err := rows.ReadRows(buffer)
		for _, row := range buffer[:n] {
			at := slices.IndexFunc(row, func(v parquet.Value) bool { return v.Column() == place })
			if offset := ledger.Offset(row[at].Int64()); offset > within.From && offset <= within.To {
				s.add(row, func(n int) string { return columns[n][0] })
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
