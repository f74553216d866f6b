package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/tables"
)

// A fact that refers to the wrong name was altered itself, or the dictionary was. Which of the two it was is told by all
// facts at hand: each says, by what the ledger shows of the same event, what the number that it stores means.

// reference is a number of a dictionary.
type reference struct {
	kind   string // tables.Template, tables.Synchronizer or tables.PartyList
	number int32
}

const nothing = math.MaxInt32 // a number that is never given

// vote says that rows store one number where the ledger shows what another stands for, known to the dictionary or not.
type vote struct {
	reference
	shown int32
}

// votes tell at how many offsets each vote is found, and one of them: of which contract it is (empty: of none), and where.
type votes map[vote]weight

type weight struct {
	offsets  int64
	contract string
	at       int64
}

// repairNames makes the numbers of the dictionaries mean what the facts at hand refer to, adds names that are missing, and
// writes again what follows from a template's id. weigh is given the numbers that names have now. Where anything changed
// the terms of the leaders end, because they remember, and the snapshot that waits is dropped. It returns what the
// numbers at hand mean, which is certain once the transaction is committed.
func (r *Repairer) repairNames(ctx context.Context, tx pgx.Tx, wanted names.Wanted, weigh func(names.Numbers, votes) error) (map[reference]string, error) {
	if err := r.store.queries.DictionariesLock(ctx, tx); err != nil {
		return nil, fmt.Errorf("lock the dictionaries: %w", err)
	}
	if err := r.store.queries.PartyListsTurn(ctx, tx, names.ListsClass); err != nil {
		return nil, fmt.Errorf("wait for others who add lists of parties: %w", err)
	}
	d, err := r.store.readDictionaries(ctx, tx)
	if err != nil {
		return nil, err
	}
	numbers, err := d.resolve(ctx, tx, wanted)
	if err != nil {
		return nil, err
	}
	v := votes{}
	if err := weigh(numbers, v); err != nil {
		return nil, err
	}
	named, err := r.misnamed(ctx, tx, d, v)
	if err != nil {
		return nil, err
	}
	if err := r.rename(ctx, tx, d, numbers, wanted, named); err != nil {
		return nil, err
	}
	added, err := r.addNames(ctx, tx, wanted)
	if err != nil {
		return nil, err
	}
	certain, moved := map[reference]string{}, false
	for one := range v {
		if one.number == one.shown {
			certain[one.reference] = d.certainty(one.reference)
		} else if one.kind == tables.PartyList {
			moved = true // the list may have been given another number
		}
	}
	for ref, shown := range named {
		if shown != nothing {
			certain[ref] = d.certainty(reference{ref.kind, shown})
		}
	}
	if !added && !moved && len(named) == 0 {
		return certain, nil
	}
	if err := r.dropWaiting(ctx, tx); err != nil {
		return nil, err
	}
	return certain, r.endTerms(ctx, tx, rolesThatRemember)
}

// dropWaiting removes the snapshot that is to lower the state floor, if there is one: its rows have numbers of the dictionaries too,
// and nobody can tell whether they still mean what they meant.
func (r *Repairer) dropWaiting(ctx context.Context, tx pgx.Tx) error {
	waiting, err := r.store.lowerSnapshot(ctx, tx)
	if err != nil || waiting == nil {
		return err
	}
	r.store.cfg.Logger.WarnContext(ctx, "the snapshot that is to lower the state floor is dropped, because the names and lists that its rows refer to were "+
		"repaired: run `backfill history` with --with-snapshot again", "offset", int64(waiting.At), "entries", waiting.Entries)
	if err := r.dropLowerSnapshot(ctx, tx); err != nil {
		return fmt.Errorf("drop the snapshot at offset %d, which was to lower the state floor: %w", waiting.At, err)
	}
	return nil
}

// nameOf is what a number stands for; empty: nothing.
func (d *dictionaries) nameOf(ref reference) string { return d.names[ref.kind][number(ref.number)] }

// certainty is what is remembered of a number whose meaning is certain: its name. Lists of parties are many, and long: of them
// the digest.
func (d *dictionaries) certainty(ref reference) string {
	name := d.nameOf(ref)
	if ref.kind == tables.PartyList {
		sum := sha256.Sum256([]byte(name))
		name = string(sum[:])
	}
	return name
}

// weighAll collects the votes of the stored rows that are in the place of some of these; stored chooses them.
func (r *Repairer) weighAll(
	ctx context.Context, tx pgx.Tx, family tables.Family, rows []rows.Table, v votes, stored func(table *tables.Table) (where string, arguments []any),
) error {
	columns, err := r.store.factColumns(ctx, tx)
	if err != nil {
		return err
	}
	for _, source := range rows {
		table, err := record(tx, family, source, columns[source.Name])
		if err != nil {
			return err
		}
		where, arguments := stored(&table.Table)
		for i, c := range table.columns {
			if kind, isRef := tables.References[c.name]; isRef {
				if err := weighColumn(ctx, tx, table, i, kind, where, arguments, v); err != nil {
					return fmt.Errorf("weigh what %s.%s refers to: %w", table.Name, c.name, err)
				}
			}
		}
	}
	return nil
}

