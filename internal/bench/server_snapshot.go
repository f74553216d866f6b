package bench

import (
	"encoding/base64"
	"net/http"
	"strconv"

	"ledgerindexer/sandbox"
)

// snapshotMost is the most entries of a page of active contracts.
const snapshotMost = 10_000

// snapshotServer serves a snapshot at the ledger's end in pages. A page's token is the place of the next entry.
type snapshotServer struct {
	data elements
	rest http.Handler
}

func newSnapshotServer(data elements) *snapshotServer {
	return &snapshotServer{data: data, rest: sandbox.NewServer(sandbox.NewLedger(sandbox.Options{Seed: seed}), sandbox.ServerOptions{})}
}

func (s *snapshotServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case pathLedgerEnd:
		sendEnd(w, s.data)
		return
	case pathSnapshotPage:
	default:
		s.rest.ServeHTTP(w, r)
		return
	}
	var q struct {
		At    int64  `json:"activeAtOffset"`
		Size  int    `json:"maxPageSize"`
		Token []byte `json:"pageToken"`
	}
	if !read(w, r, &q) {
		return
	}
	i := 0
	if len(q.Token) > 0 {
		var err error
		if i, err = strconv.Atoi(string(q.Token)); err != nil || i < 0 || i > s.data.len() {
			refuse(w, 8, "INVALID_ACS_PAGE_TOKEN", "this is no token of ours")
			return
		}
	}
	if q.At == 0 { // the beginning of the ledger, where nothing is active
		i = s.data.len()
	} else if q.At != s.data.end() {
		refuse(w, 9, "PARTICIPANT_PRUNED_DATA_ACCESSED", "this server has the snapshot at the ledger's end only")
		return
	}
	j := min(i+min(max(q.Size, 1), snapshotMost), s.data.len())
	next := "null"
	if j < s.data.len() {
		next = `"` + base64.StdEncoding.EncodeToString(strconv.AppendInt(nil, int64(j), 10)) + `"`
	}
	send(w, s.data.slice(i, j), `{"activeContracts":[`, `],"activeAtOffset":`+strconv.FormatInt(q.At, 10)+`,"nextPageToken":`+next+`}`)
}
