package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// ExportType is the form in which an export gets the values of a column.
type ExportType string

// The types. Values are in PostgreSQL's binary format.
const (
	ExportBigint  ExportType = "bigint"
	ExportInteger ExportType = "integer"
	ExportBoolean ExportType = "boolean"
	ExportText    ExportType = "text" // numbers too: they have no scale that holds for all
	ExportJSON    ExportType = "json" // its text
	ExportBytes   ExportType = "bytes"
	ExportTime    ExportType = "time"    // microseconds since 2000, UTC
	ExportTexts   ExportType = "texts"   // an array of texts
	ExportDate    ExportType = "date"    // days since 2000
	ExportDecimal ExportType = "decimal" // its text: at most 38 digits, Scale of them after the point
)

// ExportColumn is a column of a relation that is exported.
type ExportColumn struct {
	Name  string
	Type  ExportType
	Scale int // of a decimal
}

// ExportRelation is a relation that is exported, with its columns.
type ExportRelation struct {
	Name     string
	Place    string // the column that says which range a row belongs to; rows come in its order
	Columns  []ExportColumn
	Computed bool   // rows follow from those of other relations, also of earlier ranges
	Of       string // of a typed view, which comes and goes, and gets columns: what it is made of; else empty

	query string
}

// ExportState is what a database says of itself to an export.
type ExportState struct {
	Extent
	// whose ledger it is, of a network the party that operates it; and in which network, or empty where that is not
	// recorded
	Participant, Network string
	Scope                string // hash of the scope in force
	ScopeDefinition      []byte // JSON
	SchemaVersion        int64
	Verified             ledger.Offset // up to here updates, or records, were read again and found equal
	Changes              []ExportChange

	// Records says that it is of the transaction history: offsets are seqs. It is not started while it is read again.
	Records bool
}

// ExportChange is a range of the updates, of what a snapshot brought, or of the transaction history, in which rows
// changed after they had been shown.
type ExportChange struct {
	Number   int64 // those that came later have greater ones
	At       time.Time
	Of       string // one of the streams
	From, To ledger.Offset
	Reason   string // as ledger.rewrites has it
}

// The reasons that an export distinguishes.
const (
	ChangePruned   = writing.Pruned
	ChangeRedacted = writing.Redacted
	ChangeRepaired = writing.Repaired
)

// ExportSeal is a window that was compared with the ledger, with its digest.
type ExportSeal struct {
	Stream      string        `json:"stream"` // one of the streams
	From        ledger.Offset `json:"from_exclusive"`
	To          ledger.Offset `json:"to_inclusive"`
	VerifiedAt  time.Time     `json:"verified_at"`
	Result      string        `json:"result"`
	Differences int64         `json:"differences"`
	Digest      []byte        `json:"digest"`
}

// ExportSnapshot reads what is exported in one snapshot of the database, as long as Export runs.
type ExportSnapshot struct {
	store *Store
	tx    pgx.Tx

	records bool
}

// Export calls fn with one snapshot of the database, for an export of the updates.
func (s *Store) Export(ctx context.Context, fn func(*ExportSnapshot) error) error {
	return s.export(ctx, &ExportSnapshot{store: s}, fn)
}

// ExportRecords is Export for the records of the transaction history: what are offsets elsewhere are their seqs.
func (s *Store) ExportRecords(ctx context.Context, fn func(*ExportSnapshot) error) error {
	return s.export(ctx, &ExportSnapshot{store: s, records: true}, fn)
}

func (s *Store) export(ctx context.Context, e *ExportSnapshot, fn func(*ExportSnapshot) error) error {
	return s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		e.tx = tx
		return fn(e)
	})
}

// Lasts returns an error if the snapshot is lost, and with it what keeps pruning waiting: the session may have ended.
func (e *ExportSnapshot) Lasts(ctx context.Context) (err error) {
	defer pg.Wrap(&err, "keep the snapshot of the database")
	_, err = e.tx.Exec(ctx, "SELECT")
	return err
}

// State returns where the database stands.
func (e *ExportSnapshot) State(ctx context.Context) (state ExportState, err error) {
	if e.records {
		at, err := bounds.TransactionsPosition(ctx, e.tx)
		if err != nil || at.LastSeq == 0 || at.Rereading {
			return state, err
		}
		state.Records, state.Started = true, true
		state.Watermark = ledger.Offset(at.LastSeq)
		err = e.common(ctx, &state)
		return state, err
	}
	if state.Extent, err = bounds.Read(ctx, e.tx); err != nil || !state.Started {
		return state, err
	}
	if err := e.common(ctx, &state); err != nil {
		return state, err
	}
	if state.Participant, err = queries.ParticipantGet(ctx, e.tx); err != nil {
		return state, fmt.Errorf("read the stored participant: %w", err)
	}
	scopes, err := queries.ScopesInUse(ctx, e.tx, StreamUpdates)
	if err != nil {
		return state, fmt.Errorf("read the stored scope: %w", err)
	}
	if len(scopes) > 0 {
		state.Scope, state.ScopeDefinition = scopes[0].Scope, scopes[0].Definition
	}
	return state, nil
}