// weighColumn puts the rows beside those that are stored of the same contracts and updates, in the same places. Other rows
// say nothing.
func weighColumn(ctx context.Context, tx pgx.Tx, table recordedTable, ref int, kind, where string, arguments []any, v votes) error {
	name := func(i int) string { return pgx.Identifier{table.columns[i].name}.Sanitize() }
	contract, update := columnNamed(table.columns, "contract_id"), columnNamed(table.columns, "update_id")
	if contract < 0 && update < 0 {
		return nil
	}
	var arrays, columns, same []string
	take := func(i int) {
		values := make([]*string, len(table.rows))
		for j := range table.rows {
			values[j] = table.rows[j].values[i]
		}
		arguments = append(arguments, values)
		arrays = append(arrays, fmt.Sprintf("$%d::text[]", len(arguments)))
		columns = append(columns, name(i))
	}
	arguments = slices.Clip(arguments)
	for _, key := range table.Key {
		i := columnNamed(table.columns, key)
		take(i)
		same = append(same, fmt.Sprintf("s.%[1]s = e.%[1]s::%[2]s", name(i), table.columns[i].typeName))
	}
	take(ref)
	identity, contractID := update, "''"
	if contract >= 0 {
		identity, contractID = contract, "(array_agg(s.contract_id ORDER BY s.ledger_offset))[1]"
	}
	take(identity)
	same = append(same, fmt.Sprintf("s.%[1]s = e.%[1]s", name(identity)))
	rows, err := tx.Query(ctx, fmt.Sprintf(`SELECT s.%[1]s, e.%[1]s::integer, count(DISTINCT s.ledger_offset), %[2]s, min(s.ledger_offset)
		FROM unnest(%[3]s) AS e (%[4]s) JOIN %[5]s s ON %[6]s
		WHERE s.%[1]s IS NOT NULL AND e.%[1]s IS NOT NULL AND %[7]s GROUP BY 1, 2`,
		name(ref), contractID, strings.Join(arrays, ", "), strings.Join(columns, ", "), table.SQL(),
		strings.Join(same, " AND "), where), arguments...)
	if err != nil {
		return err
	}
	var one vote
	var found weight
	one.kind = kind
	_, err = pgx.ForEachRow(rows, []any{&one.number, &one.shown, &found.offsets, &found.contract, &found.at}, func() error {
		before := v[one]
		found.offsets = max(found.offsets, before.offsets)
		if before.contract != "" {
			found.contract, found.at = before.contract, before.at
		}
		v[one] = found
		return nil
	})
	return err
}

// misnamed finds the numbers that mean something else than the dictionary says, and which number stands for that now. It
// takes all rows at hand to agree, and more than one offset or another witness, where the name is known under another
// number; and none of the rows may use that number for it.
func (r *Repairer) misnamed(ctx context.Context, tx pgx.Tx, d *dictionaries, v votes) (map[reference]int32, error) {
	named := map[reference]int32{}
	taken := map[reference]bool{} // what is shown, and given a number
	for _, one := range slices.SortedFunc(maps.Keys(v), func(a, b vote) int {
		return cmp.Or(cmp.Compare(v[b].offsets, v[a].offsets),
			cmp.Compare(a.kind, b.kind), cmp.Compare(a.number, b.number), cmp.Compare(a.shown, b.shown))
	}) {
		shown := reference{one.kind, one.shown}
		_, done := named[one.reference]
		_, right := v[vote{one.reference, one.number}]
		meant, known := r.meant[one.reference]
		if done || right || taken[shown] || known && meant != d.certainty(shown) {
			continue
		}
		if !invented(one.shown) {
			if one.kind == tables.PartyList {
				continue // the facts are written anew, with the number that the list has now
			}
			_, used := v[vote{shown, one.shown}]
			if used || r.meant[shown] == d.nameOf(shown) {
				continue
			}
			sure, err := r.witnessed(ctx, tx, one, v[one])
			if err == nil && sure && d.nameOf(one.reference) == "" {
				// A name without its number was added anew, unless its number was altered.
				var added bool
				added, err = r.store.queries.NumberInUse(ctx, tx, dbsqlc.NumberInUseParams{
					OfTemplate: one.kind == tables.Template, Number: one.shown,
				})
				sure = !added
			}
			if err != nil {
				return nil, fmt.Errorf("look for what refers to %s: %w", d.nameOf(shown), err)
			}
			if !sure {
				continue
			}
		}
		named[one.reference] = one.shown
		taken[shown] = true
	}
	// Two that were swapped: the other one is not among the rows. It means nothing where nothing was in its place.
	for ref, shown := range maps.Clone(named) {
		other := reference{ref.kind, shown}
		if _, done := named[other]; done || invented(shown) || taken[ref] {
			continue
		}
		if named[other] = nothing; d.nameOf(ref) != "" {
			named[other] = ref.number
		}
		taken[ref] = true
	}
	return named, nil
}

