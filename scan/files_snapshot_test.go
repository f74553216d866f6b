package scan

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/openapi"
	"ledgerindexer/ledger"
)

const (
	firstDay  = beginning + "~2026-01-01T03:00:00Z/"
	secondDay = "2026-01-01T03:00:00Z~2026-01-02T03:00:00Z/"
	thirdDay  = "2026-01-02T03:00:00Z~2026-01-03T03:00:00Z/"
)

// seedFiles are the updates of two migrations, and two snapshots. Of the first, old is of an earlier migration, and the
// party is no stakeholder of a contract.
func seedFiles(t *testing.T) *bulkFiles {
	t.Helper()
	b := &bulkFiles{party: "dso", objects: map[string][]byte{}, digests: map[string]string{}}
	b.putLines(t, firstDay+"updates_0.zstd", creating("u0", 1, olderAt, "old", "gone"))
	b.putLines(t, firstDay+"updates_1.zstd", creating("u1", 2, createdAt, "x", "a", "b"), creating("u2", 2, "2026-01-01T02:30:00.000000Z", "c"))
	b.putLines(t, secondDay+"updates_0.zstd", creating("u3", 2, "2026-01-01T04:00:00.000000Z", "d"))
	b.putLines(t, secondDay+"ACS_0.zstd", listed("old", olderAt, "dso", ""), listed("of others", createdAt, "bob", `,"created_in_update_id":"u1"`))
	b.putLines(t, secondDay+"ACS_1.zstd", listed("a", createdAt, "dso", `,"created_in_update_id":"u1"`), listed("c", createdAt, "dso", `,"created_in_update_id":"u2"`))
	b.putLines(t, secondDay+"ACS_2.zstd", "") // a service does not look whether a page is the last one
	b.putLines(t, thirdDay+"ACS_compact_json_0.zstd", listed("d", createdAt, "dso", `,"created_in_update_id":"u3"`))
	return b
}

func (b *bulkFiles) putLines(t *testing.T, key string, lines ...string) {
	t.Helper()
	var text string
	for _, line := range lines {
		text += strings.ReplaceAll(line, "\n", "") + "\n"
	}
	b.put(t, key, []byte(text))
}

// refused requires a problem, and returns what it says.
func refused(t *testing.T, err error) string {
	t.Helper()
	var p *ledger.Problem
	require.ErrorAs(t, err, &p)
	require.NotEmpty(t, p.Do)
	return p.Error()
}

// seeded reads a snapshot from a token on, and returns its contracts with their offsets.
func seeded(t *testing.T, s *FilesSnapshot, at ledger.Offset, token ledger.Token) (got []string, tokens []ledger.Token, err error) {
	t.Helper()
	for {
		page, err := s.ReadSnapshot(t.Context(), at, token)
		if err != nil {
			return got, tokens, err
		}
		for _, e := range page.Entries {
			got = append(got, fmt.Sprint(e.Active.Created.ContractID, " at ", int64(e.Active.Created.Offset), " node ", e.Active.Created.NodeID))
		}
		if page.Last {
			return got, tokens, nil
		}
		token = page.Next
		tokens = append(tokens, token)
	}
}

// A snapshot in bulk files has the contracts that its own files name, with what the updates say that created them. It
// can be continued from each of its tokens, also by another reader, and the newest one is chosen of which all updates
// are there.
func TestASnapshotIsReadFromBulkFiles(t *testing.T) {
	t.Parallel()
	b := seedFiles(t)
	folder := b.folder(t)
	reader := func() *FilesSnapshot {
		f, err := OpenFiles(folder)
		require.NoError(t, err)
		s := f.Snapshots()
		t.Cleanup(s.Close)
		return s
	}
	first, second := networkOffset(t, 2, "2026-01-01T03:00:00Z"), networkOffset(t, 2, "2026-01-02T03:00:00Z")
	s := reader()
	end, err := s.LedgerEnd(t.Context())
	require.NoError(t, err)
	require.Equal(t, second, end)
	for upTo, want := range map[ledger.Offset]ledger.Offset{end: second, second - 1: first, first: first} {
		at, err := s.SnapshotOffset(t.Context(), upTo)
		require.NoError(t, err)
		require.Equal(t, want, at)
	}
	_, err = s.SnapshotOffset(t.Context(), first-1)
	require.Contains(t, refused(t, err), "have no snapshot up to offset")
	require.ErrorIs(t, err, ledger.ErrNotOffered)

	want := []string{
		fmt.Sprintf("old at %d node 0", networkOffset(t, 1, olderAt)),
		fmt.Sprintf("a at %d node 1", networkOffset(t, 2, createdAt)), fmt.Sprintf("c at %d node 0", networkOffset(t, 2, "2026-01-01T02:30:00Z")),
	}
	got, tokens, err := seeded(t, s, first, ledger.Token{})
	require.NoError(t, err)
	require.Equal(t, want, got)
	for i, token := range tokens {
		for _, again := range []*FilesSnapshot{s, reader()} {
			rest, _, err := seeded(t, again, first, token)
			require.NoError(t, err)
			require.Subset(t, want, rest)
			require.Less(t, len(rest), len(want), "after part %d", i)
		}
	}
	again, _, err := seeded(t, s, first, ledger.Token{})
	require.NoError(t, err)
	require.Equal(t, want, again)
}

