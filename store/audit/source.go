package audit

import (
	"context"
	"fmt"
	"log/slog"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
)

// UpdateSource is what verification needs of a participant, or a Scan service.
type UpdateSource interface {
	ingest.UpdateSource
	ingest.SnapshotSource
	ingest.LookupSource
}

// inRanges is an UpdateSource that reads updates through ingest.Ranges.
type inRanges struct {
	UpdateSource
	ranges ingest.Ranges
	logger *slog.Logger
}

// ReadUpdates implements UpdateSource. The page begins where it was asked for, and ends within the range.
func (s *inRanges) ReadUpdates(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
	page, err := s.ranges.Read(ctx, s.logger, s.UpdateSource.ReadUpdates, ledger.Range{From: after, To: to})
	if err == nil && (page.From != after || page.To <= after || page.To > to) {
		err = fmt.Errorf("the page covers offsets after %d up to %d", page.From, page.To)
	}
	if err != nil {
		return page, fmt.Errorf("read the updates after offset %d up to %d: %w", after, to, err)
	}
	return page, nil
}
