package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/features/typed"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// newTypes returns the task that stores packages of a source with their types. It reads those that a package needs from
// the database.
func newTypes(ctx context.Context, source ingest.TypesSource, leader *store.UpdatesWriter,
	logger *slog.Logger) *ingest.Types {
	packages := typed.Packages{Content: func(id string) ([]byte, error) { return leader.PackageContent(ctx, id) }}
	return &ingest.Types{Source: source, Sink: leader, Logger: logger, Read: packages.Read, Forget: packages.Forget}
}

// types compares the stored packages with their ids, and what is stored of their types with what they say.
func (v *verification) types(ctx context.Context) error {
	list, err := v.db.Packages(ctx)
	if err != nil || len(list) == 0 {
		return err
	}
	c := typesComparison{db: v.db, found: v.found}
	c.packages.Content = func(id string) ([]byte, error) { return v.db.PackageContent(ctx, id) }
	for i, p := range list {
		v.progress(audit.Progress{Step: "packages, with their hashes", Done: int64(i), Of: int64(len(list))})
		if err := c.compare(ctx, p.ID); err != nil {
			return fmt.Errorf("compare package %s with its content: %w", p.ID, err)
		}
	}
	if v.repairer == nil || len(c.again)+len(c.forget) == 0 {
		return nil
	}
	err = audit.Patiently(ctx, v.logger, func() error { return v.repairer.RepairPackages(ctx, c.again, c.forget) })
	if err != nil {
		return fmt.Errorf("repair what packages say of types: %w", err)
	}
	if len(c.forget) > 0 {
		v.note("packages %v: their content was damaged and is gone; `indexer run` reads it again", c.forget)
	}
	return nil
}

type typesComparison struct {
	db       *audit.Stored
	packages typed.Packages
	found    audit.Found
	again    []*ledger.Package // to be written again
	forget   []string          // damaged
}

func (c *typesComparison) compare(ctx context.Context, id string) error {
	content, err := c.db.PackageContent(ctx, id)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil // a repair forgot it meanwhile
	}
	if err != nil {
		return err
	}
	defer c.packages.Forget() // whatever is remembered takes memory
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != id {
		c.forget = append(c.forget, id)
		return c.db.DifferentPackage(id, "content with the hash "+id, "content with the hash "+hex.EncodeToString(sum[:]),
			c.found)
	}
	p, err := c.packages.Read(id, content)
	if err != nil || len(p.Needs) > 0 { // where others are missing, there can be types of before
		return err
	}
	differs := false
	err = c.db.ComparePackage(ctx, &p, func(d audit.Difference) error {
		differs = true
		return c.found(d)
	})
	if differs {
		c.again = append(c.again, &p)
	}
	return err
}
