package tracing

import (
	"errors"
	"log/slog"
	"net/url"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"

	"ledgerindexer/internal/access"
)

// listen has the log get what the SDK says, such as of the OTEL_* variables that it can't use. By itself the SDK writes it to standard
// error, with the values, among which may be credentials.
func listen(logger *slog.Logger) {
	otel.SetLogger(logr.New(said{logger}))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { said{logger}.Error(err, "") }))
}

// said is a logr.LogSink that leaves out all values.
type said struct{ logger *slog.Logger }

func (said) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink. The SDK's warnings have level 1; what it does has higher ones.
func (said) Enabled(level int) bool { return level <= 1 }

func (s said) Info(_ int, what string, _ ...any) { s.Error(nil, what) }

func (s said) Error(err error, what string, _ ...any) {
	attributes := []any{"what", what}
	var ofURL *url.Error
	var escape url.EscapeError
	switch {
	case err == nil:
	case errors.As(err, &ofURL), errors.As(err, &escape):
		attributes = append(attributes, "error", "it is no URL, or has a % that has to be written as %25") // the error repeats it
	default:
		attributes = append(attributes, "error", access.Excerpt(err.Error()))
	}
	s.logger.Warn("OpenTelemetry can't use something, such as an OTEL_* variable, and does without", attributes...)
}

func (s said) WithValues(...any) logr.LogSink { return s }

func (s said) WithName(string) logr.LogSink { return s }
