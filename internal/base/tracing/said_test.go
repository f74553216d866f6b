package tracing

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	_ "ledgerindexer/internal/tools/hermetic"
)

// What the SDK can't use is in the log, without values, which may be credentials.
func TestWhatTheSDKSaysHasNoSecret(t *testing.T) {
	for variable, c := range map[string]struct{ value, says string }{
		"OTEL_EXPORTER_OTLP_HEADERS":        {"Authorization Bearer geheim", "what=\"parse headers\" error=\"missing '=\""},
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS": {"authorization=Bearer geheim%ZZ", `what="escape header value" error="it is no URL`},
		"OTEL_EXPORTER_OTLP_ENDPOINT":       {"http://joe:geheim@[", `what="parse url" error="it is no URL`},
		"OTEL_EXPORTER_OTLP_CERTIFICATE":    {"/nowhere/ca.pem", "open /nowhere/ca.pem"},
		"OTEL_TRACES_SAMPLER":               {"most", "unsupported sampler"},
	} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, c.value)
			var log strings.Builder
			tracer, err := New(t.Context(), Config{Endpoint: "http://127.0.0.1:1", Logger: slog.New(slog.NewTextHandler(&log, nil))})
			require.NoError(t, err)
			tracer.Close()
			require.Contains(t, log.String(), c.says)
			require.NotContains(t, log.String(), "geheim")
		})
	}
}
