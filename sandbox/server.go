package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ServerOptions say how a server behaves. The zero value is a participant of
// release 3.5 with the limits of a real one and without authentication.
type ServerOptions struct {
	// Version is the participant's release: "3.4", "3.5.5", "3.5" (its newest, 3.5.10; default) or "3.6".
	Version string
	// StrictInterface serves only the operations of interface.md, and leaves the fields
	// of a looked-up contract empty that it calls not populated.
	StrictInterface bool
	// ListLimit is the largest number of elements in a list response; default 200. A
	// longer list is refused with 413 unless the request's limit is at most this.
	ListLimit int
	// IgnoreLargeLimit makes a limit above ListLimit, or none, mean ListLimit: never
	// 413, as interface.md (Limits) has it.
	IgnoreLargeLimit bool
	// IdleTimeout ends an open-ended read after a gap this long, unless the request
	// says stream_idle_timeout_ms; default 500 ms.
	IdleTimeout time.Duration
	// RequestTimeout answers 503 when a request takes longer; default 20 s.
	RequestTimeout time.Duration
	// CheckpointInterval is the time between OffsetCheckpoints on an open-ended read,
	// and between those that all reads share, default 15 s. The first one comes after this
	// or 450 ms, whichever is less. If the last shared one is at the offset where the read
	// begins, it comes before the first update. A checkpoint is an element: it counts for
	// the limit and ends an idle gap, so a read without a limit never ends if this is
	// shorter than its idle time.
	CheckpointInterval time.Duration
	// NoCheckpoints leaves OffsetCheckpoints out.
	NoCheckpoints bool
	// Token, if not empty, is the bearer token that requests must carry; with it they may
	// do everything. It is ignored if there is an Authority.
	Token string
	// Authority, if not nil, decides whose token a request carries and what the user may do.
	Authority *Authority
	// Latency is waited before every answer.
	Latency time.Duration
	// ExtraEntries puts a JsEmpty entry and one of an unknown variant at the end of
	// every snapshot that is read to its end.
	ExtraEntries bool
	// Disconnected are ids of synchronizers that the participant is not connected to:
	// packages can't be vetted there. If only one is left, requests need not name it.
	Disconnected []string
	// Parties answers which parties the participant knows, and which of them it hosts (isLocal): those of
	// [Ledger.Parties].
	Parties bool
	// NoVetting leaves package vetting out: its paths are unknown.
	NoVetting bool
	// VettingPage is the largest and the default size of a page of vetted packages;
	// default 100.
	VettingPage int
	// Down, if not nil, is closed when the server goes down: what it is asked from then on, and open-ended reads, fail
	// with 500 LEDGER_API_INTERNAL_ERROR.
	Down <-chan struct{}
	// Fault may disturb the answer to a request; nil answers normally.
	Fault func(*http.Request) *Fault
	// Rewrite may replace the JSON of an element of a list or page, or the answer of a
	// lookup; nil drops it, and a lookup then finds nothing. Contracts have offset 0.
	Rewrite func(Element) []byte
}

// maxBody is the largest body of a request, in bytes.
const maxBody = 10 << 20

// Element is one element of a response. Raw must not be changed in place.
type Element struct {
	Path   string // of the request
	Offset int64
	Raw    []byte
	// EventID is that of a record of the transaction history, whose Offset is that of the update.
	EventID string
}

// Server serves a history over HTTP.
type Server struct {
	history     History
	opts        ServerOptions
	feat        features
	paths       map[string]http.HandlerFunc // "METHOD /path"
	checkpoints atomic.Int64

	making sync.Mutex
	made   int64     // offset of the last shared OffsetCheckpoint
	madeAt time.Time // its time
}

// NewServer returns the handler that serves a history. It panics on a version that
// does not exist.
func NewServer(h History, opts ServerOptions) http.Handler {
	if opts.Version == "" {
		opts.Version = "3.5"
	}
	setDefault(&opts.ListLimit, 200)
	setDefault(&opts.IdleTimeout, 500*time.Millisecond)
	setDefault(&opts.RequestTimeout, 20*time.Second)
	setDefault(&opts.CheckpointInterval, 15*time.Second)
	setDefault(&opts.VettingPage, 100)
	s := &Server{history: h, opts: opts, feat: featuresOf(opts.Version)}
	s.feat.bareLookups = opts.StrictInterface
	s.routes()
	return s
}

func setDefault[T int | int64 | time.Duration](v *T, to T) {
	if *v == 0 {
		*v = to
	}
}

// featuresOf returns what a release serves.
func featuresOf(version string) features {
	switch version {
	case "3.4":
		return features{}
	case "3.5.5", "3.5":
		return features{contractKeyHash: true, token: true, onboarding: true}
	case "3.6":
		return features{contractKeyHash: true, token: true, onboarding: true, transactionHash: true, endTimes: true}
	}
	panic(fmt.Sprintf("sandbox: no version %q: choose 3.4, 3.5.5, 3.5 or 3.6", version))
}

