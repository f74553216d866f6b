package store

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// Errors that callers branch on. All of them mean: read the watermark again before writing anything.
var (
	// ErrNotLeader is returned by writes of a leader whose epoch is over: another process leads.
	ErrNotLeader = errors.New("this process does not lead any more")
	// ErrWatermarkMoved is returned where the watermark is not where the writer saw it.
	ErrWatermarkMoved = errors.New("the watermark is not where this writer saw it")
	// ErrCovered is returned where the range is in the facts already.
	ErrCovered = errors.New("the range is covered already")
)

// SQLSTATE codes that mean something to this package.
const (
	codeUniqueViolation    = "23505"
	codeExclusionViolation = "23P01"
	codeLockNotAvailable   = "55P03"
	codeDuplicateSchema    = "42P06"
)

func hasCode(err error, codes ...string) bool {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return false
	}
	for _, code := range codes {
		if pgErr.Code == code {
			return true
		}
	}
	return false
}
