package export

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	_ "ledgerindexer/internal/tools/hermetic"
	"ledgerindexer/ledger"
)

// unending writes a text without end.
func unending(w http.ResponseWriter, text string) {
	for {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
	}
}

// names returns n entries of a list.
func names(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "<Contents><Key>updates/%d</Key><Size>1</Size></Contents>", i)
	}
	return b.String()
}

// Whatever an object store answers without end, or again and again, ends with an error that says so.
func TestAnObjectStoreWithoutEnd(t *testing.T) {
	t.Parallel()
	const begin = `<ListBucketResult><IsTruncated>true</IsTruncated>`
	lists := func(b *bucket) error { _, err := b.List(t.Context()); return err }
	pages := 0
	for what, c := range map[string]struct {
		answer http.HandlerFunc
		ask    func(*bucket) error
		says   string
	}{
		"names in a page": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, begin)
			unending(w, names(1000))
		},
			lists, "an answer has more bytes than any list or file"},
		"a name": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, begin+"<Contents><Key>")
			unending(w, strings.Repeat("a", 1<<16))
		}, lists, "an answer has more bytes than any list or file"},
		"the same token": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, begin, "<NextContinuationToken>1</NextContinuationToken></ListBucketResult>")
		}, lists, "its list leads back to a page that came before"},
		"other tokens": {func(w http.ResponseWriter, _ *http.Request) {
			pages++
			fmt.Fprintf(w, "%s<NextContinuationToken>%d</NextContinuationToken></ListBucketResult>", begin, pages)
		}, lists, "its list has more than 10000 pages"},
		"unfinished uploads": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>a</NextKeyMarker></ListMultipartUploadsResult>")
		}, func(b *bucket) error { _, err := b.uploads(t.Context()); return err }, "its list leads back to a page that came before"},
		"a manifest": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Last-Modified", time.Unix(0, 0).UTC().Format(http.TimeFormat))
			unending(w, strings.Repeat("a", 1<<16))
		}, func(b *bucket) error {
			_, err := (&catalog{place: b}).read(t.Context(), "manifests/1.json")
			return err
		}, "it has more than 16777216 bytes, and no such file of an export is as large"},
		"what is written of an error": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			unending(w, strings.Repeat("a", 1<<16))
		}, lists, "AccessDenied"},
	} {
		open, faults := objectStore(t)
		f := fault(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool { c.answer(w, r); return true })
		faults.Store(&f)
		require.ErrorContains(t, c.ask(open("s3://there/in")), c.says, what)
	}
}

// An answer that comes byte by byte is given up, however steadily it comes.
func TestAnAnswerByteByByte(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := transport(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: io.NopCloser(drip{})}, nil
		})
		for url, most := range map[string]time.Duration{"http://s/there/?list-type=2": answerTime, "http://s/there/updates/1.parquet": objectTime} {
			began := time.Now()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			require.NoError(t, err)
			resp, err := bounded{one}.RoundTrip(r)
			require.NoError(t, err)
			defer resp.Body.Close()
			_, err = io.Copy(io.Discard, resp.Body)
			var given *ledger.Problem
			require.ErrorAs(t, err, &given)
			require.Contains(t, given.What, "so slowly that it was given up")
			require.WithinDuration(t, began.Add(most), time.Now(), 2*time.Second)
		}
	})
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// drip is a body of which a byte comes every second.
type drip struct{}

func (drip) Read(p []byte) (int, error) {
	time.Sleep(time.Second)
	p[0] = 'a'
	return 1, nil
}
