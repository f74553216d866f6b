package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
)

// Status is where a database stands: its updates stream, what is done beside it, and its transaction history.
type Status struct {
	ParticipantID string // empty: not recorded

	Extent                    // where it is not Started, the fields from here to Hosting are zero
	Frontier    ledger.Offset // everything up to here is fetched and stored; at least Watermark
	UpdatedAt   time.Time     // when the watermark last moved
	RecordTime  time.Time     // of the last update up to the watermark; zero: there is none
	FirstUpdate ledger.Offset // that is stored; 0: none is
	// what is stored, ranges that touch each other as one; at most the 200 largest, the largest first
	Coverage []ledger.Range

	// Hosting are the last changes of where the participant hosts the parties that are named in the scope, the latest
	// first.
	Hosting []HostingChange

	Snapshot *ledger.SnapshotProgress // unfinished; nil where there is none
	// SnapshotScope is the scope of the unfinished snapshot, as Scope.Hash has it.
	SnapshotScope string
	Unknown       int64 // elements of unknown kinds that were stored raw
	Leader        Leadership

	Lookups  Lookups
	Packages Packages
	Tasks    []Task // by name

	Progress []RecordedProgress // the long work that is under way, by stream

	Verified Verified

	Transactions       *TransactionsStatus // nil: the transaction history was not begun
	TransactionsLeader Leadership          // of the transaction history
}

// HostingChange is a party that was onboarded to the participant with contracts from elsewhere, or that it does not
// host any more, on one synchronizer.
type HostingChange struct {
	Offset       ledger.Offset            `json:"offset"`
	Kind         ledger.TopologyEventKind `json:"kind"` // onboarding or revoked
	Party        string                   `json:"party"`
	Synchronizer string                   `json:"synchronizer_id,omitempty"` // empty: the update named none
}

// TransactionsStatus is where the transaction history stands. The JSON forms of this type and the next three are for
// scripts.
type TransactionsStatus struct {
	Records int64 `json:"records"` // that are shown
	// the event id after which reading resumes; empty: there is none
	Cursor string `json:"cursor,omitempty"`
	// the latest date among the last records that were read; zero: none of them has one
	NewestRecord time.Time `json:"newest_record,omitzero"`
	UpdatedAt    time.Time `json:"updated_at,omitzero"`  // when the position last moved
	Rereading    bool      `json:"rereading"`            // the history is read again from its beginning
	Unknown      int64     `json:"unknown_records"`      // records of unknown kinds that were stored raw
	NetworkID    string    `json:"network_id,omitempty"` // the party that operates the network; empty: not recorded
}

// Lookups counts the contracts whose creation was never seen, by what became of their look-up.
type Lookups struct {
	Wanted   int64 `json:"wanted"`
	Found    int64 `json:"found"`
	NotFound int64 `json:"not_found"`
	Unusable int64 `json:"unusable"`
}

// Packages counts packages.
type Packages struct {
	Known         int64 `json:"-"`             // that a template id named or that were vetted at some time
	Vetted        int64 `json:"vetted"`        // per synchronizer, when that was last read
	Synchronizers int64 `json:"synchronizers"` // on which something was vetted then
	Changes       int64 `json:"changes"`       // of what is vetted, that were seen
}

// Verified is how far what is stored was compared with its source again, and was equal.
type Verified struct {
	Offset    ledger.Offset `json:"offset"`            // of the updates; 0 where none are stored
	Seq       int64         `json:"seq"`               // of the transaction history
	Windows   int64         `json:"windows"`           // that were sealed
	Different int64         `json:"different_windows"` // of them differed
	NotShown  int64         `json:"not_shown_windows"` // of them were not shown any more, and were not compared
	Pruned    int64         `json:"pruned_windows"`    // of them follow from what was pruned here, and were not compared
}

// Status reads where the database stands.
func (s *Store) Status(ctx context.Context) (status Status, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) (err error) {
		status, err = s.status(ctx, tx)
		return err
	})
	return status, err
}

func (s *Store) status(ctx context.Context, tx pgx.Tx) (status Status, err error) {
	if status.ParticipantID, err = queries.ParticipantGet(ctx, tx); err != nil {
		return status, fmt.Errorf("read the stored participant: %w", err)
	}
	if status.Leader, err = s.leadership(ctx, tx, LeaseUpdates); err != nil {
		return status, err
	}
	if status.TransactionsLeader, err = s.leadership(ctx, tx, LeaseTransactions); err != nil {
		return status, err
	}
	snapshot, err := queries.SnapshotUnfinished(ctx, tx)
	if status.Snapshot, err = bounds.Snapshot(snapshot, err); err != nil {
		return status, fmt.Errorf("read the unfinished snapshot: %w", err)
	}
	status.SnapshotScope = snapshot.Scope
	if status.Unknown, err = queries.StatusUnknownKinds(ctx, tx); err != nil {
		return status, fmt.Errorf("count the elements of unknown kinds: %w", err)
	}
	if err := s.besideStream(ctx, tx, &status); err != nil {
		return status, err
	}
	if status.Transactions, err = s.transactionsStatus(ctx, tx); err != nil {
		return status, err
	}
	if status.Verified, err = s.verified(ctx, tx); err != nil {
		return status, err
	}
	if status.Extent, err = bounds.Read(ctx, tx); err != nil || !status.Started {
		return status, err
	}
	checkpoint, err := queries.CheckpointGet(ctx, tx, StreamUpdates)
	if err != nil {
		return status, fmt.Errorf("read when the watermark moved: %w", err)
	}
	status.UpdatedAt = checkpoint.UpdatedAt.Time
	if status.RecordTime, err = s.recordTime(ctx, tx, status.Watermark); err != nil {
		return status, err
	}
	frontier, err := queries.StatusFrontier(ctx, tx)
	if err != nil {
		return status, fmt.Errorf("read the frontier: %w", err)
	}
	status.Frontier = ledger.Offset(frontier)
	return status, s.readCoverage(ctx, tx, &status)
}

