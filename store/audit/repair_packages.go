package audit

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/writing"
)

// RepairPackages writes again what packages say of types, and forgets packages, which the daemon then asks for again.
func (r *Repairer) RepairPackages(ctx context.Context, again []*ledger.Package, forget []string) error {
	return r.repair(ctx, []session.Role{session.RoleUpdates}, func(ctx context.Context, tx pgx.Tx) error {
		for _, p := range again {
			if err := writing.SavePackage(ctx, tx, r.stored.db.Queries, p); err != nil {
				return fmt.Errorf("package %s: %w", p.ID, err)
			}
		}
		for _, id := range slices.Sorted(slices.Values(forget)) {
			if err := r.stored.db.Queries.PackageDrop(ctx, tx,
				dbsqlc.PackageDropParams{PackageID: id, WithContent: true}); err != nil {
				return fmt.Errorf("package %s: %w", id, err)
			}
		}
		return nil
	})
}
