package store

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"ledgerindexer/ledger"
)

// Errors that callers branch on. All of them mean: read the watermark, or the position, again before writing anything.
var (
	// ErrNotLeader is returned by writes of a leader whose epoch is over: another process leads.
	ErrNotLeader = errors.New("this process does not lead any more")
	// ErrWatermarkMoved is returned where the watermark is not where the writer saw it.
	ErrWatermarkMoved = errors.New("the watermark is not where this writer saw it")
	// ErrPositionMoved is returned where the position in the transaction history is not the one that the writer saw: read
	// HistoryPosition again.
	ErrPositionMoved = errors.New("the position in the transaction history is not the one that this writer saw")
	// ErrCovered is returned where the range is in the facts already.
	ErrCovered = errors.New("the range is covered already")
)

// SQLSTATE codes that mean something to this package.
const (
	codeUniqueViolation      = "23505"
	codeExclusionViolation   = "23P01"
	codeSerializationFailure = "40001"
	codeLockNotAvailable     = "55P03"
	codeDuplicateSchema      = "42P06"
	codeDuplicateTable       = "42P07" // or index
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

// unusable makes a *ledger.Problem of an error which says that this database can't be used as it is: it does not
// exist, or does not let the user in. Other errors stay as they are.
func (s *Store) unusable(err error) error {
	if !hasCode(err, "3D000", "28000", "28P01", "42501") { // no such database; refused; wrong password; no right
		return err
	}
	return &ledger.Problem{
		What: fmt.Sprintf("database %s can't be used", s.Address()),
		Do:   "create the database, correct the user or password, or grant what is missing (docs/operations.md says which rights are needed)",
		Err:  err,
	}
}

// The SQLSTATE classes of errors that the same rows meet again: data, integrity, syntax or rights, limits.
var refusalClasses = []string{"22", "23", "42", "54"}

// refused makes a *ledger.Problem of an error which says that the database does not take these rows, now or later.
// Other errors, those that tell of a twin among them, stay as they are.
func refused(err error) error {
	var pgErr *pgconn.PgError
	if errors.Is(err, ErrCovered) || !errors.As(err, &pgErr) {
		return err
	}
	for _, class := range refusalClasses {
		if strings.HasPrefix(pgErr.Code, class) {
			return &ledger.Problem{
				What: "the database refuses the rows (" + strings.TrimSpace(pgErr.TableName+" "+pgErr.ConstraintName+" "+pgErr.Detail) + ")",
				Do:   "nothing of them was stored, and trying again would meet the same: if nobody changed schema indexer or its rights, report it with this message",
				Err:  err,
			}
		}
	}
	return err
}
