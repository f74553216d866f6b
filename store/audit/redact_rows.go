package audit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/amulets"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/redacted"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/tables"
)

// findTargets finds the content that a redaction erases. For something unknown or active the error is a
// *ledger.Problem.
func (s *Stored) findTargets(ctx context.Context, tx pgx.Tx, what Redaction) (*redactionTargets, error) {
	extent, err := bounds.Read(ctx, tx)
	if err != nil {
		return nil, err
	}
	unknown := &ledger.Problem{
		What: fmt.Sprintf("database %s knows no %s", s.db.Address(), what),
		Do: "check the id, and whether it is in this pair of schemas (--network, --tables-schema): only what is stored " +
			"and shown can be redacted",
	}
	if !extent.Started || !rows.TextHolds(what.ContractID+what.UpdateID) {
		return nil, unknown
	}
	t := &redactionTargets{changed: map[string][]int64{}}
	t.report.Contracts = []string{what.ContractID}
	var updates []string
	offsets := []int64{}
	if what.UpdateID != "" {
		updates = []string{what.UpdateID}
		if offsets, err = queries.RedactionUpdates(ctx, tx, what.UpdateID); err != nil {
			return nil, fmt.Errorf("look for an update by its id: %w", err)
		}
		if len(offsets) == 0 {
			return nil, unknown
		}
		for _, offset := range offsets {
			t.report.Offsets = append(t.report.Offsets, ledger.Offset(offset))
		}
		if t.report.Contracts, err = queries.RedactionCreated(ctx, tx, offsets); err != nil {
			return nil, fmt.Errorf("look for the contracts that the update created: %w", err)
		}
	}
	if t.report.Before, err = s.redactedBefore(ctx, tx, what); err != nil {
		return nil, err
	}
	if err := s.refuseActive(ctx, tx, t.report.Contracts, what, unknown); err != nil {
		return nil, err
	}
	if err := t.findEvents(ctx, tx); err != nil {
		return nil, fmt.Errorf("look for the events of the contracts: %w", err)
	}
	unread, err := queries.RedactionUnknown(ctx, tx, t.report.Contracts)
	if err != nil {
		return nil, fmt.Errorf("look for elements of unknown kinds that name the contracts: %w", err)
	}
	var elements places
	for _, e := range unread {
		elements.add(e.LedgerOffset, e.Ordinal)
	}
	said := []string{}
	if what.Derived {
		if said, err = t.findRecords(ctx, tx, updates, slices.Concat(offsets, t.events.offsets)); err != nil {
			return nil, err
		}
	}
	if t.seqs, err = queries.RedactionRecords(ctx, tx, dbsqlc.RedactionRecordsParams{UpdateIds: updates, EventIds: said,
		ContractIds: t.report.Contracts}); err != nil {
		return nil, fmt.Errorf("look for records of the transaction history: %w", err)
	}
	left, err := queries.ResyncDeactivationsOf(ctx, tx, t.report.Contracts)
	if err != nil {
		return nil, fmt.Errorf("read where contracts ended without an event: %w", err)
	}
	t.args = pgx.NamedArgs{
		"contracts": t.report.Contracts, "ends": slices.Concat(t.events.offsets, left), "offsets": offsets,
		"event_offsets": t.events.offsets, "event_nodes": t.events.nodeIDs,
		"unknown_offsets": elements.offsets, "unknown_ordinals": elements.nodeIDs, "seqs": t.seqs,
		"times": redacted.TimeFields,
	}
	return t, s.findChanged(ctx, tx, t, slices.Concat(offsets, t.events.offsets, elements.offsets))
}

// findEvents finds where the events of the contracts are, and their look-ups.
func (t *redactionTargets) findEvents(ctx context.Context, tx pgx.Tx) error {
	found := []string{"SELECT l.ledger_offset, l.node_id FROM lookups l WHERE l.contract_id = ANY ($1::text[])"}
	for _, table := range tables.In(tables.Facts) {
		if table.Contract {
			found = append(found, "SELECT s.ledger_offset, s.node_id FROM "+table.Name+" s WHERE s.contract_id = ANY "+
				"($1::text[])")
		}
	}
	var offset int64
	var nodeID int32
	return pg.Each(ctx, tx, strings.Join(found, " UNION "), []any{t.report.Contracts}, []any{&offset, &nodeID},
		func() error {
			t.events.add(offset, nodeID)
			return nil
		})
}

