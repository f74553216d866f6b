package app

import (
	"bytes"
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	v1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// receiver is a collector that keeps what it gets.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	spans  []*v1.Span
	bodies []byte
	fault  error // of what came
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		body, err := io.ReadAll(request.Body)
		if request.Header.Get("Content-Encoding") == "gzip" {
			var unzipped *gzip.Reader
			if unzipped, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
				body, err = io.ReadAll(unzipped)
			}
		}
		var export collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &export)
		}
		if err != nil || request.URL.Path != "/prefix/v1/traces" {
			r.fault = err
			http.NotFound(w, request)
			return
		}
		r.bodies = append(r.bodies, body...)
		for _, resource := range export.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				r.spans = append(r.spans, scope.GetSpans()...)
			}
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// tracedTree is a root and what is beneath it, by their beginnings.
type tracedTree struct {
	root  *v1.Span
	steps []*v1.Span
}

// trees returns what came, after checking that every trace has one root, and that every other span lies within it.
func (r *receiver) trees(t *testing.T) (trees []tracedTree) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	require.NoError(t, r.fault)
	beneath := map[string][]*v1.Span{}
	for _, span := range r.spans {
		if len(span.GetParentSpanId()) > 0 {
			beneath[string(span.GetTraceId())] = append(beneath[string(span.GetTraceId())], span)
		}
	}
	for _, root := range r.spans {
		if len(root.GetParentSpanId()) > 0 {
			continue
		}
		steps := beneath[string(root.GetTraceId())]
		delete(beneath, string(root.GetTraceId()))
		for _, s := range steps {
			require.Equal(t, root.GetSpanId(), s.GetParentSpanId(), s.GetName())
			require.GreaterOrEqual(t, s.GetStartTimeUnixNano(), root.GetStartTimeUnixNano(), s.GetName())
			require.LessOrEqual(t, s.GetStartTimeUnixNano(), s.GetEndTimeUnixNano(), s.GetName())
			require.LessOrEqual(t, s.GetEndTimeUnixNano(), root.GetEndTimeUnixNano(), s.GetName())
		}
		slices.SortFunc(steps, func(a, b *v1.Span) int { return int(a.GetStartTimeUnixNano()) - int(b.GetStartTimeUnixNano()) })
		trees = append(trees, tracedTree{root, steps})
	}
	require.Empty(t, beneath, "spans without a root")
	slices.SortFunc(trees, func(a, b tracedTree) int {
		return int(numberOf(a.root, "offset.after") - numberOf(b.root, "offset.after"))
	})
	return trees
}

// named returns the trees of a name.
func named(trees []tracedTree, name string) []tracedTree {
	return slices.DeleteFunc(slices.Clone(trees), func(tree tracedTree) bool { return tree.root.GetName() != name })
}

func (tree tracedTree) names() (names []string) {
	for _, s := range tree.steps {
		names = append(names, s.GetName())
	}
	return names
}

// attributeOf returns an attribute of ours; nil, which is empty and 0: the span has none of this name.
func attributeOf(span *v1.Span, name string) *common.AnyValue {
	for _, attribute := range span.GetAttributes() {
		if attribute.GetKey() == "ledgerindexer."+name {
			return attribute.GetValue()
		}
	}
	return nil
}

func numberOf(span *v1.Span, name string) int64 { return attributeOf(span, name).GetIntValue() }

// requireAdjacent requires that traces are of all offsets up to one, each once.
func requireAdjacent(t *testing.T, trees []tracedTree, end int64) (updates int64) {
	t.Helper()
	at := int64(0)
	for _, tree := range trees {
		require.Equal(t, at, numberOf(tree.root, "offset.after"))
		require.Positive(t, numberOf(tree.root, "attempt"))
		at, updates = numberOf(tree.root, "offset.up_to"), updates+numberOf(tree.root, "updates")
	}
	require.Equal(t, end, at)
	return updates
}

