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
