package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/tables"
)

// historyClaims is what a database says of its transaction history beside the records: the position and the checkpoint.
type historyClaims struct {
	there      bool // the position's row
	position   dbsqlc.HistoryPositionPutParams
	checkpoint historyCheckpoint
}

type historyCheckpoint struct {
	there   bool
	offset  *int64
	eventID *string
}

// claims reads what is claimed, and works out what would be right: where it can't be known it is what is claimed. surplus
// says that there are sightings although the history is not being read again.
//
// How far the history was read is told three times: by the position's last_seq, by its window, and by the last record. What
// two of them tell is right.
func (s *Store) claims(ctx context.Context, tx pgx.Tx) (stored, wanted historyClaims, surplus bool, err error) {
	row, err := s.queries.HistoryClaims(ctx, tx, StreamTransactions)
	if err != nil {
		return stored, wanted, false, fmt.Errorf("read how far the transaction history has been read: %w", err)
	}
	stored.checkpoint = historyCheckpoint{there: row.HasCheckpoint, offset: row.LedgerOffset, eventID: row.EventID}
	if row.Revision != nil {
		stored.there = true
		stored.position = dbsqlc.HistoryPositionPutParams{
			Revision: *row.Revision, LastSeq: *row.LastSeq, WindowSeqs: row.WindowSeqs, OrderedFrom: *row.OrderedFrom, Rereading: *row.Rereading,
		}
	}
	wanted = historyClaims{there: true, position: stored.position, checkpoint: stored.checkpoint}
	p := &wanted.position
	if !stored.there {
		// Greater than any that a writer remembers: each of its revisions stored a record, or belongs to a reading again.
		p.Revision, p.OrderedFrom = 2*row.Newest+1, 1
	}
	newest := slices.Max(append([]int64{0}, p.WindowSeqs...))
	if p.LastSeq != row.Newest && (newest != p.LastSeq || !stored.there) {
		p.LastSeq = row.Newest
	}
	if p.LastSeq > 0 {
		p.Revision = max(p.Revision, 1)
	}
	inWindow := len(p.WindowSeqs) > 0 && row.WindowSightings == int64(len(p.WindowSeqs))
	switch {
	case p.Rereading && row.Sightings == 0 && len(p.WindowSeqs) > 0:
		p.Rereading = false
	case !p.Rereading && row.Sightings > 0 && inWindow:
		p.Rereading = true
	}
	switch unordered := p.LastSeq + 1; {
	case p.Rereading || p.OrderedFrom > unordered && row.AnyGone:
		p.OrderedFrom = unordered
	case p.OrderedFrom < 1 || p.OrderedFrom > unordered:
		p.OrderedFrom = 1
	}
	if err := s.wantedWindow(ctx, tx, &wanted); err != nil {
		return stored, wanted, false, err
	}
	return stored, wanted, !p.Rereading && row.Sightings > 0, nil
}

// wantedWindow works out the window of a position, as nextWindow makes it, and the checkpoint that it implies.
func (s *Store) wantedWindow(ctx context.Context, tx pgx.Tx, wanted *historyClaims) error {
	p := &wanted.position
	first := max(1, p.OrderedFrom, p.LastSeq-windowLimit+1)
	head, tail := p.WindowSeqs, []int64(nil)
	for seq := first; seq <= p.LastSeq; seq++ {
		tail = append(tail, seq)
	}
	if n := slices.IndexFunc(head, func(seq int64) bool { return seq >= p.OrderedFrom }); n >= 0 {
		head = head[:n] // in another order than seq's
	}
	records, err := s.findRecords(ctx, tx, nil, slices.Concat(head, tail))
	if err != nil {
		return err
	}
	bySeq := make(map[int64]ledger.StoredRecord, len(records))
	ids := make([]string, len(records))
	for i, record := range records {
		bySeq[record.Seq], ids[i] = record, record.EventID
	}
	met := map[int64]bool{}
	head = slices.DeleteFunc(slices.Clone(head), func(seq int64) bool {
		bad := seq < 1 || seq > p.LastSeq || met[seq]
		met[seq] = true
		return bad
	})
	shown, err := s.countShown(ctx, tx, ids)
	if err != nil {
		return err
	}
	cursor := func(window []int64) int {
		for i, seq := range slices.Backward(window) {
			if record, ok := bySeq[seq]; ok && shown[record.EventID] == 1 {
				return i
			}
		}
		return -1
	}
	window := slices.Concat(head, tail)
	window = window[max(0, len(window)-windowLimit):]
	if len(head) == 0 && len(window) > 0 {
		window = window[max(0, min(cursor(window), len(window)-windowSize)):]
	}
	if len(window) == 0 && p.LastSeq > 0 && !p.Rereading && len(p.WindowSeqs) > 0 {
		p.Rereading = true // nothing else can tell where it was read to
	}
	p.WindowSeqs = window
	if p.LastSeq == 0 && p.Revision == 0 {
		wanted.checkpoint = historyCheckpoint{}
		return nil
	}
	i := cursor(window)
	for _, seq := range window[i+1:] {
		if _, ok := bySeq[seq]; !ok { // it may be the one
			return nil
		}
	}
	wanted.checkpoint = historyCheckpoint{there: true}
	if i >= 0 {
		id := bySeq[window[i]].EventID
		wanted.checkpoint.eventID = &id
	}
	return nil
}

