package store

import (
	"context"

	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/leadership"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/tables"
)

var queries = dbsqlc.New()

// The streams, as the database names them.
const (
	StreamUpdates      = tables.StreamUpdates
	StreamSnapshot     = tables.StreamSnapshot
	StreamTransactions = tables.StreamTransactions
)

// What is described where it is used.
type (
	// Config says how to reach the database.
	Config = session.Config
	// Schemas name the pair of schemas that a Store works on.
	Schemas = session.Schemas
	// Lease is the right to write certain streams, to prune, or to repair.
	Lease = session.Lease
	// Extent is how much of the ledger a database holds.
	Extent = bounds.Extent
	// CommitOrder is the place of a write among others that run at the same time.
	CommitOrder = leadership.CommitOrder
)

// NetworkSchemas are the pair of schemas of the updates of a network.
var NetworkSchemas = session.NetworkSchemas

// The leases. The snapshot backfill takes LeaseUpdates: the stream of updates continues what it stored.
const (
	LeaseUpdates      = session.LeaseUpdates
	LeaseTransactions = session.LeaseTransactions
	LeasePruning      = session.LeasePruning
	LeaseRepair       = session.LeaseRepair
)

// Errors that callers branch on. All but ErrPooled mean: read the watermark, or the position, again before writing
// anything.
var (
	// ErrNotLeader is returned by writes of a leader whose epoch is over: another process leads.
	ErrNotLeader = session.ErrNotLeader
	// ErrWatermarkMoved is returned where the watermark is not where the writer saw it.
	ErrWatermarkMoved = session.ErrWatermarkMoved
	// ErrPositionMoved is returned where the position in the transaction history is not the one that the writer saw.
	ErrPositionMoved = session.ErrPositionMoved
	// ErrCovered is returned where the range is in the facts already.
	ErrCovered = session.ErrCovered
	// ErrPooled is a *ledger.Problem. It refuses a way to the database on which sessions do not live as long as
	// connections.
	ErrPooled = session.ErrPooled
)

// Cure returns what to do about a refusal to connect or to be used; empty: err is none.
func Cure(err error) string { return session.Cure(err) }

// IsDatabaseError reports whether the database refused, or could not be reached or did not answer to the end.
func IsDatabaseError(err error) bool { return pg.IsError(err) }

// Store reads the database and becomes leader to write it. It is safe for concurrent use.
type Store struct{ db *session.Database }

// Open connects lazily: an unreachable server is reported by the first use. A URL that cannot be understood is an
// error, which never repeats the URL's password, as are schemas that can't be.
func Open(cfg Config) (*Store, error) {
	db, err := session.Open(cfg)
	if err != nil {
		return nil, err
	}
	return &Store{db}, nil
}

// Close releases the connections. Leaders have to be closed before.
func (s *Store) Close() { s.db.Close() }

// Ping returns an error if the database does not answer.
func (s *Store) Ping(ctx context.Context) error { return s.db.Ping(ctx) }

// Backfill returns the command that seeds these schemas from a snapshot, for messages.
func (s *Store) Backfill() string { return s.db.Config.Backfill }

// Address names the database for people, without user and password.
func (s *Store) Address() string { return s.db.Address() }

// Database returns the way to the database, for package audit.
func (s *Store) Database() *session.Database { return s.db }

// textOf returns a text, empty for NULL.
func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
