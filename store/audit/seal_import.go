package audit

import (
	"bytes"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/store"
	"ledgerindexer/store/internal/dbsqlc"
)

// ImportSeal seals a window as it was sealed in the exported database, if its rows have the same digest here. ok is false if they have
// another one, or windows here have other ends; then nothing is sealed. Windows that are sealed here already stay.
//
// Errors are those of SealUpdates.
func (s *Sealer) ImportSeal(ctx context.Context, seal store.ExportSeal) (ok bool, err error) {
	window := dbsqlc.Verifications{
		Stream: seal.Stream, FromExclusive: int64(seal.From), ToInclusive: int64(seal.To),
		VerifiedAt: pgtype.Timestamptz{Time: seal.VerifiedAt, Valid: true}, Result: seal.Result, Differences: seal.Differences,
	}
	failed := func(err error) (bool, error) {
		return false, fmt.Errorf("seal %s after offset %d up to %d as they were: %w", seal.Stream, seal.From, seal.To, err)
	}
	q := s.stored.db.Queries
	sealed, err := q.VerificationsOverlapping(ctx, s.term.Pool, dbsqlc.VerificationsOverlappingParams{
		Stream: window.Stream, FromExclusive: window.FromExclusive, ToInclusive: window.ToInclusive,
	})
	if err != nil {
		return failed(fmt.Errorf("read what was sealed: %w", err))
	}
	if len(sealed) == 1 && bytes.Equal(sealed[0].Digest, seal.Digest) {
		return true, nil
	}
	err = s.sealDigest(ctx, window.Stream, window.FromExclusive, window.ToInclusive, func(ctx context.Context, tx pgx.Tx, rows []byte) error {
		if ok = bytes.Equal(sealOf(&window, rows), seal.Digest); !ok || len(sealed) > 0 {
			return nil
		}
		return q.VerificationSet(ctx, tx, dbsqlc.VerificationSetParams{
			Stream: window.Stream, FromExclusive: window.FromExclusive, ToInclusive: window.ToInclusive, VerifiedAt: window.VerifiedAt,
			Result: window.Result, Differences: window.Differences, Digest: seal.Digest,
		})
	})
	if err != nil {
		return failed(err)
	}
	return ok, nil
}
