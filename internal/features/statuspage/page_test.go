package statuspage

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	unescape "html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/features/admin"
	"ledgerindexer/internal/features/status"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

var tag = regexp.MustCompile(`<[^>]*>`)

// text is what a reader of a page sees.
func text(html string) string {
	_, body, _ := strings.Cut(html, "<body>")
	return strings.Join(strings.Fields(unescape.UnescapeString(tag.ReplaceAllString(body, " "))), " ")
}

// What the page says is what the database and the process say, and its JSON says the same.
func TestPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.measure(t, time.Hour/2)
	w.measure(t, 20*time.Second)
	w.addRecords(t)
	w.measure(t, 0)
	answer := w.ask(t, "localhost:8080", "/")
	require.Equal(t, http.StatusOK, answer.Code, answer.Body)
	shown := text(answer.Body.String())
	for _, words := range []string{
		"ledgerindexer waiting",
		"catching up: offset 4,000 of 5,000 21,300 updates/s, 4 min left",
		"Updates of the participant waits the participant 3.5.1",
		"leading, trying again: no rights for", "3 h 0 min ago:", `may not read as "…" <b>contract</b> … What to do: grant CanReadAs for …`,
		"behind 75 s 1,000 offsets", "updates stored 0/s", "readers see up to offset 4,000",
		"Transaction history stands by the Scan service behind not known", "records stored 0.0", "records 2 the newest ",
		"Of the offsets 0 to 5,000 62% are stored 0 5,000",
		"events complete after offset 1000", "active set known from offset 2000", "ledger end 5000, 1,000 offsets ahead",
		"verified up to offset 3500, 500 behind the watermark",
		"size ", "B a day at this rate", "partitions, PostgreSQL ",
		"3 times · updates trying again : no answer about …", "What to do: grant it to …", "host pid 1, up for", "version v1.2.3, commit 0123456789ab, schema 15, go1.26",
	} {
		require.Contains(t, shown, words)
	}
	require.Regexp(t, `task pruning failed 20\S+Z: the export has stopped; what to do: see that it runs`, shown)
	var d struct {
		Ready   bool
		Ledgers []struct {
			Streams []map[string]any
			Ledger  map[string]any
			Process []struct {
				Stream  string
				State   string
				Lag     *float64 `json:"lag_seconds"`
				Samples []map[string]any
			}
		}
		Notices []Notice
	}
	answer = w.ask(t, "127.0.0.1", "/status.json")
	require.Equal(t, "application/json", answer.Header().Get("Content-Type"))
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &d))
	require.False(t, d.Ready)
	l := d.Ledgers[0]
	require.Equal(t, map[string]any{"end_offset": 5000.0, "lag_offsets": 1000.0, "last_update_seconds": nil}, l.Ledger)
	require.Equal(t, []any{
		map[string]any{"from_exclusive": 1000.0, "to_inclusive": 4000.0}, map[string]any{"from_exclusive": 4500.0, "to_inclusive": 4600.0},
	}, l.Streams[0]["coverage"])
	require.Equal(t, 75.0, *l.Process[0].Lag)
	require.Equal(t, "stands_by", l.Process[1].State)
	require.Nil(t, l.Process[1].Lag, "not known, and not 0")
	require.Len(t, l.Process[1].Samples, 3)
	require.Nil(t, l.Process[1].Samples[0]["per_second"])
	require.InDelta(t, 0.1, l.Process[1].Samples[2]["per_second"], 0.05)
	require.Len(t, d.Notices, 2)
}