// witnessed tells whether the rows that say so stand at more than one offset, or something else that is stored says it too.
func (r *Repairer) witnessed(ctx context.Context, tx pgx.Tx, one vote, w weight) (bool, error) {
	if w.offsets > 1 || w.contract == "" {
		return w.offsets > 1, nil
	}
	witnesses, err := r.store.queries.NumberWitnesses(ctx, tx, dbsqlc.NumberWitnessesParams{
		ContractID: w.contract, LedgerOffset: w.at, OfTemplate: one.kind == tables.Template, Number: one.number,
	})
	if err != nil {
		return false, fmt.Errorf("look for what else is stored of contract %s: %w", w.contract, err)
	}
	return witnesses > 0, nil
}

// rename gives numbers the names that other numbers stand for now.
func (r *Repairer) rename(ctx context.Context, tx pgx.Tx, d *dictionaries, numbers names.Numbers, wanted names.Wanted, named map[reference]int32) error {
	templates := map[int32]names.TemplateKey{}
	for key, t := range d.templates {
		templates[t.TemplateRef] = key
	}
	for key, n := range numbers.Templates {
		templates[n] = key
	}
	synchronizers := map[int32]string{}
	for id, n := range d.synchronizers {
		synchronizers[n] = id
	}
	for id, n := range numbers.Synchronizers {
		synchronizers[n] = id
	}
	lists := map[int32][]string{}
	for _, list := range wanted.Lists {
		lists[*numbers.Lists[list.Place]] = list.Parties
	}
	// A name may stand at a number that is given another one: all go before the first is written.
	old := map[string][]int32{}
	for ref := range named {
		old[ref.kind] = append(old[ref.kind], ref.number)
	}
	q := r.store.queries
	if err := q.TemplatesForget(ctx, tx, old[tables.Template]); err != nil {
		return fmt.Errorf("remove wrong templates: %w", err)
	}
	if err := q.SynchronizersForget(ctx, tx, old[tables.Synchronizer]); err != nil {
		return fmt.Errorf("remove wrong synchronizers: %w", err)
	}
	if err := q.PartyListsForget(ctx, tx, old[tables.PartyList]); err != nil {
		return fmt.Errorf("remove wrong lists of parties: %w", err)
	}
	for ref, shown := range named {
		if shown == nothing {
			continue
		}
		if ref.kind == tables.Synchronizer {
			row := dbsqlc.SynchronizerNumberParams{SynchronizerRef: ref.number, SynchronizerID: synchronizers[shown]}
			if err := q.SynchronizerNumber(ctx, tx, row); err != nil {
				return fmt.Errorf("make %d synchronizer %s: %w", ref.number, row.SynchronizerID, err)
			}
			continue
		}
		if ref.kind == tables.PartyList {
			row := dbsqlc.PartyListNumberParams{PartyListRef: ref.number, Parties: lists[shown]}
			if err := q.PartyListNumber(ctx, tx, row); err != nil {
				return fmt.Errorf("make %d a list of %d parties: %w", ref.number, len(row.Parties), err)
			}
			continue
		}
		key := templates[shown]
		id, err := ledger.ParseTemplateID(key.TemplateID)
		if err != nil {
			return err
		}
		err = q.TemplateNumber(ctx, tx, dbsqlc.TemplateNumberParams{
			TemplateRef: ref.number, TemplateID: key.TemplateID, PackageID: id.Package, PackageName: key.PackageName,
			ModuleName: id.Module, EntityName: id.Entity, RepresentativePackageID: key.OptionalRepresentative(),
		})
		if err != nil {
			return fmt.Errorf("make %d template %s: %w", ref.number, key.TemplateID, err)
		}
	}
	return nil
}

// Add adds what is missing in the dictionaries, and writes again what follows from a template's id.
func (r *Repairer) addNames(ctx context.Context, tx pgx.Tx, wanted names.Wanted) (changed bool, err error) {
	changed, err = names.Add(ctx, r.store.queries, tx, wanted)
	if err != nil {
		return false, err
	}
	stored, err := r.store.readDictionaries(ctx, tx)
	if err != nil {
		return false, err
	}
	for key := range wanted.Templates {
		id, err := ledger.ParseTemplateID(key.TemplateID)
		if err != nil {
			return false, err
		}
		t := stored.templates[key]
		if t.PackageID == id.Package && t.ModuleName == id.Module && t.EntityName == id.Entity {
			continue
		}
		changed = true
		err = r.store.queries.TemplateParts(ctx, tx, dbsqlc.TemplatePartsParams{
			TemplateRef: t.TemplateRef, PackageID: id.Package, ModuleName: id.Module, EntityName: id.Entity,
		})
		if err != nil {
			return false, fmt.Errorf("write the parts of template %s: %w", key.TemplateID, err)
		}
	}
	return changed, nil
}
