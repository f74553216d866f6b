package scan

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// unending repeats a text without end.
type unending struct {
	text []byte
	at   int
}

func (e *unending) Read(p []byte) (n int, err error) {
	for n < len(p) {
		copied := copy(p[n:], e.text[e.at:])
		n, e.at = n+copied, (e.at+copied)%len(e.text)
	}
	return n, nil
}

// framesOf returns a text compressed, as a frame.
func framesOf(t *testing.T, text string) []byte {
	t.Helper()
	encoder, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, encoder.Close()) }()
	return encoder.EncodeAll([]byte(text), nil)
}

// A file that decompresses to a line without end, or to lines without end, or wants a window larger than memory, is
// refused.
func TestTextWithoutEnd(t *testing.T) {
	t.Parallel()
	var ends lineEnds
	err := ends.read(&unending{text: framesOf(t, strings.Repeat("a", 8<<20))})
	require.ErrorContains(t, err, "a line is larger than any update: it has more than 67108864 bytes")
	require.Empty(t, ends.first)

	text, err := newLineReader(&unending{text: framesOf(t, strings.Repeat("{}\n", 1<<20))})
	require.NoError(t, err)
	defer text.close()
	text.left.N = 100 << 20
	var line []byte
	for err == nil {
		line, err = text.appendLine(line[:0])
	}
	require.ErrorContains(t, err, "decompressed it has more than")

	wide := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 19 << 3, 3<<3 | 1, 0, 0, '{', '}', '\n'} // a frame with a window of 512 MiB, and a block of 3 bytes
	require.ErrorIs(t, ends.read(bytes.NewReader(wide)), zstd.ErrWindowSizeExceeded)
	wide[5] = 17 << 3 // 128 MiB
	require.NoError(t, ends.read(bytes.NewReader(wide)))
	require.Equal(t, "{}\n", string(ends.last))
}

// Bulk files that are small, and large when they are decompressed, are refused wherever they are read.
func TestBulkFilesThatGrow(t *testing.T) {
	t.Parallel()
	all := every(networkOffset(t, 1, "2026-01-01T00:00:00Z"), 40, time.Second)
	for what, c := range map[string]struct{ line, says string }{
		"a long line": {strings.Repeat("a", longestLine+1), "larger than any update"},
		"many values": {`{"update_id":[` + strings.Repeat("1,", longestLine/64+1) + "1]}\n", "the answer is too large: it has more than 1048576 values"},
	} {
		object := framesOf(t, c.line)
		require.Less(t, len(object), 10_000, what)
		last := bulkOf(t, 10, all)
		last.is(last.keys[3], object)
		_, err := OpenFiles(last.folder(t))
		require.ErrorContains(t, err, c.says, what)

		middle := bulkOf(t, 10, all)
		middle.is(middle.keys[1], object)
		f, err := OpenFiles(middle.folder(t))
		require.NoError(t, err, what)
		got, _, err := pagesOf(t, f, ledger.Range{To: f.End()})
		require.ErrorContains(t, err, c.says, what)
		require.Equal(t, all[:10], got)
		_, err = f.firstOf(1)
		require.ErrorContains(t, err, c.says, what)
		err = f.read(t.Context(), 1, func(int, []ledger.Update, int64) error { return nil })
		require.ErrorContains(t, err, c.says, what)
	}
}

// A service that lists bulk files without end is refused. A file is downloaded to the disk, and one without end to its
// limit.
func TestListsAndDownloadsWithoutEnd(t *testing.T) {
	t.Parallel()
	pages := 0
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == pathNetwork {
			answer(200, `{"dso_party_id":"dso::1"}`)(w, r)
			return
		}
		pages++
		var refs []string
		for i := range MaxPage {
			key := url.PathEscape(fmt.Sprintf("%s~2026-01-01T00:00:00Z/updates_%d.zstd", beginning, pages*MaxPage+i))
			refs = append(refs, fmt.Sprintf(`{"url":"https://s%s%s","digest":"%s"}`, pathBulkDownload, key, strings.Repeat("00", 32)))
		}
		answer(200, fmt.Sprintf(`{"object_refs":[%s],"next_page_token":"%d"}`, strings.Join(refs, ","), pages))(w, r)
	})
	folder := t.TempDir()
	err := NewUpdates(client(t, Config{URL: s.URL})).DownloadFiles(t.Context(), folder, nil, nil)
	require.Contains(t, refused(t, err), "lists more than 100000 bulk files, and no end comes")
	require.Equal(t, maxObjects/MaxPage+1, pages)

	s = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = io.Copy(w, &unending{text: bytes.Repeat([]byte("x"), 1<<20)})
	})
	var to discarded
	_, err = client(t, Config{URL: s.URL}).do(t.Context(), jsonhttp.Request{Operation: "bulk-download", Path: "x", MaxBytes: 10 << 20, Binary: true, To: &to})
	require.ErrorIs(t, err, jsonhttp.ErrTooLarge)
	require.LessOrEqual(t, int64(to), int64(10<<20))
	require.Greater(t, int64(to), int64(9<<20), "it comes in parts")

	s = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(maxObject+1))
		send(w, []byte("x"))
	})
	err = NewUpdates(client(t, Config{URL: s.URL})).downloadOnce(t.Context(), folder, "a~b/updates_0.zstd", digest{})
	require.ErrorIs(t, err, jsonhttp.ErrTooLarge)
	left, err := os.ReadDir(filepath.Join(folder, "a~b"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// A snapshot whose pages go on without contracts is given up.
func TestASnapshotWithoutEnd(t *testing.T) {
	t.Parallel()
	pages := 0
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == pathNetwork {
			answer(200, `{"dso_party_id":"dso::1"}`)(w, r)
			return
		}
		pages++
		answer(200, fmt.Sprintf(`{"record_time":"2026-01-01T00:00:00Z","migration_id":1,"created_events":[],"next_page_token":%d}`, pages))(w, r)
	})
	u, err := NewUpdates(client(t, Config{URL: s.URL})), error(nil)
	for token := (ledger.Token{}); err == nil; {
		var page ledger.SnapshotPage
		page, err = u.ReadSnapshot(t.Context(), networkOffset(t, 1, "2026-01-01T00:00:00Z"), token)
		token = page.Next
	}
	require.Contains(t, refused(t, err), "1000 pages of a list in a row are empty, and none is the last")
	require.Equal(t, 1000, pages)
}

// discarded counts bytes.
type discarded int64

func (d *discarded) Write(p []byte) (int, error) {
	*d += discarded(len(p))
	return len(p), nil
}