// All is well if no background task fails either, of whichever ledger.
func TestTheStateOfTheProcess(t *testing.T) {
	t.Parallel()
	leads := []StreamData{{State: admin.Leads, Ready: true}}
	for want, report := range map[string]*status.Report{
		"good all is well":             {Tasks: []status.Task{{Name: "pruning"}, {Name: store.StreamUpdates, Failing: true}}, Verified: &status.Verified{}},
		"warn a background task fails": {Tasks: []status.Task{{Name: "pruning", Failing: true}}},
	} {
		got := overall(Data{Ledgers: []LedgerData{{Process: leads, Report: &status.Report{}}, {Process: leads, Report: report}}})
		require.Equal(t, want, got.Kind+" "+got.Text)
	}
	now := time.Now()
	for want, n := range map[string]Notice{
		"warn errors in the last hour: see below": {Level: "ERROR", At: now.Add(-50 * time.Minute)}, "good all is well": {Level: "WARN", At: now},
	} {
		got := overall(Data{GeneratedAt: now, Notices: []Notice{{Level: "ERROR", At: now.Add(-2 * time.Hour)}, n}, Ledgers: []LedgerData{{Process: leads, Report: &status.Report{}}}})
		require.Equal(t, want, got.Kind+" "+got.Text)
	}
}

// Nothing on the page or in its JSON names a party or a contract, whatever an error says, and errors are shown as text.
func TestNothingOnThePageNamesAPartyOrAContract(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addRecords(t)
	w.measure(t, 0)
	for _, path := range []string{"/", "/status.json"} {
		body := w.ask(t, "localhost", path).Body.String()
		for _, name := range []string{"Alice", "Smith", "bob", "1220aaaa", "deadbeef"} {
			require.NotContains(t, body, name, path)
		}
		require.NotContains(t, body, "<b>contract</b>", path)
		require.Contains(t, body, "no answer about …", path)
	}
}

// A browser may load nothing and run nothing but the page itself.
func TestPageIsClosed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer := w.ask(t, "localhost", "/")
	html, policy := answer.Body.String(), answer.Header().Get("Content-Security-Policy")
	_, style, _ := strings.Cut(html, "<style>")
	style, _, found := strings.Cut(style, "</style>")
	require.True(t, found)
	sum := sha256.Sum256([]byte(style))
	require.Equal(t, "default-src 'none'; style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+
		"'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", policy)
	require.NotRegexp(t, `<script|\sstyle=|\son\w+=|url\(|@import`, html)
	for _, link := range regexp.MustCompile(`(?:href|src)="([^"]*)"`).FindAllStringSubmatch(html, -1) {
		require.Regexp(t, `^(data:image/svg|/|\?refresh=no$)`, link[1])
		require.False(t, strings.HasPrefix(link[1], "//"), link[1])
	}
	require.Equal(t, "nosniff", answer.Header().Get("X-Content-Type-Options"))
	require.Equal(t, "no-store", answer.Header().Get("Cache-Control"))
	require.Contains(t, html, `http-equiv="refresh"`)
	require.NotContains(t, w.ask(t, "localhost", "/?refresh=no").Body.String(), `http-equiv="refresh"`)
}

// A site whose name was made to lead here is not answered.
func TestPageIsAskedForByKnownNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for host, known := range map[string]bool{
		"127.0.0.1:8080": true, "[::1]:8080": true, "::1": true, "10.1.2.3": true, "localhost": true, "LOCALHOST.:8080": true, "a.localhost:1": true,
		"indexer.example.com": true, "INDEXER.example.com:8080": true,
		"proxy.example.com": true, "proxy.example.com:8443": true, // the flag has the port too
		"evil.example.com": false, "localhost.evil.com": false, "127.0.0.1.evil.com": false, "indexer.example.com.evil.com:8080": false, "": false, "notlocalhost": false,
	} {
		for _, path := range []string{"/", "/status.json"} {
			answer := w.ask(t, host, path)
			if known {
				require.Equal(t, http.StatusOK, answer.Code, host)
				continue
			}
			require.Equal(t, http.StatusMisdirectedRequest, answer.Code, host)
			require.Contains(t, answer.Body.String(), "--page-hosts")
			require.NotContains(t, answer.Body.String(), "ledger")
		}
	}
	require.Equal(t, http.StatusNotFound, w.ask(t, "localhost", "/other").Code)
}