// findChanged finds the places at which something is about to be erased, stream by stream. Places that are covered
// belong to updates, those up to the history floor to the snapshot there.
func (s *Stored) findChanged(ctx context.Context, tx pgx.Tx, t *redactionTargets, at []int64) error {
	covered, err := bounds.Covered(ctx, tx, math.MaxInt64)
	if err != nil {
		return err
	}
	snapshot, err := bounds.CarriedSnapshot(ctx, tx)
	if err != nil {
		return err
	}
	slices.Sort(at)
	for _, offset := range slices.Compact(at) {
		switch {
		case covered.Has(offset):
			t.changed[tables.StreamUpdates] = append(t.changed[tables.StreamUpdates], offset)
		case snapshot != nil && offset <= int64(snapshot.At):
			t.changed[tables.StreamSnapshot] = append(t.changed[tables.StreamSnapshot], offset)
		}
	}
	t.changed[tables.StreamTransactions] = t.seqs
	return nil
}

// refuseActive refuses contracts that are active, or whose end is not stored, and one of which nothing is known.
func (s *Stored) refuseActive(ctx context.Context, tx pgx.Tx, contracts []string, what Redaction, unknown error) error {
	states, err := queries.RedactionContracts(ctx, tx, contracts)
	if err != nil {
		return fmt.Errorf("look for contracts: %w", err)
	}
	for _, c := range states {
		of := "contract " + c.ContractID
		if what.UpdateID != "" {
			of += ", which update " + what.UpdateID + " created,"
		}
		switch {
		case c.Active:
			return &ledger.Problem{What: of + " is active", Do: "redact it after it was archived: what is active stays whole"}
		case !c.Ended && c.Activated:
			return &ledger.Problem{
				What: of + " may be active: its archival is not stored",
				Do: "redact it after it was archived, and the archival was indexed: what is active, or on its way to another " +
					"synchronizer, stays whole",
			}
		case !c.Ended && !c.Activated && !c.Known && what.UpdateID == "":
			return unknown
		}
	}
	return nil
}

// redactable returns the tables that have content, each once.
func redactable() (list []tables.Table) {
	for _, table := range tables.All() {
		if len(table.Content) > 0 {
			list = append(list, table)
		}
	}
	return list
}

// The conditions on rows s by which a redaction chooses what lies at places.
const (
	atEvents = "s.ledger_offset = ANY (@event_offsets::bigint[]) AND (s.ledger_offset, s.node_id) IN (SELECT " +
		"unnest(@event_offsets::bigint[]), unnest(@event_nodes::integer[]))"
	atElements = "s.ledger_offset = ANY (@unknown_offsets::bigint[]) AND (s.ledger_offset, s.ordinal) IN (SELECT " +
		"unnest(@unknown_offsets::bigint[]), unnest(@unknown_ordinals::integer[]))"
	atUpdates = "s.ledger_offset = ANY (@offsets::bigint[])"
)

// where chooses a table's rows of which content is to be erased.
func (t *redactionTargets) where(table *tables.Table) string {
	var at []string
	switch {
	case table.OfRecords():
		at = []string{"s.seq = ANY (@seqs::bigint[])"}
	case table.Name == "lifetimes": // whose key begins with the end: an event of the contract, or where it left the scope
		at = []string{"s.deactivated_offset = ANY (@ends::bigint[]) AND s.contract_id = ANY (@contracts::text[])"}
	default:
		if slices.Contains(table.Key, "node_id") {
			at = append(at, atEvents)
		}
		if table.Family == tables.Facts {
			at = append(at, atUpdates)
		}
		if slices.Contains(table.Key, "ordinal") && !slices.Contains(table.Key, "node_id") {
			at = append(at, atElements)
		}
	}
	content := make([]string, len(table.Content))
	for i, column := range table.Content {
		content[i] = "s." + column + " IS NOT NULL"
		if column == exactColumn {
			content[i] = "s.exact - @times::text[] <> '{}'"
		}
	}
	return table.Rows("(" + strings.Join(at, " OR ") + ") AND (" + strings.Join(content, " OR ") + ")")
}