// Each batch is one trace, from the requests for its pages to its commit, catching up and at the ledger's end.
// Everything is there when the daemon has ended.
func TestABatchIsATrace(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 91})
	l.Grow(1500)
	var failed atomic.Bool
	fault := func(r *http.Request) *sandbox.Fault { // discovery asks for one update
		if r.URL.Path == "/v2/updates/flats" && r.URL.Query().Get("limit") != "1" && failed.CompareAndSwap(false, true) {
			return &sandbox.Fault{Status: http.StatusServiceUnavailable}
		}
		return nil
	}
	to := newReceiver(t)
	database := throwaway.Migrated(t, migrate)
	server := serve(t, l, sandbox.ServerOptions{Version: "3.4", ListLimit: 50, Fault: fault, NoCheckpoints: true})
	cfg := indexerFor(database, server, defaultScope())
	cfg.ScanURL, cfg.ScanHistory = []string{serveScan(t, sandbox.NewScan(l, sandbox.ScanOptions{}))}, config.ScanUpdates
	cfg.OTLPEndpoint, cfg.flushTraces = to.URL+"/prefix", time.Minute
	running := startIndexer(t, cfg)
	waitFor(t, database, lastUpdate(l))
	caughtUp := lastUpdate(l)
	l.Grow(10)
	waitFor(t, database, lastUpdate(l))
	eventuallyIn(t, database, "an update of the network", "EXISTS (SELECT FROM network.updates)")
	require.NoError(t, running.finish())

	var trees []tracedTree
	ledgers := map[string]bool{}
	for _, tree := range to.trees(t) {
		ledger := attributeOf(tree.root, "ledger").GetStringValue()
		if ledgers[ledger] = true; ledger == "participant" {
			trees = append(trees, tree)
		}
	}
	require.Equal(t, map[string]bool{"participant": true, "network": true}, ledgers)
	batches := named(trees, "batch")
	require.EqualValues(t, count(t, database, "ledger.updates"), requireAdjacent(t, batches, lastUpdate(l)))
	atTheEnd := false
	for _, tree := range batches {
		names := tree.names()
		require.Subset(t, names, []string{"fetch", "decode"})
		written := slices.DeleteFunc(slices.Clone(names), isRead)
		require.Equal(t, written, names[len(names)-len(written):], "%v: what is read comes first", names)
		var before uint64
		for _, s := range tree.steps {
			if !isRead(s.GetName()) { // pages are read concurrently
				require.GreaterOrEqual(t, s.GetStartTimeUnixNano(), before, names)
				before = s.GetEndTimeUnixNano()
			}
		}
		steps := slices.DeleteFunc(slices.Clone(written), func(step string) bool { return step == "commit" }) // partitions are made before
		require.Equal(t, "copy", steps[0])
		atTheEnd = atTheEnd || numberOf(tree.root, "offset.after") >= caughtUp && slices.Equal(steps, []string{"copy", "project"})
		require.Equal(t, "commit", written[len(written)-1])
	}
	require.True(t, atTheEnd, "at the ledger's end a batch is projected in its own transaction")
	projections := named(trees, "projection")
	require.NotEmpty(t, projections)
	for _, tree := range projections {
		require.Equal(t, []string{"project", "commit"}, tree.names())
	}
	refused := named(trees, "read")
	require.Len(t, refused, 1, "the request that failed")
	require.Equal(t, v1.Status_STATUS_CODE_ERROR, refused[0].root.GetStatus().GetCode())
	require.Contains(t, refused[0].names(), "fetch")
	require.NotContains(t, string(to.bodies), "::1220", "parties")
	require.NotContains(t, string(to.bodies), database)
}

func isRead(step string) bool { return step == "fetch" || step == "decode" }

// A collector that is away, or takes what it gets and never answers, does not hold up indexing, nor the end, and is
// told of once.
func TestACollectorThatIsAway(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	asked := make(chan struct{})
	var once sync.Once
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		once.Do(func() { close(asked) })
		<-release
	}))
	t.Cleanup(func() {
		close(release)
		hangs.Close()
	})
	l := sandbox.NewLedger(sandbox.Options{Seed: 92})
	l.Grow(300)
	for name, c := range map[string]struct{ endpoint, log string }{
		"away":  {"http://127.0.0.1:1", "traces can't be sent"},
		"hangs": {hangs.URL, "does not take the last traces"},
	} {
		t.Run(name, func(t *testing.T) {
			database := throwaway.Migrated(t, migrate)
			cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{Version: "3.4", ListLimit: 50}), defaultScope())
			cfg.OTLPEndpoint = c.endpoint
			var log bytes.Buffer
			require.NoError(t, RunIndexer(t.Context(), cfg, slog.New(slog.NewTextHandler(&log, nil))))
			require.Equal(t, 1, strings.Count(log.String(), c.log), log.String())
			want := l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta, Version: "3.4"}, l.End())
			require.Empty(t, sandbox.Diff(want, relations(t, database)))
		})
	}
	select {
	case <-asked:
	case <-time.After(time.Minute):
		t.Error("the collector that hangs was not asked")
	}
}
