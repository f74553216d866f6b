package store

import (
	"context"

	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/redacted"
)

// Setup is what the indexer's commands made in a database beside what is read of its source.
type Setup struct {
	Redactions   []OrderedRedaction // in their order
	PQS          []string           // schemas
	Indexes      []FieldIndex
	Views        []TypedView
	Publications []string
	Readers      []Reader
}

// OrderedRedaction is a redaction that an operator ordered: those of the contracts of an update follow from the
// update's.
type OrderedRedaction struct{ ContractID, UpdateID, Reason string }

// Setup lists what was made, each kind by its names.
func (s *Store) Setup(ctx context.Context) (made Setup, err error) {
	var kind, id, reason string
	err = pg.Each(ctx, s.db.Pool, "SELECT r.kind, r.id, r.reason FROM redactions r WHERE r.of_update IS NULL "+
		"ORDER BY r.redaction", nil, []any{&kind, &id, &reason}, func() error {
		if kind == redacted.Update {
			made.Redactions = append(made.Redactions, OrderedRedaction{UpdateID: id, Reason: reason})
		} else {
			made.Redactions = append(made.Redactions, OrderedRedaction{ContractID: id, Reason: reason})
		}
		return nil
	})
	if err != nil {
		return Setup{}, s.db.Unusable(err)
	}
	made.PQS, err = pg.Column[string](ctx, s.db.Pool, "SELECT n.nspname::text FROM pg_namespace n "+
		"WHERE obj_description(n.oid, 'pg_namespace') = $1 ORDER BY 1", s.pqsComment())
	if err != nil {
		return Setup{}, s.db.Unusable(err)
	}
	made.Publications, err = pg.Column[string](ctx, s.db.Pool, "SELECT p.pubname::text FROM pg_publication p "+
		"WHERE obj_description(p.oid, 'pg_publication') = $1 AND p.pubinsert AND NOT p.pubupdate ORDER BY 1",
		s.publicationComment())
	if err != nil {
		return Setup{}, s.db.Unusable(err)
	}
	if made.Indexes, err = s.FieldIndexes(ctx); err != nil {
		return Setup{}, err
	}
	if made.Views, err = s.TypedViews(ctx, ""); err != nil {
		return Setup{}, err
	}
	made.Readers, err = s.Readers(ctx)
	return made, err
}