func (t *redactionTargets) erase(ctx context.Context, tx pgx.Tx, table *tables.Table) (erased int64, err error) {
	var change string
	switch {
	// as for all contracts: of one that is a holding by its template something is known still
	case table.Content[0] == "position_id":
		change = "UPDATE " + table.Name + ` s SET (position_id, amount, locked, locked_until) = (
    SELECT h.position_id, h.amount, h.locked, h.locked_until FROM holding_events h
    WHERE s.template_ref = ANY (ARRAY(SELECT k.template_ref FROM holding_templates k))
      AND h.ledger_offset = s.activated_offset AND h.node_id = s.activated_node_id LIMIT 1)`
	default:
		change = "UPDATE " + table.Name + " s SET " + strings.Join(table.Content, " = NULL, ") + " = NULL"
		// the text of a time is no content
		change = strings.Replace(change, " exact = NULL", " exact = (SELECT jsonb_object_agg(x.key, x.value) "+
			"FROM jsonb_each(s.exact) x WHERE x.key = ANY (@times::text[]))", 1)
	}
	sql := "WITH erased AS (" + change + " WHERE " + t.where(table) +
		" RETURNING s.tableoid AS relation) SELECT e.relation::regclass::text, count(*) FROM erased e GROUP BY 1"
	var relation string
	var n int64
	err = pg.Each(ctx, tx, sql, []any{t.args}, []any{&relation, &n}, func() error {
		erased += n
		t.touched = append(t.touched, relation)
		return nil
	})
	return erased, err
}

// findRecords derives the records of the updates at some offsets, because what is erased can't be derived from again.
// It returns the event ids of those that say what exercises of the contracts do.
func (t *redactionTargets) findRecords(ctx context.Context, tx pgx.Tx, updates []string,
	at []int64) (said []string, err error) {
	erased, err := redacted.Read(ctx, tx)
	if err != nil {
		return nil, err
	}
	erased, t.records = erased.With(t.report.Contracts, updates), map[string][]ledger.Record{}
	named, err := queries.RedactionNoted(ctx, tx, t.report.Contracts)
	if err != nil {
		return nil, fmt.Errorf("look for noted records that name the contracts: %w", err)
	}
	for _, n := range named {
		noted, err := ledger.DecodeRecords(n.Records)
		if err != nil {
			return nil, fmt.Errorf("update %s: %w", n.UpdateID, err)
		}
		t.records[n.UpdateID] = erased.Records(&ledger.TransferUpdate{ID: n.UpdateID, Noted: noted})
	}
	slices.Sort(at)
	for _, offset := range slices.Compact(at) {
		list, err := amulets.Updates(ctx, tx, ledger.Offset(offset-1), ledger.Offset(offset))
		if err != nil {
			return nil, err
		}
		for i := range list {
			t.records[list[i].ID] = erased.Records(&list[i])
			said = append(said, erased.Said(&list[i])...)
		}
	}
	return said, nil
}

// noteRecords notes the records that were derived, which are what follows from their updates from now on.
func (r *Repairer) noteRecords(ctx context.Context, tx pgx.Tx, t *redactionTargets) error {
	for id, records := range t.records {
		text, err := ledger.EncodeRecords(records)
		if err == nil {
			err = queries.RedactionNoteRecords(ctx, tx, dbsqlc.RedactionNoteRecordsParams{UpdateID: id, Records: text})
		}
		if err != nil {
			return fmt.Errorf("note the records of update %s: %w", id, err)
		}
	}
	if len(t.records) > 0 { // earlier notes may have had more
		t.touched = append(t.touched, "redacted_records")
	}
	return nil
}
