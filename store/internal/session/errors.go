package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/pg"
)

// Errors that callers branch on. All of them mean: read the watermark, or the position, again before writing anything.
var (
	// ErrNotLeader is returned by writes of a leader whose epoch is over: another process leads.
	ErrNotLeader = errors.New("this process does not lead any more")
	// ErrWatermarkMoved is returned where the watermark is not where the writer saw it.
	ErrWatermarkMoved = errors.New("the watermark is not where this writer saw it")
	// ErrPositionMoved is returned where the position in the transaction history is not the one that the writer saw: read
	// TransactionsPosition again.
	ErrPositionMoved = errors.New("the position in the transaction history is not the one that this writer saw")
	// ErrCovered is returned where the range is in the facts already.
	ErrCovered = errors.New("the range is covered already")
)

// refusal is the reason of an error that lasts until somebody acts. Errors that may pass by themselves have none: a
// server that is away, starts, stops, recovers or is a standby, too many connections, a lock, a deadlock, a full disk.
type refusal string

const (
	refusalUser      refusal = "user"      // or its password, or where it comes from
	refusalDatabase  refusal = "database"  // there is none of that name
	refusalParameter refusal = "parameter" // of the connection, which a pooler does not know
	refusalPooled    refusal = "pooled"    // sessions don't live as long as connections
	refusalSchema    refusal = "schema"    // rights in it are missing, or what should be in it
	refusalPolicies  refusal = "policies"  // row-level security hides rows from this user
	refusalServer    refusal = "server"    // it lacks a feature
	refusalRows      refusal = "rows"      // data, integrity, limits: the same rows would be refused again
)

// refusalsByCode are the beginnings of SQLSTATE codes; of two that fit the longer one counts.
var refusalsByCode = map[string]refusal{
	"28": refusalUser, "3D": refusalDatabase,
	"26": refusalPooled, "42P05": refusalPooled, // prepared statements that are not there, or are already
	"0A": refusalServer, "3F": refusalSchema, "42": refusalSchema,
	"22": refusalRows, "23": refusalRows, "54": refusalRows,
}

// codePooler is the code of all errors of PgBouncer itself, and of a server that refused it. Only the text says more.
const codePooler = "08P01"

// refusalsByText are parts of such texts; the first that fits counts.
var refusalsByText = []struct {
	part string
	refusal
}{
	{"unsupported startup parameter", refusalParameter},
	{"statement pooling mode", refusalPooled},
	{"authentication failed", refusalUser}, {"no such user", refusalUser}, {"pg_hba.conf", refusalUser},
	{"role \"", refusalUser},
	{"no such database", refusalDatabase}, {"does not exist", refusalDatabase},
	{"permission denied", refusalSchema},
}

// refusalOf returns why the database refused; empty: it did not, or what is in the way may pass by itself.
func refusalOf(err error) (why refusal) {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return ""
	}
	switch pgErr.Routine { // these have the codes of others
	case "RevalidateCachedQuery": // a prepared statement is older than a migration
		return ""
	case "check_enable_rls":
		return refusalPolicies
	}
	if pgErr.Code == codePooler {
		for _, text := range refusalsByText {
			if strings.Contains(pgErr.Message, text.part) {
				return text.refusal
			}
		}
		return ""
	}
	longest := 0
	for code, refusal := range refusalsByCode {
		if strings.HasPrefix(pgErr.Code, code) && len(code) > longest {
			why, longest = refusal, len(code)
		}
	}
	return why
}

// Unusable makes a *ledger.Problem of an error which says that this database can't be used as it is, now or later.
// Other errors stay as they are. A refused user or database that was let in before is no Problem for some time:
// passwords are changed in two places, databases are renamed and restored. If the server takes no writes, Unusable
// closes the idle sessions: a session keeps the setting of its role or database from when it began, also after somebody
// corrects that.
func (d *Database) Unusable(err error) error {
	err = inOneLine(err)
	var problem *ledger.Problem
	why := refusalOf(err)
	switch {
	case pg.HasCode(err, pg.ReadOnly):
		d.Pool.Reset()
		return fmt.Errorf("database %s takes no writes, because it is a standby, or default_transaction_read_only is on "+
			"(`indexer check` says where): %w", d.Address(), err)
	case why == "" || errors.As(err, &problem):
		return err
	case why == refusalPooled:
		return fmt.Errorf("database %s: %w: %w", d.Address(), ErrPooled, err)
	case (why == refusalUser || why == refusalDatabase) && d.refusals.mayPass(d.Patience):
		return err
	}
	return &ledger.Problem{What: fmt.Sprintf("database %s can't be used", d.Address()), Do: cures[why], Err: err}
}

