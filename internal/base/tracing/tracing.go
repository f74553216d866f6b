// Package tracing sends traces to an OpenTelemetry collector: one for each batch of updates, from the requests for its
// pages to its commit. How long each step took is passed to it where it is counted for the metrics
// (internal/features/admin).
package tracing

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/base/access"
	"ledgerindexer/internal/base/version"
)

// flushFor is what Config.FlushFor is by default.
const flushFor = 3 * time.Second

// Config is where traces go.
type Config struct {
	Endpoint string // base URL of a collector's OTLP over HTTP, to which v1/traces is added
	Build    version.Build
	Logger   *slog.Logger
	Reason   func(error) string // what kind of error it is, in few fixed words; a trace has no other text of an error
	FlushFor time.Duration      // how long Close waits for a collector to take what is not sent yet; 0: for seconds
}

// Tracer implements [ingest.Tracer]. Whatever is not in Config follows the OTEL_* variables of the environment.
type Tracer struct {
	provider *sdk.TracerProvider
	exporter *exporter
	tracer   trace.Tracer
	reason   func(error) string
	flushFor time.Duration
	ledger   string
}

// New returns a tracer for the updates of a participant. It sends nothing yet, and never waits for the collector but in
// Close.
func New(ctx context.Context, cfg Config) (*Tracer, error) {
	endpoint, err := url.JoinPath(cfg.Endpoint, "v1/traces")
	if err != nil {
		return nil, fmt.Errorf("--otlp-endpoint: %w", err)
	}
	listen(cfg.Logger)
	client, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint))
	if err != nil {
		return nil, fmt.Errorf("traces for --otlp-endpoint, with the OTEL_* variables of the environment: %w", err)
	}
	of, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "ledgerindexer"), attribute.String("service.version", cfg.Build.Version),
	), resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv()) // the last one counts
	if err != nil {
		return nil, fmt.Errorf("what traces say of this process, by the OTEL_* variables of the environment: %w", err)
	}
	to := &exporter{SpanExporter: client, logger: cfg.Logger}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(to), sdk.WithResource(of))
	return &Tracer{
		provider: provider, exporter: to, tracer: provider.Tracer("ledgerindexer"), reason: cfg.Reason,
		flushFor: cmp.Or(cfg.FlushFor, flushFor),
		ledger:   "participant",
	}, nil
}

// OfNetwork returns a tracer for the updates of a network, which Close of the other one closes.
func (t *Tracer) OfNetwork() *Tracer {
	n := *t
	n.ledger = "network"
	return &n
}

// Close sends what is not sent yet. It gives up a collector that does not take it within FlushFor.
func (t *Tracer) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), t.flushFor)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.exporter.closed.Store(true)
		_ = t.exporter.Shutdown(context.Background()) // ends the request that the provider does not wait for any longer
		t.exporter.logger.WarnContext(ctx, "the collector does not take the last traces; they are dropped",
			"error", access.Excerpt(err.Error()))
	}
}

// Follow implements [ingest.Tracer].
func (t *Tracer) Follow(ctx context.Context) (context.Context, ingest.Trail) {
	followed := &trail{of: t, began: time.Now()}
	return context.WithValue(ctx, trailKey{}, followed), followed
}

type trailKey struct{}

// trail implements ingest.Trail.
type trail struct {
	of    *Tracer
	began time.Time

	mu    sync.Mutex
	steps []step
}

// step is something that is over.
type step struct {
	name         string
	began, ended time.Time
	attributes   []attribute.KeyValue
}

// Step notes in the trail of a context, if it has one, what has just ended and how long it took.
func Step(ctx context.Context, name string, took time.Duration, attributes ...attribute.KeyValue) {
	followed, ok := ctx.Value(trailKey{}).(*trail)
	if !ok {
		return
	}
	now := time.Now()
	followed.mu.Lock()
	defer followed.mu.Unlock()
	followed.steps = append(followed.steps, step{name, now.Add(-took), now, attributes})
}

// End implements [ingest.Trail]. Which batch a page gets into is known when it has been read: that is why spans begin
// and end here, with the times that were noted.
func (l *trail) End(work ingest.Work, err error, before ...ingest.Trail) {
	steps, began, ended := l.taken(), l.began, time.Now()
	for _, other := range before {
		if other, ok := other.(*trail); ok {
			steps = append(steps, other.taken()...)
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Or(a.began.Compare(b.began), a.ended.Compare(b.ended)) })
	if len(steps) > 0 && steps[0].began.Before(began) {
		began = steps[0].began
	}
	attributes := []attribute.KeyValue{
		attribute.String("ledgerindexer.ledger", l.of.ledger), attribute.Int64("ledgerindexer.offset.after",
			int64(work.Range.From)),
		attribute.Int("ledgerindexer.attempt", work.Attempt),
	}
	if work.Range.To > work.Range.From {
		attributes = append(attributes, attribute.Int64("ledgerindexer.offset.up_to", int64(work.Range.To)))
	}
	if len(before) > 0 {
		attributes = append(attributes, attribute.Int("ledgerindexer.pages", len(before)),
			attribute.Int("ledgerindexer.updates", work.Updates))
	}
	ctx, root := l.of.tracer.Start(context.Background(), work.Name, trace.WithTimestamp(began),
		trace.WithAttributes(attributes...))
	for _, s := range steps {
		_, span := l.of.tracer.Start(ctx, s.name, trace.WithTimestamp(s.began), trace.WithAttributes(s.attributes...))
		span.End(trace.WithTimestamp(s.ended))
	}
	if err != nil {
		reason := l.of.reason(err)
		root.SetStatus(codes.Error, reason)
		root.SetAttributes(attribute.String("error.type", reason))
	}
	root.End(trace.WithTimestamp(ended))
}

func (l *trail) taken() []step {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.steps)
}

// exporter says once that a collector takes nothing, and once that it does again. The SDK drops what does not fit into
// its queue.
type exporter struct {
	sdk.SpanExporter
	logger *slog.Logger
	closed atomic.Bool // no failure is logged any more

	failing bool // the SDK exports one after the other
	lost    int  // spans, since it fails
}

func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case e.closed.Load():
	case err != nil:
		e.lost += len(spans)
		if !e.failing {
			e.logger.WarnContext(ctx, "traces can't be sent and are dropped until that works again; indexing continues",
				"error", access.Excerpt(err.Error()))
		}
	case e.failing:
		e.logger.InfoContext(ctx, "traces are sent again", "dropped_spans", e.lost)
		e.lost = 0
	}
	e.failing = err != nil
	return nil // else the SDK would write it to standard error
}