// transactionsStatus reads where the transaction history stands; nil where it was not begun.
func (s *Store) transactionsStatus(ctx context.Context, tx pgx.Tx) (*TransactionsStatus, error) {
	position, err := bounds.TransactionsPosition(ctx, tx)
	if err != nil {
		return nil, err
	}
	if position.Revision == 0 {
		return nil, nil
	}
	checkpoint, err := queries.CheckpointGet(ctx, tx, StreamTransactions)
	if err != nil {
		return nil, fmt.Errorf("read the checkpoint of the transaction history: %w", err)
	}
	status := TransactionsStatus{
		Records: position.LastSeq, Cursor: textOf(checkpoint.EventID),
		UpdatedAt: checkpoint.UpdatedAt.Time.UTC(), Rereading: position.Rereading,
	}
	if status.NetworkID, err = queries.NetworkGet(ctx, tx); err != nil {
		return nil, fmt.Errorf("read the stored network: %w", err)
	}
	newest, err := queries.StatusNewestTransaction(ctx, tx, dbsqlc.StatusNewestTransactionParams{
		FromExclusive: max(0, position.LastSeq-ledger.TransactionsTail), ToInclusive: position.LastSeq,
	})
	if err != nil {
		return nil, fmt.Errorf("read the date of the newest record: %w", err)
	}
	status.NewestRecord = newest.Time.UTC()
	if status.Unknown, err = queries.StatusUnknownTransactions(ctx, tx); err != nil {
		return nil, fmt.Errorf("count the records of unknown kinds: %w", err)
	}
	return &status, nil
}

// besideStream reads what the tasks beside the stream brought.
func (s *Store) besideStream(ctx context.Context, tx pgx.Tx, status *Status) error {
	lookups, err := queries.LookupsCount(ctx, tx)
	if err != nil {
		return fmt.Errorf("count the look-ups: %w", err)
	}
	status.Lookups = Lookups(lookups)
	packages, err := queries.PackagesCount(ctx, tx)
	if err != nil {
		return fmt.Errorf("count the packages: %w", err)
	}
	status.Packages = Packages(packages)
	if status.Tasks, err = s.tasks(ctx, tx); err != nil {
		return err
	}
	status.Progress, err = s.progress(ctx, tx)
	return err
}

// Verified reads how far what is stored was compared with its source again.
func (s *Store) Verified(ctx context.Context) (Verified, error) { return s.verified(ctx, s.db.Pool) }

func (s *Store) verified(ctx context.Context, db dbsqlc.DBTX) (_ Verified, err error) {
	defer pg.Wrap(&err, "read how far the database was verified")
	row, err := queries.VerificationSummary(ctx, db)
	return Verified{
		Offset: ledger.Offset(row.VerifiedOffset), Seq: row.VerifiedSeq, Windows: row.Windows, Different: row.Different,
		NotShown: row.NotShown, Pruned: row.Pruned,
	}, err
}

// UpdatesBetween counts the updates with from < offset <= to.
func (s *Store) UpdatesBetween(ctx context.Context, from, to ledger.Offset) (n int64, err error) {
	defer pg.Wrap(&err, "count updates")
	return queries.StatusUpdatesBetween(ctx, s.db.Pool,
		dbsqlc.StatusUpdatesBetweenParams{FromExclusive: int64(from), ToInclusive: int64(to)})
}

// coverageShown is the most ranges that Status lists.
const coverageShown = 200

// readCoverage reads which ranges are stored, the first update that is, and who has come and gone.
func (s *Store) readCoverage(ctx context.Context, tx pgx.Tx, status *Status) error {
	rows, err := queries.StatusCoverage(ctx, tx, coverageShown)
	if err != nil {
		return fmt.Errorf("read the coverage: %w", err)
	}
	for _, row := range rows {
		status.Coverage = append(status.Coverage, ledger.Range{From: ledger.Offset(row.FromExclusive),
			To: ledger.Offset(row.ToInclusive)})
	}
	if status.Hosting, err = s.hosting(ctx, tx); err != nil {
		return err
	}
	first, err := queries.StatusFirstUpdate(ctx, tx)
	if err != nil {
		return fmt.Errorf("read the first update: %w", err)
	}
	status.FirstUpdate = ledger.Offset(first)
	return nil
}

// hostingShown is the most changes that Status lists.
const hostingShown = 10

// hosting reads the last changes of each party that the scope names. Where it names none, parties come and go, and
// nobody has to act.
func (s *Store) hosting(ctx context.Context, tx pgx.Tx) (list []HostingChange, err error) {
	scope, _, err := s.scopeInForce(ctx, tx)
	if err != nil || len(scope.Parties) == 0 {
		return nil, err
	}
	rows, err := queries.StatusHosting(ctx, tx, dbsqlc.StatusHostingParams{Parties: scope.Parties, AtMost: hostingShown})
	if err != nil {
		return nil, fmt.Errorf("read which parties came to the participant or left it: %w", err)
	}
	for _, row := range rows {
		list = append(list, HostingChange{
			Offset: ledger.Offset(row.LedgerOffset), Kind: ledger.TopologyEventKind(row.Kind), Party: row.Party,
			Synchronizer: row.SynchronizerID,
		})
	}
	return list, nil
}
