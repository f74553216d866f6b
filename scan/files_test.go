package scan

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/openapi"
	"ledgerindexer/ledger"
)

// bulkFiles are files by their key, and their digests.
type bulkFiles struct {
	party   string // of the list; empty: dso::1
	quiet   []string
	keys    []string
	objects map[string][]byte
	digests map[string]string
}

// bulkOf puts updates into folders of a minute, and files of n updates, whose frames end anywhere.
func bulkOf(t *testing.T, n int, at []ledger.Offset) *bulkFiles {
	t.Helper()
	b := &bulkFiles{objects: map[string][]byte{}, digests: map[string]string{}}
	start := beginning
	for len(at) > 0 {
		_, first := at[0].NetworkPosition()
		end := first.Truncate(time.Minute).Add(time.Minute)
		in := 0
		for ; in < len(at); in++ {
			if _, time := at[in].NetworkPosition(); time.After(end) {
				break
			}
		}
		number := 0
		for part := range slices.Chunk(at[:in], n) {
			var lines []byte
			for _, offset := range part {
				lines = append(lines, strings.ReplaceAll(item(offset), "\n", "")+"\n"...)
			}
			b.put(t, fmt.Sprintf("%s~%s/updates_%d.zstd", start, end.Format(time.RFC3339), number), lines)
			number++
		}
		start, at = end.Format(time.RFC3339), at[in:]
	}
	return b
}

// put makes a file of lines.
func (b *bulkFiles) put(t *testing.T, key string, lines []byte) {
	t.Helper()
	encoder, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	var object []byte
	for frame := range slices.Chunk(lines, 333) {
		object = encoder.EncodeAll(frame, object)
	}
	require.NoError(t, encoder.Close())
	b.is(key, object)
}

// is makes a file of bytes, with the right digest.
func (b *bulkFiles) is(key string, object []byte) {
	if b.objects[key] == nil {
		b.keys = append(b.keys, key)
	}
	sum := sha256.Sum256(object)
	b.objects[key], b.digests[key] = object, base64.StdEncoding.EncodeToString(sum[:])
}

func (b *bulkFiles) refs() []bulkRef {
	refs := []bulkRef{}
	for _, key := range b.keys {
		refs = append(refs, bulkRef{"https://elsewhere" + pathBulkDownload + url.PathEscape(key), b.digests[key]})
	}
	return refs
}

// folder writes the files, with their list.
func (b *bulkFiles) folder(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for key, object := range b.objects {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, key)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(folder, key), object, 0o600))
	}
	list := fileList{cmp.Or(b.party, "dso::1"), b.refs(), b.quiet}
	require.NoError(t, list.write(folder))
	return folder
}

// pagesOf reads the pages of a range, and requires that they are adjacent.
func pagesOf(t *testing.T, f *Files, r ledger.Range) (at []ledger.Offset, reached ledger.Offset, err error) {
	t.Helper()
	reached = r.From
	for page, err := range f.Pages(t.Context(), r) {
		if err != nil {
			return at, reached, err
		}
		require.Equal(t, reached, page.From)
		require.Greater(t, page.To, page.From)
		for i := range page.Updates {
			at = append(at, page.Updates[i].Offset)
		}
		reached = page.To
	}
	return at, reached, nil
}

