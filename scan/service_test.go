package scan

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// described answers by path; other paths are unknown.
func described(answers map[string]http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		handle, ok := answers[r.URL.Path]
		if !ok {
			handle = answer(404, `{"error":"The requested resource could not be found."}`)
		}
		handle(w, r)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	release, network := answer(200, `{"version":"0.6.12","commit_ts":"2026-07-01T00:00:00Z"}`), answer(200, `{"dso_party_id":"DSO::1220"}`)
	for name, c := range map[string]struct {
		answers map[string]http.HandlerFunc
		want    ledger.TransactionsService
	}{
		"everything": {
			map[string]http.HandlerFunc{pathVersion: release, pathNetwork: network, pathBackfilling: answer(200, `{"complete":true}`)},
			ledger.TransactionsService{Release: "0.6.12", NetworkID: "DSO::1220"},
		},
		"backfilling": {
			map[string]http.HandlerFunc{pathVersion: release, pathNetwork: network, pathBackfilling: answer(200, `{"complete":false}`)},
			ledger.TransactionsService{Release: "0.6.12", NetworkID: "DSO::1220", Backfilling: true},
		},
		"nothing":             {nil, ledger.TransactionsService{}},
		"the network alone":   {map[string]http.HandlerFunc{pathNetwork: network}, ledger.TransactionsService{NetworkID: "DSO::1220"}},
		"not implemented":     {map[string]http.HandlerFunc{pathBackfilling: answer(501, ""), pathVersion: release}, ledger.TransactionsService{Release: "0.6.12"}},
		"method not allowed":  {map[string]http.HandlerFunc{pathVersion: plain(405, "no"), pathNetwork: network}, ledger.TransactionsService{NetworkID: "DSO::1220"}},
		"a proxy's not found": {map[string]http.HandlerFunc{pathVersion: plain(404, "<html>"), pathNetwork: network}, ledger.TransactionsService{NetworkID: "DSO::1220"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, described(c.answers))
			got, err := client(t, Config{URL: s.URL}).Describe(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			require.Equal(t, []string{"GET " + pathVersion, "GET " + pathNetwork, "GET " + pathBackfilling}, s.requests())
		})
	}
}

// What fails is an error: to take a service that can't tell for one that is complete would be a guess.
func TestDescribeFails(t *testing.T) {
	t.Parallel()
	good := map[string]http.HandlerFunc{
		pathVersion: answer(200, `{"version":"0.6.12"}`), pathNetwork: answer(200, `{"dso_party_id":"DSO::1220"}`), pathBackfilling: answer(200, `{"complete":true}`),
	}
	for path, says := range map[string]string{
		pathVersion: "ask for the service's release: version: ", pathNetwork: "ask for the network's party: dso-party-id: ",
		pathBackfilling: "ask whether the history is complete: backfilling-status: ",
	} {
		for name, bad := range map[string]struct {
			answer http.HandlerFunc
			says   string
		}{
			"500":            {answer(500, `{"error":"An unexpected error occurred."}`), "HTTP status 500 Internal Server Error: An unexpected error occurred."},
			"503":            {answer(503, `{"error":"starting"}`), "HTTP status 503 Service Unavailable: starting"},
			"no answer":      {raw(""), "EOF"},
			"no JSON":        {answer(200, `yes`), `the answer is not JSON, though its content type is "application/json", at byte 0: invalid character 'y' at start of value; the answer begins "yes"`},
			"no object":      {answer(200, `[1]`), "the answer is not the one of this operation"},
			"a page":         {plain(200, `<html>`), "instead of application/json; is --scan-url the base of the JSON API?"},
			"another member": {answer(200, `{}`), "the answer holds no "},
			"null":           {answer(200, `{"version":null,"dso_party_id":null,"complete":null}`), "the answer holds no "},
			"other types":    {answer(200, `{"version":[1],"dso_party_id":{},"complete":"true"}`), "the answer is not the one of this operation"},
			"cut off":        {answer(200, `{"version":"0.6`), "the answer was cut off after 15 bytes: the JSON has no end"},
			"without end":    {func(w http.ResponseWriter, _ *http.Request) { endless(w) }, "the answer is too large: it has more than 1048576 bytes"},
		} {
			t.Run(path+" "+name, func(t *testing.T) {
				t.Parallel()
				answers := map[string]http.HandlerFunc{path: bad.answer}
				for p, handle := range good {
					if p != path {
						answers[p] = handle
					}
				}
				got, err := client(t, Config{URL: serve(t, described(answers)).URL, Reached: true}).Describe(t.Context())
				_ = retryable(t, err)
				require.ErrorContains(t, err, says)
				require.ErrorContains(t, err, bad.says)
				require.Empty(t, got)
			})
		}
	}
}

// endless writes until the client has read enough.
func endless(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	for block := make([]byte, 1<<20); ; {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}