// A database that goes away is no reason to show nothing, but what it said last is not known now: that is said, with
// how old it is, also before the next measurement.
func TestPageWithoutItsDatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(t, "UPDATE indexer.leadership SET holder = 'host pid 7', led_since = now() WHERE lease = 'updates'")
	require.Contains(t, text(w.ask(t, "localhost", "/").Body.String()), "nobody leads; the last one was host pid 7", "it was killed")
	w.exec(t, "BEGIN; LOCK TABLE indexer.lead_updates IN EXCLUSIVE MODE")
	w.page.read[0].tried = time.Time{}
	w.measure0(t)
	shown := text(w.ask(t, "localhost", "/").Body.String())
	require.Contains(t, shown, "readers see up to offset 4,000")
	require.Contains(t, shown, "behind 75 s")
	require.Contains(t, shown, "led by host pid 7, for ")
	w.db.Close()
	for measured := range 2 {
		if measured > 0 {
			w.measure0(t)
		}
		w.page.read[0].tried, w.page.read[0].at = time.Time{}, time.Now().Add(-4*time.Hour)
		w.page.ledgers[0].streams[0].at = time.Now().Add(-3 * time.Hour)
		shown = text(w.ask(t, "localhost", "/").Body.String())
		require.Contains(t, shown, "ledgerindexer the database does not answer")
		require.Regexp(t, `The database does not answer; what it says here is of 4 h \d+ min ago: .*closed pool`, shown)
		require.Regexp(t, `behind not known 75 s 3 h \d+ min ago`, shown)
		require.Regexp(t, `readers see up to offset not known 4,000 4 h \d+ min ago`, shown)
		require.Regexp(t, `who leads is not known, 4 h \d+ min ago it was host pid 7`, shown)
		require.NotContains(t, shown, "led by")
	}
}

// What was measured too long ago is not known either, as where the measuring hangs.
func TestPageWithOldMeasurements(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.measure0(t)
	w.page.ledgers[0].streams[0].at = time.Now().Add(-2 * staleAfter)
	w.page.read[0].tried = time.Time{}
	require.Regexp(t, `behind not known 75 s \d+ s ago updates stored not known`, text(w.ask(t, "localhost", "/").Body.String()))
}

// measure0 takes a sample only.
func (w *world) measure0(t *testing.T) {
	t.Helper()
	w.page.measure(t.Context(), w.page.cfg.Ledgers[0], w.page.ledgers[0])
}

// A process that does not write a stream finds out its lag from the ends that the watermark has reached since they were
// asked for.
func TestBehind(t *testing.T) {
	t.Parallel()
	now, recorded := time.Now(), time.Now().Add(-time.Hour)
	var end ledger.Offset
	var failure error
	leads := false
	s := Stream{Lag: func() admin.Lag { return admin.Lag{Leads: leads} }, End: func(context.Context) (ledger.Offset, error) { return end, failure }}
	var b behind
	after := func(watermark ledger.Offset, passed time.Duration) admin.Lag {
		t.Helper()
		b.ask(t.Context(), s)
		if len(b.ahead) > 0 && b.answered {
			b.ahead[len(b.ahead)-1].at = now.Add(passed)
		}
		return b.lag(store.Heads{Watermark: watermark, RecordTime: recorded}, now.Add(passed))
	}
	end = 30
	l := after(10, 0)
	require.InDelta(t, 3600, l.Seconds, 1, "since the newest that is shown was recorded")
	l.Seconds = 0
	require.Equal(t, admin.Lag{Known: true, End: 30, Offsets: 20}, l)
	end = 40
	l = after(30, 10*time.Second)
	require.InDelta(t, 10, l.Seconds, 0.001, "since the question whose end was reached")
	require.Equal(t, int64(10), l.Offsets)
	end = 50
	require.Equal(t, admin.Lag{Known: true, End: 50}, after(50, 20*time.Second))
	end = 51
	require.InDelta(t, 5, after(50, 25*time.Second).Seconds, 0.001)
	recorded = now.Add(time.Hour)
	require.InDelta(t, 6, after(50, 26*time.Second).Seconds, 0.001, "the ledger's clock is ahead of this one")
	failure = errors.New("away")
	require.False(t, after(50, 30*time.Second).Known)
	failure, leads = nil, true
	require.False(t, after(50, 30*time.Second).Known, "it is not asked")
	require.False(t, (&behind{answered: true, end: 1, ahead: []asked{{1, now}}}).lag(store.Heads{}, now).Known)
}