// Any range of bulk files is read with all of its updates, in order, over files, folders and migrations.
func TestBulkFilesAreRead(t *testing.T) {
	t.Parallel()
	all := append(every(networkOffset(t, 1, "2026-01-01T00:00:00Z"), 150, time.Second), every(networkOffset(t, 2, "2026-01-01T00:05:00Z"), 2300, 10*time.Millisecond)...)
	f, err := OpenFiles(bulkOf(t, 40, all).folder(t))
	require.NoError(t, err)
	require.Equal(t, "dso::1", f.Party())
	require.Equal(t, all[len(all)-1], f.End())
	for _, r := range []ledger.Range{
		{From: 0, To: f.End()}, {From: all[0], To: all[3]}, {From: all[39], To: all[40]}, {From: all[100] + 1, To: all[100] + 2}, {From: all[149], To: all[150]},
		{From: all[149] + 5, To: all[150] - 5}, {From: all[1000], To: f.End()}, {From: f.End() - 1, To: f.End()}, {From: 5, To: 6},
	} {
		got, reached, err := pagesOf(t, f, r)
		require.NoError(t, err)
		require.Equal(t, r.To, reached)
		want := slices.DeleteFunc(slices.Clone(all), func(o ledger.Offset) bool { return o <= r.From || o > r.To })
		require.Equal(t, len(want), len(got))
		require.True(t, slices.Equal(want, got))
	}
	for page, err := range f.Pages(t.Context(), ledger.Range{To: f.End()}) { // the reader may stop
		require.NoError(t, err)
		require.NotEmpty(t, page.Updates)
		break
	}
	byHand := bulkOf(t, 40, all)
	for key, object := range byHand.objects {
		sum := sha256.Sum256(object)
		byHand.digests[key] = hex.EncodeToString(sum[:])
	}
	f, err = OpenFiles(byHand.folder(t))
	require.NoError(t, err)
	got, _, err := pagesOf(t, f, ledger.Range{To: f.End()})
	require.NoError(t, err)
	require.Equal(t, all, got)
	later := &bulkFiles{objects: map[string][]byte{}, digests: map[string]string{}}
	for _, key := range byHand.keys {
		later.is(strings.Replace(key, "updates_", "updates_compact_json_", 1), byHand.objects[key])
	}
	f, err = OpenFiles(later.folder(t))
	require.NoError(t, err, "the names of later releases")
	got, _, err = pagesOf(t, f, ledger.Range{To: f.End()})
	require.NoError(t, err)
	require.Equal(t, all, got)
	quiet := bulkOf(t, 40, all[:50])
	quiet.put(t, "2026-01-01T00:01:00Z~2026-01-01T00:02:00Z/updates_0.zstd", nil)
	quiet.put(t, "2026-01-01T00:02:00Z~2026-01-01T00:03:00Z/updates_0.zstd", nil)
	f, err = OpenFiles(quiet.folder(t))
	require.NoError(t, err)
	require.Equal(t, all[49], f.End(), "the last files have no update")
	empty, err := OpenFiles((&bulkFiles{}).folder(t))
	require.NoError(t, err)
	require.Zero(t, empty.End())
}

// A file that is damaged, ends early, or is not the next one is refused before anything of it is returned, and what
// lies before it is returned.
func TestBulkFilesThatAreDamaged(t *testing.T) {
	t.Parallel()
	all := every(networkOffset(t, 1, "2026-01-01T00:00:00Z"), 100, time.Second)
	lines := func(at ...ledger.Offset) (text []byte) {
		for _, offset := range at {
			text = append(text, strings.ReplaceAll(item(offset), "\n", "")+"\n"...)
		}
		return text
	}
	for name, c := range map[string]struct {
		damage func(t *testing.T, b *bulkFiles, key string)
		says   string
	}{
		"another digest": {func(_ *testing.T, b *bulkFiles, key string) { b.digests[key] = b.digests[b.keys[0]] }, "the digest of file"},
		"a changed byte": {func(_ *testing.T, b *bulkFiles, key string) { b.objects[key][len(b.objects[key])/2] ^= 1 }, "the digest of file"},
		"it ends early":  {func(_ *testing.T, b *bulkFiles, key string) { b.objects[key] = b.objects[key][:len(b.objects[key])/2] }, "the file is damaged, or ends early"},
		"it ends in a frame, with the right digest": {func(_ *testing.T, b *bulkFiles, key string) { b.is(key, b.objects[key][:len(b.objects[key])-9]) }, "has the right digest and can't be read"},
		"it ends in a line, with the right digest": {func(t *testing.T, b *bulkFiles, key string) {
			t.Helper()
			text := lines(all[20:30]...)
			b.put(t, key, text[:len(text)-5])
		}, "its last line has no end"},
		"no zstd":                      {func(_ *testing.T, b *bulkFiles, key string) { b.is(key, lines(all[20:30]...)) }, "invalid input: magic number mismatch"},
		"an update of the file before": {func(t *testing.T, b *bulkFiles, key string) { t.Helper(); b.put(t, key, lines(all[19:30]...)) }, "updates must come in the order of migration id and record time"},
		"updates out of order":         {func(t *testing.T, b *bulkFiles, key string) { t.Helper(); b.put(t, key, lines(all[21], all[20])) }, "updates must come in the order of migration id and record time"},
		"no update":                    {func(t *testing.T, b *bulkFiles, key string) { t.Helper(); b.put(t, key, []byte("{}\n")) }, "update_id"},
		"it is not there":              {func(_ *testing.T, b *bulkFiles, key string) { delete(b.objects, key) }, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bulkOf(t, 10, all)
			c.damage(t, b, b.keys[2])
			f, err := OpenFiles(b.folder(t))
			require.NoError(t, err)
			got, _, err := pagesOf(t, f, ledger.Range{To: f.End()})
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "updates_2.zstd")
			require.Equal(t, all[:20], got, "what came before, and nothing of the file")
		})
	}
}