// ComparePosition compares what is claimed of the transaction history with its records, and the tables of the records with
// one another: that seq has no gaps, that the position and the checkpoint are where the records end, that each record has
// its rows in the tables of its kind, and that no row belongs to no record. Everything is read in one snapshot.
//
// step is told what is compared next; found of every difference, an error of its ends the comparison.
func (s *Store) ComparePosition(ctx context.Context, step func(what string), found func(ledger.Difference) error) error {
	derived := func(d ledger.Difference) error {
		d.Derived = true
		return found(d)
	}
	return s.readOnly(ctx, func(tx pgx.Tx) error {
		step("the position in the transaction history")
		stored, wanted, surplus, err := s.claims(ctx, tx)
		if err != nil {
			return err
		}
		if err := compareClaims(&stored, &wanted, derived); err != nil {
			return err
		}
		elsewhere, err := s.queries.HistoryCheckpointsElsewhere(ctx, tx, checkpointStreams)
		if err != nil {
			return fmt.Errorf("read the checkpoints: %w", err)
		}
		for _, stream := range elsewhere {
			if err := derived(ledger.Difference{Kind: ledger.Extra, Relation: "checkpoints", Row: "stream " + stream}); err != nil {
				return err
			}
		}
		last := wanted.position.LastSeq
		if err := s.compareSeqs(ctx, tx, last, derived); err != nil {
			return err
		}
		if err := s.compareGone(ctx, tx, &wanted.position, derived); err != nil {
			return err
		}
		for _, check := range recordChecks(surplus) {
			step("the transaction history with itself: " + check.relation)
			if err := check.compare(ctx, tx, last, derived); err != nil {
				return fmt.Errorf("compare %s with the records of the transaction history: %w", check.relation, err)
			}
		}
		return nil
	})
}

// compareClaims names the columns that should be others.
func compareClaims(stored, wanted *historyClaims, found func(ledger.Difference) error) error {
	if !stored.there {
		if err := found(ledger.Difference{Kind: ledger.Missing, Relation: "history_position"}); err != nil {
			return err
		}
		stored.position = wanted.position
	}
	a, b := &stored.position, &wanted.position
	list := []columnPair{
		{"revision", textOfNumber(&a.Revision), textOfNumber(&b.Revision)}, {"last_seq", textOfNumber(&a.LastSeq), textOfNumber(&b.LastSeq)},
		{"window_seqs", textSeqs(a.WindowSeqs), textSeqs(b.WindowSeqs)}, {"ordered_from", textOfNumber(&a.OrderedFrom), textOfNumber(&b.OrderedFrom)},
		{"rereading", textBool(a.Rereading), textBool(b.Rereading)},
	}
	if err := compareColumns("history_position", "", list, found); err != nil {
		return err
	}
	const row = "stream " + StreamTransactions
	x, y := &stored.checkpoint, &wanted.checkpoint
	switch {
	case !x.there && y.there:
		return found(ledger.Difference{Kind: ledger.Missing, Relation: "checkpoints", Row: row})
	case x.there && !y.there:
		return found(ledger.Difference{Kind: ledger.Extra, Relation: "checkpoints", Row: row})
	}
	return compareColumns("checkpoints", row, []columnPair{
		{"ledger_offset", textOfNumber(x.offset), textOfNumber(y.offset)}, {"event_id", x.eventID, y.eventID},
	}, found)
}

// checkpointStreams are the streams that have a checkpoint.
var checkpointStreams = []string{StreamUpdates, StreamTransactions}

// columnPair is a column's value as it is stored, and as it should be.
type columnPair struct {
	name           string
	stored, wanted *string
}

func compareColumns(relation, row string, list []columnPair, found func(ledger.Difference) error) error {
	for _, c := range list {
		if ledger.Quoted(c.stored) == ledger.Quoted(c.wanted) {
			continue
		}
		d := ledger.Difference{Kind: ledger.Altered, Relation: relation, Row: row, Column: c.name, Wanted: c.wanted, Stored: c.stored}
		if err := found(d); err != nil {
			return err
		}
	}
	return nil
}

func textBool(b bool) *string {
	text := strconv.FormatBool(b)
	return &text
}

func textSeqs(seqs []int64) *string {
	list := make([]string, len(seqs))
	for i, seq := range seqs {
		list[i] = strconv.FormatInt(seq, 10)
	}
	text := "{" + strings.Join(list, ",") + "}"
	return &text
}

// mostHoles is how many gaps in seq are looked at in one comparison.
const mostHoles = 100_000

