package tracing

import (
	"errors"
	"log/slog"
	"net/url"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"

	"ledgerindexer/internal/base/access"
)

// listen makes the SDK log to logger, such as about the OTEL_* variables that it can't use. By itself the SDK writes it
// to standard error, with the values, among which may be credentials.
func listen(logger *slog.Logger) {
	otel.SetLogger(logr.New(sdkLog{logger}))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { sdkLog{logger}.Error(err, "") }))
}

// sdkLog is a logr.LogSink for what the SDK logs. It leaves out all values.
type sdkLog struct{ logger *slog.Logger }

func (sdkLog) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink. The SDK's warnings have level 1; what it does has higher ones.
func (sdkLog) Enabled(level int) bool { return level <= 1 }

func (s sdkLog) Info(_ int, what string, _ ...any) { s.Error(nil, what) }

func (s sdkLog) Error(err error, what string, _ ...any) {
	attributes := []any{"what", what}
	var ofURL *url.Error
	var escape url.EscapeError
	switch {
	case err == nil:
	case errors.As(err, &ofURL), errors.As(err, &escape):
		// the error repeats it
		attributes = append(attributes, "error", "it is no URL, or has a % that has to be written as %25")
	default:
		attributes = append(attributes, "error", access.Excerpt(err.Error()))
	}
	s.logger.Warn("OpenTelemetry can't use something, such as an OTEL_* variable, and does without", attributes...)
}

func (s sdkLog) WithValues(...any) logr.LogSink { return s }

func (s sdkLog) WithName(string) logr.LogSink { return s }