// A list that leaves files out, or is none, is refused.
func TestListsOfBulkFiles(t *testing.T) {
	t.Parallel()
	all := every(networkOffset(t, 1, "2026-01-01T00:00:00Z"), 200, time.Second)
	for name, c := range map[string]struct {
		change func(b *bulkFiles)
		says   string
	}{
		"the first folder": {func(b *bulkFiles) { b.keys = b.keys[7:] }, "some are missing: those of the folder that begins at 0001-01-01T00:00:00Z"},
		"a folder": {func(b *bulkFiles) {
			b.keys = slices.DeleteFunc(b.keys, func(k string) bool { return strings.Contains(k, "T00:01:00Z~") })
		}, "some are missing: those of the folder that begins at 2026-01-01T00:01:00Z"},
		"a file":    {func(b *bulkFiles) { b.keys = slices.Delete(b.keys, 2, 3) }, "updates_2.zstd"},
		"a name":    {func(b *bulkFiles) { b.is("somewhere/else.zstd", nil) }, "is not the key of a bulk file"},
		"a digest":  {func(b *bulkFiles) { b.digests[b.keys[0]] = "1220" }, "is no SHA-256"},
		"a way out": {func(b *bulkFiles) { b.is("../updates_0.zstd", nil) }, "does not end in a key"},
	} {
		b := bulkOf(t, 10, all)
		c.change(b)
		_, err := OpenFiles(b.folder(t))
		var problem *ledger.Problem
		require.ErrorAs(t, err, &problem, name)
		require.Equal(t, 1, strings.Count(problem.Error(), c.says), "%s: %v", name, problem)
	}
	_, err := OpenFiles(t.TempDir())
	require.ErrorContains(t, err, "has no objects.json")

	folder := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(folder, listName), 0o755))
	_, err = OpenFiles(folder)
	require.Contains(t, refused(t, err), "the bulk files can't be used: read "+filepath.Join(folder, listName), "it would be tried again for ever")
}

// send answers the download of a bulk file.
func send(w http.ResponseWriter, object []byte) {
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(object)
}

