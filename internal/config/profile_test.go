package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Profiles are for this machine only.
func TestProfilesAreServedOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "127.0.0.1:6060", "127.1.2.3:0", "[::1]:6060", "localhost:6060"} {
		require.NoError(t, Profile{Pprof: address}.Validate(), address)
	}
	for _, address := range []string{"0.0.0.0:6060", ":6060", "[::]:6060", "10.0.0.7:6060", "example.com:6060", "localhost.example.com:6060"} {
		require.ErrorContains(t, Profile{Pprof: address}.Validate(), "--pprof must be an address of this machine only, such as 127.0.0.1:6060, not ", address)
	}
	for _, address := range []string{"6060", "127.0.0.1", "127.0.0.1:6060:1"} {
		require.ErrorContains(t, Profile{Pprof: address}.Validate(), "--pprof: address ", address)
	}
}

func TestAProfileAddressOfOthersIsRefused(t *testing.T) {
	t.Parallel()
	var flags struct {
		Run struct{ Profile } `cmd:""`
		Log
	}
	var usage *UsageError
	require.ErrorAs(t, parseInto(t, &flags, nil, "run", "--pprof=:6060"), &usage)
	require.ErrorContains(t, usage, "--pprof must be an address of this machine only")
	require.NoError(t, parseInto(t, &flags, map[string]string{"INDEXER_PPROF": "localhost:6060"}, "run"))
	require.Equal(t, "localhost:6060", flags.Run.Pprof)
}

// Credentials for a collector are in a header, which no message shows.
func TestCollectorsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{"", "http://127.0.0.1:4318", "https://collector.example.com/otlp"} {
		require.NoError(t, Traces{OTLPEndpoint: endpoint}.Validate(), endpoint)
	}
	for endpoint, refused := range map[string]string{
		"127.0.0.1:4318": "must be of the form", "grpc://127.0.0.1:4317": "must be of the form", "http://": "must be of the form",
		"http://me:geheim@collector": "no user", "http://collector?key=geheim": "no user", "http://collector#geheim": "no user",
	} {
		err := Traces{OTLPEndpoint: endpoint}.Validate()
		require.ErrorContains(t, err, refused, endpoint)
		require.NotContains(t, err.Error(), "geheim")
	}
	var flags struct {
		Run struct{ Traces } `cmd:""`
	}
	for variable, want := range map[string]string{ // the other one may be set for all programs of a cluster
		"OTEL_EXPORTER_OTLP_ENDPOINT": "", "INDEXER_OTLP_ENDPOINT": "http://127.0.0.1:4318",
	} {
		flags.Run.OTLPEndpoint = ""
		require.NoError(t, parseInto(t, &flags, map[string]string{variable: "http://127.0.0.1:4318"}, "run"))
		require.Equal(t, want, flags.Run.OTLPEndpoint)
	}
}
