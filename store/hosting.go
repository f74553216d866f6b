package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/session"
)

// WantedHosting returns parties, at most limit, of which it is to be asked whether the participant hosts them, and the
// watermark: topology events up to there are in the answer. Of those that a scope names only these are wanted.
func (l *UpdatesWriter) WantedHosting(ctx context.Context, named []string,
	limit int) (parties []string, at ledger.Offset, err error) {
	rows, err := l.store.db.Queries.HostingWanted(ctx, l.term.Pool,
		dbsqlc.HostingWantedParams{Parties: append([]string{}, named...), Most: int32(limit)})
	if err != nil {
		return nil, 0, fmt.Errorf("read which parties hold something: %w", err)
	}
	for _, row := range rows {
		parties, at = append(parties, row.Party), ledger.Offset(row.AtOffset)
	}
	return parties, at, nil
}

// SaveHosting stores whether the participant hosts some parties, as it was asked at a watermark or later.
func (l *UpdatesWriter) SaveHosting(ctx context.Context, hosted map[string]bool, at ledger.Offset) error {
	save := dbsqlc.HostingSaveParams{AskedOffset: int64(at)}
	for party, here := range hosted {
		save.Parties, save.Hosted = append(save.Parties, party), append(save.Hosted, here)
	}
	err := l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return l.store.db.Queries.HostingSave(ctx, tx, save)
	})
	if err != nil {
		return fmt.Errorf("save which parties are hosted: %w", session.Refused(err))
	}
	return nil
}

// ForgetHosting removes what is stored of parties that a scope does not name, if it names any.
func (l *UpdatesWriter) ForgetHosting(ctx context.Context, named []string) error {
	err := l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return l.store.db.Queries.HostingForget(ctx, tx, append([]string{}, named...))
	})
	if err != nil {
		return fmt.Errorf("forget which other parties are hosted: %w", err)
	}
	return nil
}