// common reads what both kinds of exports ask for.
func (e *ExportSnapshot) common(ctx context.Context, state *ExportState) (err error) {
	if state.Network, err = queries.NetworkGet(ctx, e.tx); err != nil {
		return fmt.Errorf("read the stored network: %w", err)
	}
	if state.SchemaVersion, err = e.store.schemaVersion(ctx, e.tx); err != nil {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	verified, err := queries.VerificationSummary(ctx, e.tx)
	if err != nil {
		return fmt.Errorf("ask up to where it was verified: %w", err)
	}
	state.Verified = ledger.Offset(verified.VerifiedOffset)
	if e.records {
		state.Verified = ledger.Offset(verified.VerifiedSeq)
	}
	changes, err := queries.Rewrites(ctx, e.tx)
	if err != nil {
		return fmt.Errorf("read what changed: %w", err)
	}
	for _, c := range changes {
		state.Changes = append(state.Changes, ExportChange{
			c.Rewrite, c.RewrittenAt.Time.UTC(), c.Stream, ledger.Offset(c.FromExclusive), ledger.Offset(c.ToInclusive),
			c.Reason,
		})
	}
	return nil
}

// Cut returns the offset of the last of so many updates, or records, after an offset up to another one; 0: there are
// fewer.
func (e *ExportSnapshot) Cut(ctx context.Context, after, upTo ledger.Offset, updates int64) (ledger.Offset, error) {
	if e.records { // seqs have no gaps
		if int64(upTo-after) < updates {
			return 0, nil
		}
		return after + ledger.Offset(updates), nil
	}
	at, err := queries.VerificationUpdatesEnd(ctx, e.tx, dbsqlc.VerificationUpdatesEndParams{
		FromExclusive: int64(after), ToInclusive: int64(upTo), Skip: updates - 1,
	})
	if err != nil {
		return 0, fmt.Errorf("count the updates after offset %d: %w", after, err)
	}
	if len(at) == 0 {
		return 0, nil
	}
	return ledger.Offset(at[0]), nil
}

// Seals returns the windows that have a part of a range, and with the first range the snapshot's. Those that wait to be
// compared again are left out.
func (e *ExportSnapshot) Seals(ctx context.Context, from, to ledger.Offset) (seals []ExportSeal, err error) {
	defer pg.Wrap(&err, "read what was sealed")
	stream := tables.StreamUpdates
	if e.records {
		stream = tables.StreamTransactions
	}
	windows, err := queries.ExportSeals(ctx, e.tx, dbsqlc.ExportSealsParams{Stream: stream,
		FromExclusive: int64(from), ToInclusive: int64(to)})
	for _, w := range windows {
		seals = append(seals, ExportSeal{
			Stream: w.Stream, From: ledger.Offset(w.FromExclusive), To: ledger.Offset(w.ToInclusive),
			VerifiedAt: w.VerifiedAt.Time.UTC(),
			Result:     w.Result, Differences: w.Differences, Digest: w.Digest,
		})
	}
	return seals, err
}

// exportTypes are the types of columns, and what is put after a column's name to get it in its form.
var exportTypes = map[uint32]struct {
	form ExportType
	cast string
}{
	pgtype.Int8OID: {ExportBigint, ""}, pgtype.Int4OID: {ExportInteger, ""}, pgtype.BoolOID: {ExportBoolean, ""},
	pgtype.TextOID:    {ExportText, ""},
	pgtype.NumericOID: {ExportText, "::text"}, pgtype.JSONBOID: {ExportJSON, "::text"}, pgtype.ByteaOID: {ExportBytes, ""},
	pgtype.TimestamptzOID: {ExportTime, ""}, pgtype.DateOID: {ExportDate, ""}, pgtype.TextArrayOID: {ExportTexts, ""},
	pgtype.NumericArrayOID: {ExportTexts, "::text[]"},
}

// Packages returns the ids of the packages that are stored. Records need none.
func (e *ExportSnapshot) Packages(ctx context.Context) (ids []string, err error) {
	if e.records {
		return nil, nil
	}
	list, err := queries.PackageContentList(ctx, e.tx)
	if err != nil {
		return nil, fmt.Errorf("list the stored packages: %w", err)
	}
	for _, p := range list {
		ids = append(ids, p.PackageID)
	}
	return ids, nil
}

// PackageContent returns the content of a stored package.
func (e *ExportSnapshot) PackageContent(ctx context.Context, id string) (content []byte, err error) {
	defer pg.Wrap(&err, "read package %s", id)
	return queries.PackageContentGet(ctx, e.tx, id)
}

// Relations returns what is exported of the analysts' relations, in the order in which it is written; typed views last.
func (e *ExportSnapshot) Relations(ctx context.Context) ([]ExportRelation, error) {
	if e.records {
		return e.relations(ctx, tables.ExportedRecords())
	}
	list, err := e.relations(ctx, tables.InExport())
	if err != nil {
		return nil, err
	}
	views, err := e.store.typedViews(ctx, e.tx, TypedView{})
	if err != nil {
		return nil, err
	}
	for _, v := range views {
		r, err := e.relation(ctx, tables.ExportedView(v.Schema+"_"+v.Name, pgx.Identifier{v.Schema, v.Name}.Sanitize(),
			v.Kind))
		if err != nil {
			return nil, fmt.Errorf("look at the columns of %s.%s: %w", v.Schema, v.Name, err)
		}
		r.Of = strings.TrimSuffix(fmt.Sprintf("%s %s:%s:%s %s", v.Kind, v.Package, v.Module, v.Entity, v.Choice), " ")
		if slices.ContainsFunc(list, func(other ExportRelation) bool { return other.Name == r.Name }) {
			return nil, fmt.Errorf("view %s.%s would be exported as %s, as something else is: drop it (`indexer views drop`) "+
				"or make it with another --schema",
				v.Schema, v.Name, r.Name)
		}
		list = append(list, r)
	}
	return list, nil
}

func (e *ExportSnapshot) relations(ctx context.Context, of []tables.Exported) (list []ExportRelation, err error) {
	for _, exported := range of {
		relation, err := e.relation(ctx, exported)
		if err != nil {
			return nil, fmt.Errorf("look at the columns of %s: %w", exported.Relation, err)
		}
		list = append(list, relation)
	}
	return list, nil
}

func (e *ExportSnapshot) relation(ctx context.Context, exported tables.Exported) (ExportRelation, error) {
	r := ExportRelation{Name: exported.Relation, Place: exported.Place, Computed: exported.Computed}
	from := pgx.Identifier{e.store.db.Config.Schemas.Views, exported.Relation}.Sanitize()
	if exported.Query != "" {
		from = "(" + exported.Query + ")"
	}
	rows, err := e.tx.Query(ctx, "SELECT * FROM "+from+" e LIMIT 0")
	if err != nil {
		return r, err
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return r, err
	}
	var selected []string
	for _, field := range rows.FieldDescriptions() {
		if slices.Contains(exported.Left, field.Name) {
			continue
		}
		as, ok := exportTypes[field.DataTypeOID]
		if !ok {
			return r, fmt.Errorf("column %s is of a type that no export has a form for", field.Name)
		}
		column := ExportColumn{Name: field.Name, Type: as.form}
		// of numeric(38, scale), with what the type's header takes
		if field.DataTypeOID == pgtype.NumericOID && field.TypeModifier >= 0 {
			column.Type, column.Scale = ExportDecimal, int(field.TypeModifier-4)&0xffff
		}
		r.Columns = append(r.Columns, column)
		selected = append(selected, "e."+pgx.Identifier{field.Name}.Sanitize()+as.cast)
	}
	place := "e." + exported.Place
	where := fmt.Sprintf("%[1]s > $1::bigint AND %[1]s <= $2::bigint", place)
	if exported.Which != "" {
		where += " AND " + exported.Which
	}
	order := place
	for _, column := range exported.Order {
		order += ", e." + column
	}
	r.query = fmt.Sprintf("SELECT %s FROM %s e WHERE %s ORDER BY %s", strings.Join(selected, ", "), from, where, order)
	return r, nil
}

// Rows calls row for each row of a relation that belongs to a range. The values are in the order of the columns; nil is
// NULL. They are valid until row returns.
func (e *ExportSnapshot) Rows(ctx context.Context, r ExportRelation, from, to ledger.Offset,
	row func(values [][]byte) error) error {
	rows, err := e.tx.Query(ctx, r.query, pgx.QueryResultFormats{pgx.BinaryFormatCode}, int64(from), int64(to))
	if err == nil {
		defer rows.Close()
		for rows.Next() {
			if err := row(rows.RawValues()); err != nil {
				return err
			}
		}
		err = rows.Err()
	}
	if err != nil {
		return fmt.Errorf("read %s after offset %d up to %d: %w", r.Name, from, to, err)
	}
	return nil
}
