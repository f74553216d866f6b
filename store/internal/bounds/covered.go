package bounds

import (
	"context"
	"slices"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/tables"
)

// Ranges are those that coverage claims, in order; ranges may touch.
type Ranges []ledger.Range

// Covered returns what is covered, as far as it begins below an offset.
func Covered(ctx context.Context, db dbsqlc.DBTX, upTo int64) (_ Ranges, err error) {
	defer pg.Wrap(&err, "read what is covered")
	rows, err := queries.CoverageBelow(ctx, db, dbsqlc.CoverageBelowParams{Stream: tables.StreamUpdates, UpTo: upTo})
	ranges := make(Ranges, len(rows))
	for i, row := range rows {
		ranges[i] = ledger.Range{From: ledger.Offset(row.FromExclusive), To: ledger.Offset(row.ToInclusive)}
	}
	return ranges, err
}

// Has reports whether an offset is covered.
func (c Ranges) Has(at int64) bool {
	i, _ := slices.BinarySearchFunc(c, ledger.Offset(at), func(r ledger.Range, at ledger.Offset) int {
		if r.To < at {
			return -1
		}
		return 1
	})
	return i < len(c) && ledger.Offset(at) > c[i].From
}

// Missing returns the parts of a range that are not covered, in order.
func (c Ranges) Missing(r ledger.Range) (parts []ledger.Range) {
	at := r.From
	for _, covered := range c {
		if covered.From > at && at < r.To {
			parts = append(parts, ledger.Range{From: at, To: min(covered.From, r.To)})
		}
		at = max(at, covered.To)
	}
	if at < r.To {
		parts = append(parts, ledger.Range{From: at, To: r.To})
	}
	return parts
}

// CoveredS is true of a row s whose offset is covered.
const CoveredS = "EXISTS (SELECT FROM coverage v WHERE v.from_exclusive < s.ledger_offset AND v.to_inclusive >= " +
	"s.ledger_offset)"