// Before, in and after days without updates there are snapshots too. One that lies where files are missing is not
// taken.
func TestSnapshotsOfDaysWithoutUpdates(t *testing.T) {
	t.Parallel()
	b := seedFiles(t)
	b.putLines(t, "2026-01-03T03:00:00Z~2026-01-04T03:00:00Z/ACS_0.zstd", listed("d", createdAt, "dso", `,"created_in_update_id":"u3"`))
	b.putLines(t, "2026-01-04T03:00:00Z~2026-01-05T03:00:00Z/updates_0.zstd", creating("u4", 2, "2026-01-04T04:00:00.000000Z", "e"))
	b.putLines(t, "2026-01-04T03:00:00Z~2026-01-05T03:00:00Z/ACS_0.zstd", listed("d", createdAt, "dso", `,"created_in_update_id":"u3"`))
	b.putLines(t, "2026-01-06T03:00:00Z~2026-01-07T03:00:00Z/ACS_0.zstd", listed("e", createdAt, "dso", `,"created_in_update_id":"u4"`))
	b.quiet = []string{"2026-01-02T03:00:00Z~2026-01-04T03:00:00Z"}
	f, err := OpenFiles(b.folder(t))
	require.NoError(t, err)
	s := f.Snapshots()
	defer s.Close()
	for upTo, want := range map[string]string{
		"2026-01-08T00:00:00Z": "2026-01-04T03:00:00Z", "2026-01-04T02:00:00Z": "2026-01-03T03:00:00Z", "2026-01-03T02:00:00Z": "2026-01-02T03:00:00Z",
	} {
		at, err := s.SnapshotOffset(t.Context(), networkOffset(t, 2, upTo))
		require.NoError(t, err)
		require.Equal(t, networkOffset(t, 2, want), at)
		got, _, err := seeded(t, s, at, ledger.Token{})
		require.NoError(t, err)
		require.Equal(t, []string{fmt.Sprintf("d at %d node 0", networkOffset(t, 2, "2026-01-01T04:00:00Z"))}, got)
	}
}

// A snapshot whose files are damaged, missing or do not agree with those of updates is refused before it is complete;
// of one whose own files are damaged nothing is returned.
func TestSnapshotsInBulkFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	at := networkOffset(t, 2, "2026-01-01T03:00:00Z")
	last := secondDay + "ACS_1.zstd"
	for name, c := range map[string]struct {
		damage func(t *testing.T, b *bulkFiles)
		says   string
		some   bool // some contracts are returned before
	}{
		"another digest": {func(_ *testing.T, b *bulkFiles) { b.digests[last] = b.digests[b.keys[0]] }, "the digest of file", false},
		"a file ends early": {func(_ *testing.T, b *bulkFiles) { b.objects[last] = b.objects[last][:len(b.objects[last])/2] },
			"the file is damaged, or ends early", false},
		"a file ends early, with the right digest": {func(_ *testing.T, b *bulkFiles) { b.is(last, b.objects[last][:len(b.objects[last])-9]) },
			"has the right digest and can't be read", false},
		"a line without its end": {func(t *testing.T, b *bulkFiles) {
			t.Helper()
			b.put(t, last, []byte(listed("a", createdAt, "dso", "")))
		}, "its last line has no end", false},
		"no contract":     {func(t *testing.T, b *bulkFiles) { t.Helper(); b.putLines(t, last, "{}") }, "contract_id", false},
		"it is not there": {func(_ *testing.T, b *bulkFiles) { delete(b.objects, last) }, "no such file", false},
		"a file is not in the list": {func(_ *testing.T, b *bulkFiles) {
			b.keys = slices.DeleteFunc(b.keys, func(k string) bool { return k == last })
		}, "some are missing: " + last, false},
		"a file in two forms": {func(t *testing.T, b *bulkFiles) {
			t.Helper()
			b.putLines(t, secondDay+"ACS_compact_json_1.zstd", listed("a", createdAt, "dso", ""))
		}, "two files of the same part of the history", false},
		"a contract twice": {func(t *testing.T, b *bulkFiles) {
			t.Helper()
			b.putLines(t, secondDay+"ACS_2.zstd", listed("old", olderAt, "dso", ""))
		}, "name a contract twice", false},
		"a contract nobody creates": {func(t *testing.T, b *bulkFiles) {
			t.Helper()
			b.putLines(t, secondDay+"ACS_2.zstd", listed("z", createdAt, "dso", ""))
		}, "has 4 contracts, and the updates up to there create 3", true},
		"a damaged file of updates": {func(_ *testing.T, b *bulkFiles) { b.objects[firstDay+"updates_0.zstd"][9] ^= 1 }, "updates_0.zstd is", false},
		"an update after the folder": {func(t *testing.T, b *bulkFiles) {
			t.Helper()
			b.putLines(t, firstDay+"updates_1.zstd", creating("u9", 2, "2026-01-01T05:00:00.000000Z", "a"))
		}, "comes after its folder's end", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := seedFiles(t)
			c.damage(t, b)
			f, err := OpenFiles(b.folder(t))
			require.NoError(t, err, "the updates are there, with or without a snapshot")
			s := f.Snapshots()
			defer s.Close()
			got, _, err := seeded(t, s, at, ledger.Token{})
			require.Equal(t, c.some, len(got) > 0)
			require.ErrorContains(t, err, c.says)
		})
	}
	f, err := OpenFiles(seedFiles(t).folder(t))
	require.NoError(t, err)
	s := f.Snapshots()
	_, err = s.ReadSnapshot(t.Context(), at, ledger.Token{Kind: ledger.TokenPage, Value: "x"})
	require.Contains(t, refused(t, err), "is no token of a snapshot in bulk files")
	_, err = s.ReadSnapshot(t.Context(), at+1, ledger.Token{})
	require.Contains(t, refused(t, err), "have no snapshot at offset")
}

