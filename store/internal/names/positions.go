package names

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
)

// Position is who holds what, without how much. The parts that can't be read are nil. The texts lie in the memory of
// the server's answer, so they must not be kept longer than that.
type Position struct {
	Owner, Instrument, InstrumentAdmin []byte
	AdminSigned                        bool // the administrator is among the signatories
}

// PositionID is the number of a position.
type PositionID [16]byte

// ID returns the position's number, which follows from what it is as in the database's function position_of.
func (p *Position) ID() PositionID {
	var space [keySpace]byte
	text := space[:0]
	for _, part := range [...][]byte{p.Owner, p.Instrument, p.InstrumentAdmin} {
		if part == nil {
			text = append(text, '-')
			continue
		}
		text = append(strconv.AppendInt(text, int64(len(part)), 10), ':')
		text = append(text, part...)
	}
	sign := byte('-')
	if p.AdminSigned {
		sign = '+'
	}
	sum := sha256.Sum256(append(text, sign))
	return PositionID(sum[:])
}

// Holding is what a contract holds, as its creation event says.
type Holding struct {
	Position PositionID
	Amount   ledger.Decimal // empty: not readable
	Locked   *bool          // nil: not readable

	LockedUntil pgtype.Timestamptz // not valid: no lock, no known end, or not readable
}

// Columns returns the columns of a row of the active set; they are NULL for nil, which is no holding.
func (h *Holding) Columns() (position pgtype.UUID, amount *ledger.Decimal, locked *bool,
	lockedUntil pgtype.Timestamptz) {
	if h == nil {
		return position, nil, nil, lockedUntil
	}
	if h.Amount != "" {
		amount = &h.Amount
	}
	return pgtype.UUID{Bytes: h.Position, Valid: true}, amount, h.Locked, h.LockedUntil
}

// Holding collects a position, and returns what a contract holds of it.
func (n *References) Holding(position Position, amount ledger.Decimal, locked *bool,
	lockedUntil pgtype.Timestamptz) *Holding {
	id := position.ID()
	if _, known := n.Positions[id]; !known {
		n.Positions[id] = position
	}
	return &Holding{id, amount, locked, lockedUntil}
}

// shown is a position, with the list of stakeholders who see it.
type shown struct {
	position     PositionID
	stakeholders ListPlace
}

// shownPosition is a position, with the number of the list of stakeholders who see it; 0: the list was not served.
type shownPosition struct {
	position     PositionID
	stakeholders int32
}

// positions keeps tables positions and position_stakeholders. It is safe for concurrent use.
type positions struct {
	db    dbsqlc.DBTX
	write WriteFunc
	mu    sync.Mutex // of known
	known recent[shownPosition, struct{}]
}

// addPositionsSQL is not among the generated queries, because the arrays of those can't hold NULL. It gets a position
// once for each list of stakeholders.
const addPositionsSQL = `WITH wanted AS (
    SELECT unnest($1::uuid[]) AS position_id, unnest($2::text[]) AS owner, unnest($3::text[]) AS instrument,
        unnest($4::text[]) AS instrument_admin,
        unnest($5::boolean[]) AS admin_signed, unnest($6::integer[]) AS stakeholders_ref
), shown AS (
    INSERT INTO position_stakeholders (position_id, stakeholders_ref)
    SELECT w.position_id, w.stakeholders_ref FROM wanted w WHERE w.stakeholders_ref > 0
    ON CONFLICT DO NOTHING
)
INSERT INTO positions (position_id, owner, instrument, instrument_admin, admin_signed)
SELECT w.position_id, w.owner, w.instrument, w.instrument_admin, w.admin_signed FROM wanted w
ON CONFLICT DO NOTHING`

// add stores positions that are not stored yet, in a transaction of its own before that of their contracts.
func (p *positions) add(ctx context.Context, wanted *References) error {
	unknown := p.unknown(wanted)
	if len(unknown) == 0 {
		return nil
	}
	// In this order, so that no two writers wait for each other.
	slices.SortFunc(unknown, func(a, b shownPosition) int {
		return cmp.Or(bytes.Compare(a.position[:], b.position[:]), cmp.Compare(a.stakeholders, b.stakeholders))
	})
	ids, refs := positionColumns(unknown)
	places, err := queries.PositionsMissing(ctx, p.db, dbsqlc.PositionsMissingParams{PositionIds: ids,
		StakeholdersRefs: refs})
	if err != nil {
		return fmt.Errorf("look for %d positions: %w", len(unknown), err)
	}
	if len(places) > 0 {
		slices.Sort(places)
		missing := make([]shownPosition, len(places))
		for i, place := range places {
			missing[i] = unknown[place-1]
		}
		ids, refs := positionColumns(missing)
		var owners, instruments, admins []*string
		var signed []bool
		for _, shown := range missing {
			position := wanted.Positions[shown.position]
			owners, instruments = append(owners, nullable(position.Owner)), append(instruments, nullable(position.Instrument))
			admins, signed = append(admins, nullable(position.InstrumentAdmin)), append(signed, position.AdminSigned)
		}
		err := p.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, addPositionsSQL, ids, owners, instruments, admins, signed, refs)
			return err
		})
		if err != nil {
			return fmt.Errorf("add %d positions: %w", len(missing), err)
		}
	}
	p.keep(unknown)
	return nil
}

// unknown returns the positions that were collected and are not remembered to be stored.
func (p *positions) unknown(wanted *References) []shownPosition {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []shownPosition
	for s := range wanted.shown {
		position := shownPosition{position: s.position}
		if number := wanted.At(s.stakeholders); number != nil {
			position.stakeholders = *number
		}
		if _, known := p.known.get(position); !known {
			list = append(list, position)
		}
	}
	return list
}

// keep remembers positions, which have to be committed.
func (p *positions) keep(list []shownPosition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, shown := range list {
		p.known.put(shown, struct{}{})
	}
}

// positionColumns returns positions as statements take them.
func positionColumns(list []shownPosition) (ids []pgtype.UUID, refs []int32) {
	for _, shown := range list {
		ids, refs = append(ids, pgtype.UUID{Bytes: shown.position, Valid: true}), append(refs, shown.stakeholders)
	}
	return ids, refs
}

func nullable(text []byte) *string {
	if text == nil {
		return nil
	}
	value := string(text)
	return &value
}
