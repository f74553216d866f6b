package participant

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// raw answers with bytes as they are, so that an answer can be as broken as the network makes it.
func raw(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, text)
	}
}

// What cuts an answer off on the way is trouble that passes, wherever it happens and whoever notices.
func TestBodyCutOffMayBeTriedAgain(t *testing.T) {
	t.Parallel()
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	for name, test := range map[string]struct{ answer, want string }{
		"by one who hides it": {head + "Connection: close\r\n\r\n" + `[{"update":`, "cut off after 11 bytes: the JSON has no end"},
		"before it began":     {head + "Content-Length: 0\r\n\r\n", "cut off after 0 bytes"},
		"no answer at all":    {"", "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, map[string]http.HandlerFunc{pathUpdatesPage: raw(test.answer), pathUpdatesFlats: raw(test.answer), pathSnapshot: raw(test.answer)})
			for _, server := range []Server{with34, with35} {
				_, err := newClient(t, f, server, anyParty).ReadUpdates(t.Context(), 4, 12)
				require.ErrorContains(t, retryable(t, err), test.want)
				require.Equal(t, name != "no answer at all", errors.Is(err, jsonhttp.ErrCutOff))
			}
			_, err := newClient(t, f, with34, anyParty).ReadSnapshot(t.Context(), 5, ledger.Token{})
			require.ErrorContains(t, retryable(t, err), test.want)
		})
	}
}

// What is no JSON by its type is no error object either, whatever it looks like.
func TestAnAnswerOfAnotherTypeIsNoRefusal(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathUpdatesPage: plain(http.StatusOK, `{"code":"PARTICIPANT_PRUNED_DATA_ACCESSED","cause":"no"}`)})
	_, err := newClient(t, f, with35, anyParty).ReadUpdates(t.Context(), 4, 12)
	require.Empty(t, retryable(t, err).Code)
	require.ErrorContains(t, err, `the answer begins "{\"code\":`)
}

// interface.md promises no media type.
func TestAnswerWithoutContentTypeIsTaken(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathUpdatesFlats: raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")})
	_, err := newClient(t, f, with34, anyParty).ReadUpdates(t.Context(), 4, 12)
	require.NoError(t, err)
}

// What is no JSON a participant did not say, so it is asked again, if it has said anything. Whatever else can't be
// understood it meant.
func TestNotJSONMayPass(t *testing.T) {
	t.Parallel()
	const s3cret = "correct-horse-battery"
	for name, test := range map[string]struct {
		handle http.HandlerFunc
		says   string
	}{
		"a page": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>log in with "+s3cret)
		}, `content type "text/html" instead of application/json; is --ledger-url the base of the JSON API?; the answer begins "<html>log in with `},
		"garbage": {answer("log in with " + s3cret), `the answer is not JSON, though its content type is "application/json", at byte 0: ` +
			`invalid character 'l' at start of value; the answer begins "log in with `},
		"damaged": {answer(strings.Replace(transactions(5, 6), `"offset":6`, `"offset"6`, 1)),
			"in /1/update/Transaction/value/offset: invalid character '6' after object name (expecting ':')"},
		"not UTF-8": {answer(strings.Replace(transactions(5, 6), `"commandId":"`, "\"commandId\":\"\xff", 1)), "it is not UTF-8"},
		"two":       {answer("[][]"), "more follows after its end at byte 2"},
	} {
		f := newFake(t, map[string]http.HandlerFunc{pathUpdatesFlats: test.handle})
		strange := 0
		c := newClient(t, f, with34, anyParty, withToken(t, s3cret), func(cfg *Config) {
			cfg.NotJSON = func(operation string) {
				require.Equal(t, "updates", operation)
				strange++
			}
		})
		changes := c.Changes()
		for range 3 {
			_, err := c.ReadUpdates(t.Context(), 4, 12)
			require.NotContains(t, err.Error(), s3cret)
			require.ErrorContains(t, err, "read updates after offset 4 up to 12: ")
			require.ErrorContains(t, err, test.says, name)
			require.Equal(t, http.StatusOK, retryable(t, err).Status)
		}
		require.Greater(t, c.Changes(), changes, "somebody else may have answered")
		require.Equal(t, 3, strange)
		c = newClient(t, f, with34, anyParty, func(cfg *Config) { cfg.Reached = false })
		_, err := c.ReadUpdates(t.Context(), 4, 12)
		require.Contains(t, problem(t, err), "the answer to POST /v2/updates/flats is not JSON, and none came before that is. "+
			"see what stands between here and --ledger-url, and that it is the base of the participant's JSON API")
	}
	f := newFake(t, map[string]http.HandlerFunc{pathUpdatesFlats: answer(strings.Replace(transactions(5, 6), `"updateId":"u6"`, `"updateId":6`, 1))})
	_, err := newClient(t, f, with34, anyParty).ReadUpdates(t.Context(), 4, 12)
	var bad *ledger.DecodeError
	require.ErrorAs(t, err, &bad)
}

func TestCompressedAnswerIsRead(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathUpdatesFlats: func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			t.Error("gzip is not offered")
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, transactions(5, 6))
		_ = z.Close()
	}})
	page, err := newClient(t, f, with34, anyParty).ReadUpdates(t.Context(), 4, 12)
	require.NoError(t, err)
	require.Equal(t, []int64{5, 6}, offsets(page))
	require.EqualValues(t, len(transactions(5, 6)), page.Bytes)
}

// An answer over the cap is asked for in smaller pieces; where a piece is one update an operator must act.
func TestPageOverTheSizeLimit(t *testing.T) {
	t.Parallel()
	all := []int64{1, 2, 3, 4, 5, 6, 7, 8}
	f := newFake(t, map[string]http.HandlerFunc{pathUpdatesFlats: listed(all, func() int { return 200 }, false)})
	c := limited(newClient(t, f, with34, anyParty), 8)
	c.maxBody = int64(len(transactions(1, 2, 3)))
	got, _ := readAll(t, c, 0, 8)
	require.Equal(t, all, got)

	c.maxBody = 100
	_, err := c.ReadUpdates(t.Context(), 3, 8)
	require.Contains(t, problem(t, err), "the update after offset 3 is larger than what is read of an answer. narrow")
	require.ErrorContains(t, err, "at most 100 are read")
}

func TestSilentServerMayBeTriedAgain(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathUpdatesFlats: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }})
	c := newClient(t, f, with34, anyParty)
	c.silence = 20 * time.Millisecond
	_, err := c.ReadUpdates(t.Context(), 4, 12)
	_ = retryable(t, err)
	require.ErrorIs(t, err, jsonhttp.ErrSilent)
	require.NotErrorIs(t, err, t.Context().Err(), "it is not the caller who gave up")
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{
		pathUpdatesPage: cantonError(http.StatusServiceUnavailable, "ABORTED", "busy", ""),
		pathLedgerEnd:   answer(`{"offset":7}`),
	})
	c := newClient(t, f, with35, anyParty)
	for range 20 {
		_, err := c.LedgerEnd(t.Context())
		require.NoError(t, err)
		_, err = c.ReadUpdates(t.Context(), 4, 12)
		require.Error(t, err)
	}
	require.Less(t, f.opened.Load(), int64(10), "a busy machine may make more than one")
}