// A service writes no folder of a day without updates. What is downloaded notes such days, if the service has no update
// there either.
func TestDaysWithoutUpdates(t *testing.T) {
	t.Parallel()
	const first, second, third = beginning + "~2026-01-01T00:00:00Z/", "2026-01-02T00:00:00Z~2026-01-03T00:00:00Z/", "2026-01-05T00:00:00Z~2026-01-06T00:00:00Z/"
	var all []ledger.Offset
	b := &bulkFiles{objects: map[string][]byte{}, digests: map[string]string{}}
	for key, at := range map[string]string{first: "2025-12-31T23:00:00Z", second: "2026-01-02T05:00:00Z", third: "2026-01-05T05:00:00Z"} {
		offset := networkOffset(t, 1, at)
		all = append(all, offset)
		b.put(t, key+"updates_0.zstd", []byte(strings.ReplaceAll(item(offset), "\n", "")+"\n"))
	}
	slices.Sort(all)
	var lost ledger.Offset // an update of which the service lists no file
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch key, download := strings.CutPrefix(r.URL.Path, pathBulkDownload); {
		case r.URL.Path == pathNetwork:
			answer(200, `{"dso_party_id":"dso::1"}`)(w, r)
		case download:
			send(w, b.objects[key])
		case r.URL.Path == pathUpdates:
			var asked updatesRequest
			require.NoError(t, json.UnmarshalRead(r.Body, &asked))
			require.Equal(t, 1, asked.PageSize)
			after := networkOffset(t, asked.After.MigrationID, asked.After.RecordTime)
			i := slices.IndexFunc(all, func(o ledger.Offset) bool { return o > after })
			next := all[i]
			if lost > after && lost < next {
				next = lost
			}
			answer(200, `{"transactions":[`+item(next)+`]}`)(w, r)
		default:
			list, err := json.Marshal(b.refs())
			require.NoError(t, err)
			answer(200, `{"object_refs":`+string(list)+`}`)(w, r)
		}
	})
	u := NewUpdates(client(t, Config{URL: s.URL}))
	folder := t.TempDir()
	require.NoError(t, u.DownloadFiles(t.Context(), folder, nil, nil))
	f, err := OpenFiles(folder)
	require.NoError(t, err)
	got, _, err := pagesOf(t, f, ledger.Range{To: f.End()})
	require.NoError(t, err)
	require.Equal(t, all, got)
	list, err := readList(folder)
	require.NoError(t, err)
	require.Equal(t, []string{"2026-01-01T00:00:00Z~2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z~2026-01-05T00:00:00Z"}, list.Quiet)
	s.requests()
	require.NoError(t, u.DownloadFiles(t.Context(), folder, nil, nil))
	for _, asked := range s.requests() {
		require.NotContains(t, asked, pathUpdates+" ", "it is noted")
	}

	lost = networkOffset(t, 1, "2026-01-04T00:00:00Z")
	require.Contains(t, refused(t, u.DownloadFiles(t.Context(), t.TempDir(), nil, nil)),
		"lists no bulk file of 2026-01-03T00:00:00Z~2026-01-05T00:00:00Z, and the update after those before it is at migration 1, 2026-01-04T00:00:00.000000Z")
	_, err = OpenFiles(b.folder(t))
	require.Contains(t, refused(t, err), "some are missing: those of the folder that begins at 2026-01-01T00:00:00Z", "nothing is noted")
}

// A folder may be the root of a file system, which has a folder that only its administrator can read, and have files of
// others.
func TestBulkFilesBesideWhatIsOfOthers(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	others := filepath.Join(folder, "lost+found")
	require.NoError(t, os.Mkdir(others, 0o000)) // root can read it all the same
	require.NoError(t, os.MkdirAll(filepath.Join(folder, ".part-of-others", "full"), 0o700))
	old := time.Now().Add(-2 * objectTimeout)
	require.NoError(t, os.Chtimes(filepath.Join(folder, ".part-of-others"), old, old))
	require.NoError(t, removeUnfinished(folder))
	require.DirExists(t, filepath.Join(folder, ".part-of-others", "full"))
}

