package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/features/typed"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// newTypes returns the task that stores packages of a source with their types. It reads those that a package needs from
// the database.
func newTypes(ctx context.Context, source ingest.PackageSource, leader *store.UpdatesWriter,
	logger *slog.Logger) *ingest.PackageContents {
	packages := typed.Packages{Content: func(id string) ([]byte, error) { return leader.PackageContent(ctx, id) }}
	return &ingest.PackageContents{
		Source: source, Sink: leader, Logger: logger, Read: packages.Read, Forget: packages.Forget,
	}
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
		wanted, stored := "content with the hash "+id, "content with the hash "+hex.EncodeToString(sum[:])
		c.found(audit.Difference{Kind: audit.Altered, Relation: "package_contents", Row: "package_id " + id,
			Column: "content", Wanted: &wanted, Stored: &stored, Derived: true})
		return nil
	}
	p, err := c.packages.Read(id, content)
	if err != nil || len(p.Needs) > 0 { // where others are missing, there can be types of before
		return err
	}
	differs := false
	err = c.db.ComparePackage(ctx, &p, func(d audit.Difference) {
		differs = true
		c.found(d)
	})
	if differs {
		c.again = append(c.again, &p)
	}
	return err
}
