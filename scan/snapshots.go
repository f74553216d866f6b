package scan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// The paths of the snapshots of the active contracts.
const (
	pathSnapshotBefore = "/v0/state/acs/snapshot-timestamp"
	pathSnapshot       = "/v1/state/acs"
)

// SnapshotOffset returns the offset of the newest snapshot at or below an offset. A service takes one every few hours.
//
// Errors: a *ledger.Problem, which wraps ledger.ErrNotOffered, where there is none; the others are those of
// ReadUpdates.
func (u *Updates) SnapshotOffset(ctx context.Context, upTo ledger.Offset) (ledger.Offset, error) {
	migrationID, before := upTo.NetworkPosition()
	var none error
	for migrationID >= 0 {
		asked := jsonhttp.Request{Operation: "snapshot-before", Path: pathSnapshotBefore, Query: url.Values{
			"before": {before.Format(recordTimeForm)}, "migration_id": {strconv.FormatInt(migrationID, 10)},
		}}
		text, err := member[string](ctx, u.client, asked, "record_time")
		if errors.Is(err, ledger.ErrNotOffered) {
			none = err
			_, before = ledger.LastOfMigration(migrationID - 1).NetworkPosition()
			always := func(time.Time) bool { return true }
			if migrationID, err = u.migrationBefore(ctx, migrationID, always); err == nil {
				continue
			}
		}
		if err != nil {
			return 0, fmt.Errorf("ask for the newest snapshot up to offset %d: %w", upTo, err)
		}
		var at ledger.Offset
		taken, err := ledger.ParseTime(text)
		if err == nil {
			at, err = ledger.NetworkOffset(migrationID, taken)
		}
		if err == nil && at > upTo {
			err = fmt.Errorf("it is at offset %d", at)
		}
		if err != nil {
			return 0, &Error{Failure: jsonhttp.Unusable(asked.Operation, fmt.Errorf("the newest snapshot up to offset %d: %w",
				upTo, err))}
		}
		return at, nil
	}
	return 0, &ledger.Problem{
		What: fmt.Sprintf("the Scan service has no snapshot up to offset %d", upTo),
		Do:   "read the updates from their beginning: `indexer run` with a new database",
		Err:  none,
	}
}

// snapshotRequest is the body of POST /v1/state/acs.
type snapshotRequest struct {
	MigrationID int64  `json:"migration_id"`
	RecordTime  string `json:"record_time"`
	Match       string `json:"record_time_match"`
	PageSize    int    `json:"page_size"`
	After       *int64 `json:"after,omitzero"`
}

// ReadSnapshot reads one page of the snapshot at an offset, after a token; the zero token reads the first. The service
// shows little more than the ids of the contracts. So the updates that created them are read too, and complete the
// entries. Contracts of which the party is no stakeholder are left out, because the service need not show their ends.
//
// Errors: a *ledger.Problem, which wraps ledger.ErrNotOffered, where the service has no snapshot there; a
// *ledger.Problem where a contract's creation is not in the updates; the others are those of ReadUpdates.
func (u *Updates) ReadSnapshot(ctx context.Context, at ledger.Offset, token ledger.Token) (ledger.SnapshotPage, error) {
	page, err := u.readSnapshot(ctx, at, token)
	if err != nil {
		return ledger.SnapshotPage{}, fmt.Errorf("read the snapshot at offset %d: %w", at, err)
	}
	return page, nil
}

func (u *Updates) readSnapshot(ctx context.Context, at ledger.Offset, token ledger.Token) (ledger.SnapshotPage, error) {
	migrationID, recordTime := at.NetworkPosition()
	r := snapshotRequest{MigrationID: migrationID, RecordTime: recordTime.Format(recordTimeForm), Match: "exact"}
	if token.Value != "" {
		after, err := strconv.ParseInt(token.Value, 10, 64)
		if err != nil {
			return ledger.SnapshotPage{}, &ledger.Problem{What: fmt.Sprintf("%q is no token of a Scan service's snapshot",
				token.Value), Do: "begin the snapshot again with --restart"}
		}
		r.After = &after
	}
	party, err := u.Party(ctx)
	if err != nil {
		return ledger.SnapshotPage{}, err
	}
	got, bytes, err := u.askSnapshot(ctx, r)
	if err != nil {
		return ledger.SnapshotPage{}, err
	}
	got.Contracts = slices.DeleteFunc(got.Contracts, func(c ledger.NetworkContract) bool {
		return !isStakeholder(&c, party)
	})
	page := ledger.SnapshotPage{Last: got.Next == nil, Bytes: bytes}
	if !page.Last {
		page.Next = ledger.Token{Kind: ledger.TokenPage, Value: strconv.FormatInt(*got.Next, 10)}
	}
	u.creations.begin(fmt.Sprintf("%d after %s", at, token.Value))
	page.Entries, err = u.entries(ctx, migrationID, got.Contracts)
	return page, err
}

func isStakeholder(c *ledger.NetworkContract, party string) bool {
	return slices.Contains(c.Signatories, party) || slices.Contains(c.Observers, party)
}

// askSnapshot requests a page, and a smaller one if that helps.
func (u *Updates) askSnapshot(ctx context.Context,
	r snapshotRequest) (page ledger.NetworkSnapshotPage, bytes int64, err error) {
	const operation = "snapshot"
	for {
		r.PageSize = u.snapshots.Ask()
		a, err := u.client.do(ctx, jsonhttp.Request{Operation: operation, Path: pathSnapshot, Body: r,
			MaxBytes: u.client.maxBody})
		if err == nil {
			if page, err = ledger.DecodeNetworkSnapshot(a.Body); err != nil {
				err = u.client.misread(operation, a, fmt.Errorf("%s: %w", operation, err))
			}
			jsonhttp.Release(a.Body)
		}
		if err == nil {
			u.snapshots.Worked()
			return page, int64(len(a.Body)), cmp.Or(r.check(&page), u.empties.Came(len(page.Contracts), page.Next == nil))
		}
		u.client.otherMayAnswer()
		if shrinkAfter(u.snapshots, r.PageSize, err) {
			continue
		}
		err = u.client.explain(err, purpose{method: http.MethodPost, path: pathSnapshot,
			record: "a contract of the snapshot"})
		if errors.Is(err, ledger.ErrNotOffered) {
			err = &ledger.Problem{
				What: fmt.Sprintf("the Scan service has no snapshot of migration %d at %s", r.MigrationID, r.RecordTime),
				Do: "services of Splice 0.6.1 or later have one every few hours: leave --at-offset out; to begin another one, " +
					"add --restart",
				Err: err,
			}
		}
		return page, 0, err
	}
}

func (r *snapshotRequest) check(page *ledger.NetworkSnapshotPage) error {
	var err error
	switch taken := page.RecordTime.Time.UTC().Format(recordTimeForm); {
	case page.MigrationID != r.MigrationID || taken != r.RecordTime:
		err = fmt.Errorf("the answer is of another snapshot, of migration %d at %s", page.MigrationID, taken)
	case r.After != nil && page.Next != nil && *page.Next <= *r.After:
		err = errors.New("the page leads back to itself")
	default:
		return nil
	}
	return &Error{Failure: jsonhttp.Unusable("snapshot", err)}
}
