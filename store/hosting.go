package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/session"
)

// WantedHosting returns parties, at most limit, about which to ask the participant whether it hosts them, and the
// watermark: the answer has all topology events up to there. If a scope names parties, only these are wanted.
func (l *UpdatesWriter) WantedHosting(ctx context.Context, named []string,
	limit int) (parties []string, at ledger.Offset, err error) {
	defer pg.Wrap(&err, "read which parties hold something")
	rows, err := queries.HostingWanted(ctx, l.term.Pool,
		dbsqlc.HostingWantedParams{Parties: append([]string{}, named...), Most: int32(limit)})
	for _, row := range rows {
		parties, at = append(parties, row.Party), ledger.Offset(row.AtOffset)
	}
	return parties, at, err
}

// SaveHosting stores whether the participant hosts some parties, as it was asked at a watermark or later.
func (l *UpdatesWriter) SaveHosting(ctx context.Context, hosted map[string]bool, at ledger.Offset) (err error) {
	defer session.WrapRefused(&err, "save which parties are hosted")
	save := dbsqlc.HostingSaveParams{AskedOffset: int64(at)}
	for party, here := range hosted {
		save.Parties, save.Hosted = append(save.Parties, party), append(save.Hosted, here)
	}
	return l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return queries.HostingSave(ctx, tx, save)
	})
}

// ForgetHosting removes what is stored of parties that a scope does not name, if it names any.
func (l *UpdatesWriter) ForgetHosting(ctx context.Context, named []string) (err error) {
	defer pg.Wrap(&err, "forget which other parties are hosted")
	return l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return queries.HostingForget(ctx, tx, append([]string{}, named...))
	})
}