// Wrap is pg.Wrap for an error that may say that this database can't be used (see Unusable).
func (d *Database) Wrap(err *error, format string, args ...any) {
	pg.Wrap(err, format, args...)
	*err = d.Unusable(*err)
}

// connectionFailure is an error that says in one line, once each, why a connection failed. pgconn takes a line for each
// attempt, with TLS and without, so that most reasons stand there twice.
type connectionFailure struct {
	error
	text string
}

func (e connectionFailure) Error() string { return e.text }

func (e connectionFailure) Unwrap() error { return e.error }

// inOneLine returns a failure to connect as a connectionFailure, and other errors as they are.
func inOneLine(err error) error {
	var failed *pgconn.ConnectError
	if !errors.As(err, &failed) {
		return err
	}
	said, rest, several := strings.Cut(failed.Error(), "\n")
	if !several {
		return err
	}
	var reasons []string
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		if !slices.ContainsFunc(reasons, func(before string) bool { return strings.Contains(before, line) }) {
			reasons = append(reasons, line)
		}
	}
	return connectionFailure{err, strings.Replace(err.Error(), failed.Error(), said+" "+strings.Join(reasons, "; "), 1)}
}

// cures are for databases that can't be used.
var cures = map[refusal]string{
	refusalUser: "correct the user or password, or let the user in (pg_hba.conf, LOGIN; a pooler has a list of " +
		"users)",
	refusalDatabase:  "create the database, or correct its name (a pooler has a list of databases)",
	refusalParameter: "leave the parameter out of --database-url, or have the pooler pass it on",
	refusalSchema: "grant what is missing (docs/operations.md says which rights are needed; without USAGE on a schema " +
		"nothing in it is found), or restore what was removed from the schema of the tables; the server has to be " +
		"PostgreSQL 15 or later",
	refusalPolicies: "use the role that runs the indexer, or one with BYPASSRLS: since `indexer grant` has limited a " +
		"role to parties, others don't see all rows",
	refusalServer: "use PostgreSQL 15 or later itself: a service or an extension that changes how tables are stored, or " +
		"what only speaks like PostgreSQL, lacks what the message names",
	refusalRows: "what it holds does not fit this program: if nobody changed the schema of the tables, report it with " +
		"this message",
}

// Cure returns what to do about a refusal to connect or to be used; empty: err is none.
func Cure(err error) string { return cures[refusalOf(err)] }

// patience is how long a process that was connected before waits to be let in again.
const patience = 10 * time.Minute

// refusals record whether a user that is refused now was let in before, and since when it is refused. It is safe for
// concurrent use.
type refusals struct {
	mu    sync.Mutex
	letIn bool
	since time.Time // the first refusal without a success since; zero: there is none
	last  time.Time // the last refusal
}

func (r *refusals) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.letIn, r.since = true, time.Time{}
}

// mayPass reports whether another refusal is to be waited out.
func (r *refusals) mayPass(patience time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.since.IsZero() || now.Sub(r.last) > patience { // connections that were open went on meanwhile
		r.since = now
	}
	r.last = now
	return r.letIn && time.Since(r.since) < patience
}

// WrapRefused is pg.Wrap for an error that may say that the database does not take rows (see Refused).
func WrapRefused(err *error, format string, args ...any) {
	*err = Refused(*err)
	pg.Wrap(err, format, args...)
}

// Refused makes a *ledger.Problem of an error which says that the database does not take these rows, now or later.
// Other errors stay as they are, also those that mean that an earlier transaction has written the same.
func Refused(err error) error {
	var problem *ledger.Problem
	if errors.Is(err, ErrCovered) || errors.As(err, &problem) {
		return err
	}
	switch refusalOf(err) {
	case refusalRows, refusalSchema, refusalPolicies, refusalServer:
	case refusalPooled:
		return fmt.Errorf("%w: %w", ErrPooled, err)
	default:
		return err
	}
	var pgErr *pgconn.PgError
	errors.As(err, &pgErr)
	return &ledger.Problem{
		What: "the database refuses the rows (" + strings.TrimSpace(pgErr.TableName+" "+pgErr.ConstraintName+" "+
			pgErr.Detail) + ")",
		Do: "nothing of them was stored, and trying again would fail in the same way: if nobody changed the schema of the " +
			"tables or its rights (without USAGE nothing in it is found), report it with this message",
		Err: err,
	}
}