// Files are downloaded once, from the service itself and nowhere else, and a digest that is wrong, or changes, leaves
// nothing behind.
func TestBulkFilesAreDownloaded(t *testing.T) {
	t.Parallel()
	all := every(networkOffset(t, 1, "2026-01-01T00:00:00Z"), 60, time.Second)
	b := bulkOf(t, 10, all)
	var served, damaged atomic.Int32 // a handler may still run when its client has gone
	served.Store(2)
	damaged.Store(4) // downloads of the second file
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch key, download := strings.CutPrefix(r.URL.Path, pathBulkDownload); {
		case r.URL.Path == pathNetwork:
			answer(200, `{"dso_party_id":"dso::1"}`)(w, r)
		case download:
			object := b.objects[key]
			if key == b.keys[1] && damaged.Add(-1) >= 0 {
				object = bytes.ToUpper(object)
			}
			send(w, object)
		case strings.Contains(r.Header.Get("Content-Type"), "json"):
			var asked bulkRequest
			require.NoError(t, json.UnmarshalRead(r.Body, &asked))
			refs, token := b.refs()[:served.Load()], `,"next_page_token":"more"`
			if asked.Token != "" {
				refs = nil // not written yet
			}
			list, err := json.Marshal(refs)
			require.NoError(t, err)
			if refs == nil {
				list = []byte("[]")
			}
			answer(200, `{"object_refs":`+string(list)+token+`}`)(w, r)
		}
	})
	u := NewUpdates(client(t, Config{URL: s.URL}))
	folder := filepath.Join(t.TempDir(), "new")
	download := func() error { return u.DownloadFiles(t.Context(), folder, nil, nil) }
	for limit := 100 * time.Millisecond; damaged.Load() == 4; limit *= 2 { // until it ends between two tries
		ctx, stop := context.WithTimeout(t.Context(), limit)
		require.ErrorIs(t, u.DownloadFiles(ctx, folder, nil, nil), context.DeadlineExceeded)
		stop()
	}
	_, err := OpenFiles(folder)
	require.ErrorContains(t, err, "no such file")
	damaged.Store(0)
	require.NoError(t, download())
	f, err := OpenFiles(folder)
	require.NoError(t, err)
	require.Equal(t, all[19], f.End())
	s.requests()
	served.Store(int32(len(b.keys)))
	left := map[string]time.Duration{filepath.Join(folder, ".part-1"): 2 * objectTimeout, filepath.Join(folder, filepath.Dir(b.keys[0]), ".part-2"): 2 * objectTimeout,
		filepath.Join(folder, ".part-3"): 0}
	for name, age := range left {
		require.NoError(t, os.WriteFile(name, []byte("cut"), 0o600))
		require.NoError(t, os.Chtimes(name, time.Time{}, time.Now().Add(-age)))
	}
	require.NoError(t, download())
	for name, age := range left {
		if age == 0 { // another process may be writing it
			require.FileExists(t, name)
		} else {
			require.NoFileExists(t, name)
		}
	}
	var downloads int
	for _, asked := range s.requests() {
		if body, ok := strings.CutPrefix(asked, "POST "+pathBulkUpdates+" "); ok {
			require.NoError(t, openapi.Scan(t, "0.7").CheckRequest("POST", pathBulkUpdates, nil, []byte(body)))
		}
		if strings.HasPrefix(asked, "GET "+pathBulkDownload) {
			downloads++
		}
	}
	require.Equal(t, len(b.keys)-2, downloads)
	f, err = OpenFiles(folder)
	require.NoError(t, err)
	require.Equal(t, all[59], f.End())

	b.digests[b.keys[0]] = b.digests[b.keys[1]]
	require.ErrorContains(t, download(), "says that file "+b.keys[0])
	list, err := readList(folder)
	require.NoError(t, err)
	list.Party = "dso::2"
	require.NoError(t, list.write(folder))
	require.ErrorContains(t, download(), "has the bulk files of the network that dso::2 operates")

	for status, body := range map[int]string{501: `{"error":"Bulk storage or public URL is not configured"}`, 400: `{"error":"Bulk storage or public URL is not configured"}`, 404: `{"error":"no"}`} {
		n := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == pathNetwork {
				answer(200, `{"dso_party_id":"dso::1"}`)(w, r)
				return
			}
			answer(status, body)(w, r)
		})
		var problem *ledger.Problem
		require.ErrorAs(t, NewUpdates(client(t, Config{URL: n.URL})).DownloadFiles(t.Context(), t.TempDir(), nil, nil), &problem)
		require.Contains(t, problem.What, "offers no bulk files")
	}
}