// With the files of updates those of a snapshot are downloaded: of the newest one that is not newer than the updates,
// nor than what was asked for.
func TestASnapshotIsDownloaded(t *testing.T) {
	t.Parallel()
	b := seedFiles(t)
	var none bool
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		list := func(prefix, member string) {
			refs := slices.DeleteFunc(b.refs(), func(ref bulkRef) bool {
				key, err := ref.key()
				return err != nil || !strings.Contains(key, prefix)
			})
			text, err := json.Marshal(refs)
			require.NoError(t, err)
			answer(200, `{`+member+`"object_refs":`+string(text)+`}`)(w, r)
		}
		switch key, download := strings.CutPrefix(r.URL.Path, pathBulkDownload); {
		case r.URL.Path == pathNetwork:
			answer(200, `{"dso_party_id":"dso"}`)(w, r)
		case download:
			send(w, b.objects[key])
		case r.URL.Path == pathBulkSnapshot && none:
			answer(404, `{"error":"no snapshot in committed bulk storage yet"}`)(w, r)
		case r.URL.Path == pathBulkSnapshot:
			list(secondDay+"ACS", `"record_time":"2026-01-01T03:00:00Z",`)
		default:
			list("updates", "")
		}
	})
	u := NewUpdates(client(t, Config{URL: s.URL}))
	for upTo, want := range map[ledger.Offset]string{
		networkOffset(t, 2, "2026-01-03T00:00:00Z"): "2026-01-02T03:00:00.000000Z",
		networkOffset(t, 2, "2026-01-01T05:00:00Z"): "2026-01-01T05:00:00.000000Z",
	} {
		folder := t.TempDir()
		s.requests()
		require.NoError(t, u.DownloadFiles(t.Context(), folder, &upTo, nil))
		query := url.Values{"at_or_before_record_time": {want}}
		require.Contains(t, s.requests(), "GET "+pathBulkSnapshot+"?"+query.Encode())
		for _, release := range []string{"0.6", "0.7"} {
			require.NoError(t, openapi.Scan(t, release).CheckRequest("GET", pathBulkSnapshot, query, nil))
		}
		_, err := os.Stat(filepath.Join(folder, secondDay, "ACS_2.zstd"))
		require.NoError(t, err)
		f, err := OpenFiles(folder)
		require.NoError(t, err)
		at, err := f.Snapshots().SnapshotOffset(t.Context(), networkOffset(t, 2, "2026-01-03T00:00:00Z"))
		require.NoError(t, err)
		require.Equal(t, networkOffset(t, 2, "2026-01-01T03:00:00Z"), at)
	}
	none = true
	upTo := networkOffset(t, 2, "2026-01-03T00:00:00Z")
	require.Contains(t, problem(t, u.DownloadFiles(t.Context(), t.TempDir(), &upTo, nil)), "has no snapshot in bulk files up to 2026-01-02T03:00:00.000000Z")
}
