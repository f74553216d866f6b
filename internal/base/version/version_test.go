package version

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	_ "ledgerindexer/internal/tools/hermetic"
	"ledgerindexer/store"
)

func TestStampedBuilds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		info debug.BuildInfo
		want string
	}{
		"nothing": {debug.BuildInfo{}, "indexer (devel), commit unknown, schema 7, " + runtime.Version()},
		"a release": {debug.BuildInfo{
			GoVersion: "go1.26.8", Main: debug.Module{Version: "v1.2.0"},
			Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc123"}, {Key: "vcs.modified", Value: "false"}},
		}, "indexer v1.2.0, commit abc123, schema 7, go1.26.8"},
		"changed files": {debug.BuildInfo{
			GoVersion: "go1.26.8", Main: debug.Module{Version: "v1.2.0+dirty"},
			Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc123"}, {Key: "vcs.modified", Value: "true"}},
		}, "indexer v1.2.0+dirty, commit abc123-dirty, schema 7, go1.26.8"},
	} {
		require.Equal(t, c.want, of(&c.info, 7).Line("indexer"), name)
	}
}

func TestThisBuild(t *testing.T) {
	t.Parallel()
	b, err := Read()
	require.NoError(t, err)
	require.Equal(t, runtime.Version(), b.Go)
	schema, err := store.SchemaVersion()
	require.NoError(t, err)
	require.Equal(t, schema, b.Schema)
}
