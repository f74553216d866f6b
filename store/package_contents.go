package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/writing"
)

// WantedPackages returns the ids of packages that templates and interfaces are of, that are vetted, or that stored
// packages refer to, and whose content is not stored, at most limit of them. Those that could not be had are left out
// until it is time to ask again.
func (l *UpdatesWriter) WantedPackages(ctx context.Context, limit int) (ids []string, err error) {
	defer pg.Wrap(&err, "read which packages are wanted")
	return queries.PackageWantedList(ctx, l.term.Pool, int32(limit))
}

// CompletablePackages returns the ids of stored packages that lacked another one which is stored now.
func (l *UpdatesWriter) CompletablePackages(ctx context.Context) (ids []string, err error) {
	defer pg.Wrap(&err, "read which packages can be completed")
	return queries.PackageCompletableList(ctx, l.term.Pool)
}

// PackageContent returns the content of a stored package. The error is ledger.ErrNotFound where it is not stored.
func (l *UpdatesWriter) PackageContent(ctx context.Context, id string) ([]byte, error) {
	return l.store.PackageContent(ctx, id)
}

// PackageContent returns the content of a stored package. The error is ledger.ErrNotFound where it is not stored.
func (s *Store) PackageContent(ctx context.Context, id string) ([]byte, error) {
	content, err := queries.PackageContentGet(ctx, s.db.Pool, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("package %s: %w", id, ledger.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("read package %s: %w", id, err)
	}
	return content, nil
}

// SavePackage stores a package and what it says of types, in one transaction and in place of what was stored of it.
// Errors: ErrNotLeader, or the database's; a *ledger.Problem where it would refuse the same again.
func (l *UpdatesWriter) SavePackage(ctx context.Context, p *ledger.Package) error {
	err := l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return writing.SavePackage(ctx, tx, p)
	})
	if err != nil {
		return fmt.Errorf("save package %s: %w", p.ID, session.Refused(err))
	}
	l.store.db.Config.Wrote("packages", 1)
	return nil
}

// MissPackage notes that a package can't be had and why. It is wanted again after an hour, then two, up to a day.
// Errors are those of SavePackage.
func (l *UpdatesWriter) MissPackage(ctx context.Context, id, failure string) (err error) {
	defer session.WrapRefused(&err, "note that package %s can't be had", id)
	return l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return queries.PackageTryUpsert(ctx, tx, dbsqlc.PackageTryUpsertParams{PackageID: id,
			Failure: rows.StorableText(failure)})
	})
}

// StoredPackage names a package whose content is stored. Name and version are empty where it could not be read.
type StoredPackage struct{ ID, Name, Version string }

// Packages lists the packages whose content is stored, by their ids.
func (s *Store) Packages(ctx context.Context) (_ []StoredPackage, err error) {
	defer pg.Wrap(&err, "list the stored packages")
	rows, err := queries.PackageContentList(ctx, s.db.Pool)
	list := make([]StoredPackage, len(rows))
	for i, r := range rows {
		list[i] = StoredPackage{r.PackageID, r.PackageName, r.PackageVersion}
	}
	return list, err
}

// NamedPackages lists the packages that events of this ledger name. Of those that are known by an interface alone the
// name is empty, and no version is given.
func (s *Store) NamedPackages(ctx context.Context) (list []StoredPackage, err error) {
	rows, err := queries.NamedPackageList(ctx, s.db.Pool)
	if err != nil {
		return nil, fmt.Errorf("list the packages that events name: %w", err)
	}
	for _, r := range rows {
		list = append(list, StoredPackage{ID: r.PackageID, Name: r.PackageName})
	}
	return list, nil
}
