package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// shown is a participant that has an update at every offset from genesis on, each of which creates a contract. The one
// at offset 60 archives that of offset 30.
type shown struct {
	UpdateSource // what is not asked
	end, pruned  ledger.Offset
	noEnd        bool
	pageSize     ledger.Offset
	bytes        int64         // of an update
	failures     int           // of reads to come
	forked       ledger.Offset // after it the updates are others; 0: it has the history that is stored
	changes      int64
	refusal      error         // to the reading of a snapshot; nil: it is shown
	snapshotAt   ledger.Offset // the only one; 0: there is one at each offset
	onlyAtEnd    bool          // a snapshot
	hidden       ledger.Offset // where what began is in no snapshot; 0: nowhere
	entries      int           // of a page of a snapshot; 0: all

	reading  func(after ledger.Offset) // before updates are read
	atEnd    func()                    // after the first page of the snapshot at the end was read
	asked    func()                    // after the end was asked for
	reads    []ledger.Range            // of updates
	snapshot []ledger.Offset           // those of which pages were read
}

// updateAt is the update at an offset.
func updateAt(at ledger.Offset) ledger.Update {
	u := storetest.OneCreation(at-1, at)[0].Updates[0]
	if at == 60 {
		u.Archived = []ledger.ArchivedEvent{storetest.Archival(1, "contract-30")}
	}
	return u
}

func pageUpTo(from, to ledger.Offset) ledger.Page {
	page := ledger.Page{From: from, To: to}
	for at := from + 1; at <= to; at++ {
		page.Updates = append(page.Updates, updateAt(at))
	}
	return page
}

func (s *shown) LedgerEnd(context.Context) (ledger.Offset, error) {
	if s.noEnd {
		return 0, ledger.ErrNotOffered
	}
	end := s.end
	if s.asked != nil {
		s.asked()
	}
	return end, nil
}

func (s *shown) PrunedOffset(context.Context) (ledger.Offset, error) { return s.pruned, nil }

func (s *shown) Changes() int64 { return s.changes }

func (s *shown) UpdateOfScope(_ context.Context, id string) (ledger.Update, ledger.JSON, error) {
	var at ledger.Offset
	if _, err := fmt.Sscanf(id, "update-%d", &at); err != nil || at <= s.pruned || s.forked > 0 && at > s.forked {
		return ledger.Update{}, nil, ledger.ErrNotFound
	}
	return updateAt(at), nil, nil
}

func (s *shown) ReadUpdates(_ context.Context, after, to ledger.Offset) (ledger.Page, error) {
	if s.failures > 0 {
		s.failures--
		return ledger.Page{}, errors.New("a moment's trouble")
	}
	if s.reading != nil {
		s.reading(after)
	}
	if after < s.pruned {
		return ledger.Page{}, &ledger.Problem{What: fmt.Sprintf("pruned up to %d", s.pruned)}
	}
	page := pageUpTo(after, min(to, after+s.pageSize))
	page.Bytes = s.bytes * int64(len(page.Updates))
	for i := range page.Updates {
		if u := &page.Updates[i]; s.forked > 0 && u.Offset > s.forked {
			u.ID, u.RecordTime = fmt.Sprint("another-", u.Offset), storetest.Time("2025-01-02T03:04:06Z")
		}
	}
	s.reads = append(s.reads, ledger.Range{From: after, To: page.To})
	return page, nil
}

func (s *shown) SnapshotOffset(_ context.Context, upTo ledger.Offset) (ledger.Offset, error) {
	if errors.Is(s.refusal, ledger.ErrNotOffered) {
		return 0, s.refusal
	}
	if s.snapshotAt > 0 {
		return s.snapshotAt, nil
	}
	return upTo, nil
}

func (s *shown) ReadSnapshot(_ context.Context, at ledger.Offset, token ledger.Token) (page ledger.SnapshotPage, _ error) {
	if s.snapshot = append(s.snapshot, at); s.refusal != nil {
		return page, s.refusal
	}
	if s.onlyAtEnd && at != s.end {
		return page, &ledger.Problem{What: "reassignments are in flight"}
	}
	entries := slices.DeleteFunc(activeUpTo(at), func(e ledger.ContractEntry) bool { return e.Active.Created.Offset == s.hidden })
	first, _ := strconv.Atoi(token.Value) // of the zero token 0
	page.Entries = entries[first:]
	if page.Last = s.entries == 0 || len(page.Entries) <= s.entries; !page.Last {
		page.Entries = page.Entries[:s.entries]
		page.Next = storetest.Token(fmt.Sprint(first + s.entries))
	}
	if s.atEnd != nil && at == s.end {
		s.atEnd()
	}
	return page, nil
}

// activeUpTo is what is active as of an offset of what began after offset 10.
func activeUpTo(at ledger.Offset) (entries []ledger.ContractEntry) {
	for from := ledger.Offset(11); from <= at; from++ {
		if from != 30 || at < 60 {
			entries = append(entries, storetest.ActiveEntry(from, 0, fmt.Sprint("contract-", from), "sync::1", 0))
		}
	}
	return entries
}

func (*shown) ContractByID(context.Context, string, []string) (ledger.Contract, ledger.JSON, error) {
	return ledger.Contract{}, nil, ledger.ErrNotFound
}

// reread is a database that holds what a participant shows after offset 10 up to 100, and the participant.
type reread struct {
	*testDB
	shown
	leader *updatesWriter
	whole  map[string][]string // its rows
}

func newReread(t *testing.T) *reread { return rereadFrom(t, true) }

// rereadFrom is newReread, where the active set at offset 10 is known or not.
func rereadFrom(t *testing.T, known bool) *reread {
	t.Helper()
	r := &reread{testDB: newDatabase(t), shown: shown{end: 100, pageSize: 7}}
	r.leader = r.leadUpdates(r.store())
	require.NoError(t, r.leader.Start(t.Context(), "participant::1", storetest.Scope, 10, known))
	require.NoError(t, r.leader.Append(t.Context(), storetest.Scope, []ledger.Page{pageUpTo(10, 100)}))
	r.whole = r.rows()
	return r
}

func (r *reread) rows() map[string][]string {
	return r.Dump("updates", "created", "archived", "active_contracts", "lifetimes", "coverage", "checkpoints")
}

// damage alters the database: verifying has to tell, or to make it whole.
func (r *reread) damage(statements ...string) {
	r.T.Helper()
	for _, statement := range statements {
		r.Exec(statement)
	}
	require.NotEqual(r.T, r.whole, r.rows())
}

// verify compares with what a participant shows, and returns what differs as relations and offsets.
func (r *reread) verify(s *shown, repair bool, selection Selection) (u *Updates, found []string, err error) {
	r.T.Helper()
	var list []Difference
	u = &Updates{Verification: verificationOf(r.leader.store.Stored, nil, &list), Source: s, Scope: storetest.Scope, Selection: selection}
	if repair {
		u.Repairer = r.repairs(r.leader.store)
		defer u.Repairer.Close()
	}
	_, err = u.Run(r.T.Context())
	for _, d := range list {
		found = append(found, fmt.Sprint(d.Relation, " ", d.Offset))
	}
	return u, found, err
}

func offset(at ledger.Offset) *ledger.Offset { return &at }