// compareSeqs looks for gaps in seq, and for records outside of what is claimed.
func (s *Store) compareSeqs(ctx context.Context, tx pgx.Tx, last int64, found func(ledger.Difference) error) error {
	outside, err := s.queries.HistoryOutside(ctx, tx, last)
	if err != nil {
		return fmt.Errorf("look for records of the transaction history that its position does not claim: %w", err)
	}
	for _, seq := range outside {
		if err := found(ledger.Difference{Kind: ledger.Extra, Relation: "transactions", Seq: seq}); err != nil {
			return err
		}
	}
	holes, err := s.queries.HistoryHoles(ctx, tx, dbsqlc.HistoryHolesParams{LastSeq: last, Most: mostHoles})
	if err != nil {
		return fmt.Errorf("look for gaps in seq: %w", err)
	}
	for _, hole := range holes {
		for seq := hole.After + 1; seq < hole.Before; seq++ {
			if err := found(ledger.Difference{Kind: ledger.Missing, Relation: "transactions", Seq: seq}); err != nil {
				return err
			}
		}
	}
	return nil
}

// compareGone looks for records that are marked as gone although the history was read up to them.
func (s *Store) compareGone(ctx context.Context, tx pgx.Tx, p *dbsqlc.HistoryPositionPutParams, found func(ledger.Difference) error) error {
	if p.Rereading { // the marks are those of the last reading
		return nil
	}
	gone, err := s.queries.HistoryGoneAmong(ctx, tx, p.WindowSeqs)
	if err != nil {
		return fmt.Errorf("look for the last records among those that are gone: %w", err)
	}
	for _, seq := range gone {
		if err := found(ledger.Difference{Kind: ledger.Extra, Relation: "history_gone", Seq: seq}); err != nil {
			return err
		}
	}
	return nil
}

// recordCheck finds rows of a table that contradict indexer.transactions. Its query has $1 for the last seq and gives the
// seqs, NULL where a row has none.
type recordCheck struct {
	relation string
	kind     ledger.Disagreement
	sql      string
}

// stray are the rows of a table that belong to no record, but for those of a record that is missing itself.
const stray = `(s.seq IS NULL OR s.seq < 1 OR s.seq > $1::bigint) AND NOT EXISTS (SELECT FROM indexer.transactions t WHERE t.seq = s.seq)`

// strayRows is a condition on the stray rows s of a table; surplus says that no record should have been met again.
func strayRows(table *tables.Table, surplus bool) string {
	if table.Name == "history_sightings" && surplus {
		return "true OR $1::bigint IS NULL"
	}
	return table.Rows(stray)
}

// recordChecks lists the checks; surplus says that no record should have been met again.
func recordChecks(surplus bool) []recordCheck {
	var checks []recordCheck
	add := func(relation string, kind ledger.Disagreement, sql string) {
		checks = append(checks, recordCheck{relation, kind, sql})
	}
	for _, table := range tables.In(tables.Records, tables.Marks) {
		if table.Name != "transactions" { // see compareSeqs
			add(table.Name, ledger.Extra, `SELECT s.seq FROM `+table.SQL()+` s WHERE `+strayRows(&table, surplus)+` ORDER BY s.seq`)
		}
	}
	for _, table := range tables.In(tables.Records) {
		if table.Kind != "" {
			add(table.Name, ledger.Missing, `SELECT t.seq FROM indexer.transactions t WHERE t.seq BETWEEN 1 AND $1::bigint AND t.kind = '`+string(table.Kind)+`'
    AND NOT EXISTS (SELECT FROM `+table.SQL()+` x WHERE x.seq = t.seq) ORDER BY t.seq`)
			add(table.Name, ledger.Extra, `SELECT t.seq FROM indexer.transactions t JOIN `+table.SQL()+` x ON x.seq = t.seq
    WHERE t.seq BETWEEN 1 AND $1::bigint AND t.kind <> '`+string(table.Kind)+`' ORDER BY t.seq`)
		}
		if table.Count == "" {
			continue
		}
		for kind, sign := range map[ledger.Disagreement]string{ledger.Missing: "<", ledger.Extra: ">"} {
			add(table.Name, kind, `SELECT coalesce(t.seq, x.seq) AS seq
    FROM indexer.transfers t
    FULL JOIN (SELECT i.seq, count(*) AS rows FROM `+table.SQL()+` i GROUP BY i.seq) x ON x.seq = t.seq
    WHERE coalesce(x.rows, 0) `+sign+` coalesce(t.`+table.Count+`, 0) AND EXISTS (SELECT FROM indexer.transactions r WHERE r.seq = coalesce(t.seq, x.seq))
      AND coalesce(t.seq, x.seq) <= $1::bigint ORDER BY 1`)
		}
	}
	slices.SortStableFunc(checks, func(a, b recordCheck) int { return strings.Compare(a.relation+a.sql, b.relation+b.sql) })
	return checks
}

func (c *recordCheck) compare(ctx context.Context, tx pgx.Tx, last int64, found func(ledger.Difference) error) error {
	rows, err := tx.Query(ctx, c.sql, last)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var seq *int64
		if err := rows.Scan(&seq); err != nil {
			return err
		}
		d := ledger.Difference{Kind: c.kind, Relation: c.relation}
		if seq != nil {
			d.Seq = *seq
		}
		if err := found(d); err != nil {
			return err
		}
	}
	return rows.Err()
}
