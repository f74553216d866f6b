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

// ComparePackage compares what is stored of the types of a package with what its content says, and calls found for each
// table that differs. Everything is read in one read-only snapshot. A package that lacked another one which is stored
// now is not compared: the daemon has yet to write again what it says.
func (s *Stored) ComparePackage(ctx context.Context, p *ledger.Package, found Found) error {
	return s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		unfinished, err := queries.PackageIsCompletable(ctx, tx, p.ID)
		if err != nil || unfinished {
			return err
		}
		definitions, err := queries.PackageDefinitionList(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		choices, err := queries.PackageChoiceList(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		fields, err := queries.PackageFieldList(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		wanted := writing.PackageRows(p)
		compareUnordered("package_definitions", p.ID, wanted.Definitions, definitions, found)
		compareUnordered("package_choices", p.ID, wanted.Choices, choices, found)
		compareUnordered("package_fields", p.ID, wanted.Fields, fields, found)
		return nil
	})
}

// compareUnordered reports a table whose rows of a package are not those that are wanted.
func compareUnordered[T any](relation, id string, wanted, stored []T, found Found) {
	count := map[string]int{}
	for _, r := range wanted {
		count[fmt.Sprintf("%#v", r)]++
	}
	missing, extra := 0, 0
	for _, r := range stored {
		key := fmt.Sprintf("%#v", r)
		if count[key]--; count[key] < 0 {
			extra++
		}
	}
	for _, n := range count {
		missing += max(n, 0)
	}
	if missing > 0 {
		found(derivedDifference(Missing, relation, fmt.Sprintf("package_id %s, %d rows", id, missing)))
	} else if extra > 0 {
		found(derivedDifference(Extra, relation, fmt.Sprintf("package_id %s, %d rows", id, extra)))
	}
}

// RepairPackages writes again what packages say of types, and forgets packages, which the daemon then asks for again.
func (r *Repairer) RepairPackages(ctx context.Context, again []*ledger.Package, forget []string) error {
	return r.repair(ctx, []session.Lease{session.LeaseUpdates}, func(ctx context.Context, tx pgx.Tx) error {
		for _, p := range again {
			if err := writing.SavePackage(ctx, tx, p); err != nil {
				return fmt.Errorf("package %s: %w", p.ID, err)
			}
		}
		for _, id := range slices.Sorted(slices.Values(forget)) {
			if err := queries.PackageDrop(ctx, tx, dbsqlc.PackageDropParams{PackageID: id, WithContent: true}); err != nil {
				return fmt.Errorf("package %s: %w", id, err)
			}
		}
		return nil
	})
}
