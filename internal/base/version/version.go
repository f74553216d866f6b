// Package version identifies the build of the running program.
package version

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/alecthomas/kong"

	"ledgerindexer/store"
)

// Flag is the flag that prints the version, which kong.Vars holds.
type Flag struct {
	Version kong.VersionFlag `env:"-" help:"Print which version and commit this program was built from, and end."`
}

// Build is what a program was built from. Go stamps version and commit from the repository of the build.
type Build struct {
	Version string // such as v1.2.0, or that of an untagged commit; "(devel)" where nothing was stamped
	Commit  string // with "-dirty" where files were changed since; "unknown" where nothing was stamped
	Schema  int64  // version of the database's schema that the program needs
	Go      string // version of the toolchain
}

// Read returns the build of the running program.
func Read() (Build, error) {
	schema, err := store.SchemaVersion()
	if err != nil {
		return Build{}, err
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return of(info, schema), nil
}

func of(info *debug.BuildInfo, schema int64) Build {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	b := Build{
		Version: cmp.Or(info.Main.Version, "(devel)"), Commit: cmp.Or(settings["vcs.revision"], "unknown"), Schema: schema,
		Go: cmp.Or(info.GoVersion, runtime.Version()),
	}
	if settings["vcs.modified"] == "true" {
		b.Commit += "-dirty"
	}
	return b
}

// Line returns what --version prints.
func (b Build) Line(program string) string {
	return fmt.Sprintf("%s %s, commit %s, schema %d, %s", program, b.Version, b.Commit, b.Schema, b.Go)
}

// Attrs returns the build as attributes of a log line.
func (b Build) Attrs() []any {
	return []any{"version", b.Version, "commit", b.Commit, "schema_version", b.Schema, "go_version", b.Go}
}
