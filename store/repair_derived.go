package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/tables"
)

// RepairDerived makes what follows from the facts follow from them, and removes what belongs nowhere: all that
// CompareDerived compares. Rows that are right are not touched. An update that is missing beside its events, a name that
// rows refer to, and parts of a name that contradict one another, can't be made right here: writing the updates again does
// that, and until then they stay. step, if not nil, is told what is done next.
//
// It is one transaction, in which everything is worked out anew: it takes about as long as comparing does, and the writer
// of the updates waits meanwhile, or fails and tries again.
func (r *Repairer) RepairDerived(ctx context.Context, step func(what string)) error {
	say := func(what string) {
		if step != nil {
			step(what)
		}
	}
	say("partitions of lifetimes")
	if err := r.ensureLifetimes(ctx); err != nil {
		return fmt.Errorf("repair what follows from the facts: %w", err)
	}
	err := r.repair(ctx, []Role{RoleHistory, RoleUpdates}, func(ctx context.Context, tx pgx.Tx) error {
		a, err := r.store.agreed(ctx, tx)
		if err != nil || !a.started {
			return err
		}
		if _, err := tx.Exec(ctx, "SET LOCAL work_mem = '"+derivedMemory+"'"); err != nil {
			return fmt.Errorf("set the memory for sorting: %w", err)
		}
		d := derivation{tx: tx, agreement: a}
		for _, part := range []struct {
			what   string
			repair func(context.Context) error
		}{
			{"facts outside of coverage", d.outside}, {"active contracts and lifetimes", d.lifetimes},
			{"look-ups", func(ctx context.Context) error { return d.lookups(ctx, r.Leader) }},
			{"templates and their interfaces", func(ctx context.Context) error { return d.templates(ctx, r) }},
		} {
			say(part.what)
			if err := part.repair(ctx); err != nil {
				return fmt.Errorf("%s: %w", part.what, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("repair what follows from the facts: %w", err)
	}
	return nil
}

// ensureLifetimes attaches the partitions that rows of lifetimes may need. One offset of each of the smallest partitions
// stands for the others there: partitions begin and end where those do.
func (r *Repairer) ensureLifetimes(ctx context.Context) error {
	var events []string
	for _, table := range tables.In(tables.Facts) {
		if table.Activity {
			events = append(events, "SELECT s.ledger_offset FROM "+table.SQL()+" s")
		}
	}
	sql := "SELECT max(e.ledger_offset) FROM (" + strings.Join(events, " UNION ALL ") + ") e GROUP BY e.ledger_offset / $1"
	rows, err := r.pool.Query(ctx, sql, firstWidth)
	if err != nil {
		return fmt.Errorf("look for the offsets of events: %w", err)
	}
	offsets, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return fmt.Errorf("look for the offsets of events: %w", err)
	}
	r.partitions.forget() // the writer of the updates attaches some too
	return r.partitions.ensure(ctx, "lifetimes", offsets)
}

// derivation works out what follows from the facts, in a transaction that nobody else writes beside.
type derivation struct {
	tx        pgx.Tx
	agreement *agreement
}

// after runs statements that take an offset and the watermark.
func (d *derivation) after(ctx context.Context, offset int64, statements ...string) error {
	for _, sql := range statements {
		if _, err := d.tx.Exec(ctx, sql, offset, d.agreement.watermark); err != nil {
			return err
		}
	}
	return nil
}

func (d *derivation) outside(ctx context.Context) error {
	for _, table := range tables.In(tables.Facts) {
		if table.Mixed { // what belongs nowhere of exact values is known last
			continue
		}
		err := d.after(ctx, d.agreement.floor, "DELETE FROM "+table.SQL()+" s WHERE "+
			table.Rows("(s.ledger_offset <= $1 OR s.ledger_offset > $2) AND NOT "+coveredS))
		if err != nil {
			return err
		}
	}
	for _, table := range tables.In(tables.Snapshot) {
		column := table.SnapshotOffset
		if column == "" {
			continue
		}
		if !d.agreement.snapshot {
			if _, err := d.tx.Exec(ctx, "DELETE FROM "+table.SQL()+" s WHERE "+table.Rows("true")); err != nil {
				return err
			}
			continue
		}
		_, err := d.tx.Exec(ctx, "DELETE FROM "+table.SQL()+" s WHERE "+table.Rows(replacedSQL), d.agreement.base)
		if err != nil {
			return err
		}
		// There was one snapshot only, so they are of that.
		sql := fmt.Sprintf("UPDATE %s s SET %s = $1 WHERE %s", table.SQL(), column, table.Rows("s."+column+" <> $1"))
		if _, err := d.tx.Exec(ctx, sql, d.agreement.base); err != nil {
			return err
		}
	}
	return nil
}

// lifetimes replaces the rows that differ. What is there when rows are added is right: looking for it in another way than
// by the key would read what is being added again and again.
func (d *derivation) lifetimes(ctx context.Context) error {
	_, err := d.tx.Exec(ctx, "CREATE TEMPORARY TABLE wanted_spans ON COMMIT DROP AS WITH "+spansSQL+" SELECT * FROM spans", d.agreement.spansArguments()...)
	if err != nil {
		return err
	}
	if _, err := d.tx.Exec(ctx, "ANALYZE wanted_spans"); err != nil {
		return err
	}
	_, err = d.tx.Exec(ctx, `DELETE FROM indexer.active_contracts x WHERE NOT `+beyondSpans("$1")+` AND NOT EXISTS (
    SELECT FROM wanted_spans w
    WHERE w.ended IS NULL AND w.contract_id = x.contract_id AND w.synchronizer_ref = x.synchronizer_ref AND w.template_ref = x.template_ref
      AND w.activated_offset = x.activated_offset AND w.activated_node_id = x.activated_node_id
      AND w.reassignment_counter = x.reassignment_counter)`, d.agreement.floor)
	if err != nil {
		return err
	}
	_, err = d.tx.Exec(ctx, `DELETE FROM indexer.lifetimes x WHERE x.deactivated_offset > $2 AND x.activated_offset > $3 AND NOT `+beyondSpans("$1")+` AND NOT EXISTS (
    SELECT FROM wanted_spans w
    WHERE w.ended = x.deactivated_offset AND w.activated_offset = x.activated_offset AND w.activated_node_id = x.activated_node_id
      AND w.contract_id = x.contract_id AND w.synchronizer_ref = x.synchronizer_ref AND w.template_ref = x.template_ref)`,
		d.agreement.floor, d.agreement.judgedLifetimes(), d.agreement.replayedLifetimes())
	if err != nil {
		return err
	}
	for _, sql := range []string{
		`INSERT INTO indexer.active_contracts (contract_id, synchronizer_ref, template_ref, activated_offset, activated_node_id, reassignment_counter)
SELECT w.contract_id, w.synchronizer_ref, w.template_ref, w.activated_offset, w.activated_node_id, w.reassignment_counter
FROM wanted_spans w
WHERE w.ended IS NULL
ON CONFLICT DO NOTHING`,
		`INSERT INTO indexer.lifetimes (deactivated_offset, activated_offset, activated_node_id, synchronizer_ref, template_ref, contract_id)
SELECT w.ended, w.activated_offset, w.activated_node_id, w.synchronizer_ref, w.template_ref, w.contract_id
FROM wanted_spans w
WHERE w.ended IS NOT NULL
ON CONFLICT DO NOTHING`,
	} {
		if _, err := d.tx.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// lookups asks again where an outcome contradicts itself, and removes exact values that belong nowhere last: what they
// belong to may just have moved or gone.
func (d *derivation) lookups(ctx context.Context, l *Leader) error {
	const misplaced = "WITH " + asksSQL + ", " + unansweredSQL + ", " + misplacedSQL
	err := d.after(ctx, d.agreement.base, misplaced+`
DELETE FROM indexer.lookups l USING misplaced m WHERE l.contract_id = m.contract_id AND m.wanted_contract IS NULL`, misplaced+`
UPDATE indexer.lookups l SET contract_id = m.wanted_contract, ledger_offset = m.wanted_offset, node_id = m.wanted_node_id
FROM misplaced m WHERE l.contract_id = m.contract_id`)
	if err != nil {
		return err
	}
	_, err = d.tx.Exec(ctx, `UPDATE indexer.lookups l SET status = 'wanted', reason = NULL, looked_up_at = NULL, template_ref = NULL, created_at = NULL,
    payload = NULL, contract_key = NULL, contract_key_hash = NULL, signatories = NULL, observers = NULL, witness_parties = NULL WHERE `+contradictorySQL)
	if err != nil {
		return err
	}
	if err := l.wantLookups(ctx, d.tx, d.agreement.base, d.agreement.watermark); err != nil {
		return err
	}
	return d.after(ctx, d.agreement.floor, "DELETE FROM indexer.exact_payloads s WHERE "+placelessExactSQL)
}

// templates makes ids that are none of the parts that stand beside them, and lists the interfaces that templates have shown.
// An id that its parts contradict stays: which of them was altered only the ledger can tell. Who writes the updates
// remembers what is listed: rows are only added, so its memory stays true.
func (d *derivation) templates(ctx context.Context, r *Repairer) error {
	templates, err := r.store.queries.TemplateListWhole(ctx, d.tx)
	if err != nil {
		return fmt.Errorf("read templates: %w", err)
	}
	for _, t := range templates {
		if _, err := ledger.ParseTemplateID(t.TemplateID); err == nil {
			continue
		}
		// Before the row is changed: a leader that waits for the dictionary holds its role.
		if err := r.endTerms(ctx, d.tx, rolesThatRemember); err != nil {
			return err
		}
		id := t.PackageID + ":" + t.ModuleName + ":" + t.EntityName
		_, err := d.tx.Exec(ctx, "UPDATE indexer.templates SET template_id = $2 WHERE template_ref = $1", t.TemplateRef, id)
		if err != nil {
			return fmt.Errorf("repair template %d: %w", t.TemplateRef, err)
		}
	}
	_, err = d.tx.Exec(ctx, `DELETE FROM indexer.template_interfaces i
WHERE NOT EXISTS (SELECT FROM indexer.templates t WHERE t.template_ref = i.template_ref)`)
	if err != nil {
		return fmt.Errorf("remove interfaces of templates that are not in the dictionary: %w", err)
	}
	return d.after(ctx, d.agreement.floor, "WITH "+shownInterfacesSQL+` INSERT INTO indexer.template_interfaces (template_ref, interface_id)
SELECT s.template_ref, s.interface_id FROM shown s ON CONFLICT DO NOTHING`)
}