func (s *Server) routes() {
	s.paths = map[string]http.HandlerFunc{
		"POST /v2/state/active-contracts":   s.activeContracts,
		"POST /v2/updates/update-by-id":     s.updateByID,
		"POST /v2/contracts/contract-by-id": s.contractByID,
	}
	if s.opts.StrictInterface || s.opts.Version != "3.6" {
		s.paths["POST /v2/updates/flats"] = s.updates
	}
	if !s.opts.NoVetting {
		s.vettingRoutes()
	}
	if s.opts.StrictInterface {
		return
	}
	s.paths["POST /v2/updates"] = s.updates
	s.paths["GET /v2/state/ledger-end"] = s.ledgerEnd
	s.paths["GET /v2/state/latest-pruned-offsets"] = s.latestPruned
	s.paths["GET /v2/state/connected-synchronizers"] = s.connectedSynchronizers
	s.paths["GET /v2/version"] = s.version
	s.paths["GET /v2/parties/participant-id"] = s.participantID
	s.paths["GET /v2/authenticated-user"] = s.authenticatedUser
	s.paths["GET /v2/packages"] = s.listPackages
	s.paths["GET /livez"] = func(http.ResponseWriter, *http.Request) {}
	s.paths["GET /readyz"] = ready
	if s.opts.Version != "3.6" {
		s.paths["POST /v2/updates/trees"] = s.trees
	}
	if s.opts.Version != "3.4" {
		s.paths["POST /v2/updates/get-updates-page"] = s.updatesPage
		s.paths["GET /v2/state/active-contracts-page"] = s.activeContractsPage // with a body
		if s.opts.Version != "3.5.5" {
			s.paths["POST /v2/state/active-contracts-page"] = s.activeContractsPage
		}
	}
}

func (s *Server) vettingRoutes() {
	s.paths["POST /v2/package-vetting/update"] = administrators(s.updateVetting)
	if s.opts.StrictInterface {
		return
	}
	s.paths["POST /v2/package-vetting/list"] = s.listVetting
	if s.opts.Version != "3.6" { // deprecated in favor of the others
		s.paths["POST /v2/package-vetting"] = administrators(s.updateVetting)
		s.paths["GET /v2/package-vetting"] = s.listVetting
	}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), s.opts.RequestTimeout)
	defer cancel()
	slowed(w, r.WithContext(ctx), s.opts.Latency, s.opts.Fault, s.serve)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	select {
	case <-s.opts.Down:
		writeError(w, goingDown())
		return
	default:
	}
	handler, ok := s.paths[r.Method+" "+r.URL.Path]
	if _, isRights := userOfRights(r); isRights && !s.opts.StrictInterface {
		handler, ok = s.userRights, true
	}
	if _, isPackage := packageOfPath(r); isPackage && !s.opts.StrictInterface {
		handler, ok = s.packageContent, true
	}
	if _, isParties := partyOfPath(r); isParties && !ok && s.opts.Parties {
		handler, ok = s.partyDetails, true
	}
	users := !s.opts.StrictInterface && s.opts.Authority != nil && changesUsers(r)
	if !ok && !users {
		s.unrouted(w, r)
		return
	}
	if !isProbe(r.URL.Path) {
		c, ok := s.authenticated(w, r)
		if !ok {
			return
		}
		r = withCaller(r, c)
	}
	if users {
		handler = administrators(s.changeUsers)
	}
	handler(w, r)
}

// webSockets are the paths that a participant serves as WebSockets by GET. A GET that is none of it is answered as if
// there were no such path.
var webSockets = []string{"/v2/updates", "/v2/updates/flats", "/v2/updates/trees", "/v2/state/active-contracts"}

// unrouted answers a request that is for no operation.
func (s *Server) unrouted(w http.ResponseWriter, r *http.Request) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		_, ok := s.paths[method+" "+r.URL.Path]
		if ok && !(r.Method == http.MethodGet && slices.Contains(webSockets, r.URL.Path)) {
			writeText(w, http.StatusMethodNotAllowed, "Method Not Allowed")
			return
		}
	}
	notFound(w, r)
}

// ready answers in text, and not a client that accepts only something else.
func ready(w http.ResponseWriter, r *http.Request) {
	accept := r.Header.Get("Accept")
	if accept != "" && !strings.Contains(accept, "text/") && !strings.Contains(accept, "*/*") {
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	writeText(w, http.StatusOK, "[+] ledger ok (SERVING)\nreadyz check passed\n")
}

func isProbe(path string) bool { return path == "/livez" || path == "/readyz" }

// late answers a request that took too long; a client that left gets nothing, which
// must not look like an empty answer.
func late(ctx context.Context, w http.ResponseWriter) {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		panic(http.ErrAbortHandler)
	}
	writeText(w, http.StatusServiceUnavailable, "The server was not able to produce a timely response to your "+
		"request.\r\nPlease try again in a short while!")
}

// body reads a request's body as an object; what can not be decoded is answered
// here, as text.
func (s *Server) body(w http.ResponseWriter, r *http.Request) (object, bool) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		writeText(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("EntityStreamSizeException: incoming entity size "+
			"exceeded size limit (%d bytes)!", maxBody))
		return nil, false
	case err != nil:
		return nil, false // the client is gone
	}
	var o object
	if err := json.Unmarshal(raw, &o); err != nil || o == nil {
		if err == nil {
			err = errors.New("got null")
		}
		badBody(w, fmt.Errorf("expected an object: %w", err))
		return nil, false
	}
	return o, true
}

func badBody(w http.ResponseWriter, err error) {
	writeText(w, http.StatusBadRequest, fmt.Sprintf("Invalid value for: body (%v)", err))
}

// accepted reports whether a request was understood; if not it has been answered.
func accepted(w http.ResponseWriter, d *decoder, err *cantonError) bool {
	switch {
	case d.err != nil:
		badBody(w, d.err)
	case err != nil:
		writeError(w, err)
	default:
		return true
	}
	return false
}

func (s *Server) names() names {
	n := s.history.names()
	n.packageIDs = s.opts.Version == "3.4"
	return n
}

// rewrite passes an element through the hook; ok is false if it is dropped.
func (s *Server) rewrite(path string, offset int64, raw []byte) ([]byte, bool) {
	if s.opts.Rewrite == nil {
		return raw, true
	}
	raw = s.opts.Rewrite(Element{Path: path, Offset: offset, Raw: raw})
	return raw, raw != nil
}
