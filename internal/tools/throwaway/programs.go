package throwaway

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// programFolders are the folders where distributions put PostgreSQL's server
// programs without adding them to PATH. Patterns as in filepath.Glob.
var programFolders = []string{
	"/usr/lib/postgresql/*/bin", // Debian, Ubuntu
	"/usr/pgsql-*/bin",          // Red Hat, the PostgreSQL project's packages
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin", // Homebrew on Intel
	"/Library/PostgreSQL/*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// binsVariable lists, as PATH does, more folders with PostgreSQL's programs for Installed.
const binsVariable = "TEST_POSTGRES_BINS"

// Programs are PostgreSQL's programs on this machine.
type Programs struct {
	Folder  string // of initdb, postgres and pg_ctl
	Version int    // the major version
}

// Installed returns the programs of every major version from MinVersion on, the oldest first: those in the folders that
// TEST_POSTGRES_BINS lists, else those that are used without it, else those of the usual folders. A folder that is
// listed and has none is an error.
func Installed(ctx context.Context) ([]Programs, error) {
	var all []Programs
	add := func(folder string, version int) {
		if version >= MinVersion && !slices.ContainsFunc(all, func(p Programs) bool { return p.Version == version }) {
			all = append(all, Programs{folder, version})
		}
	}
	for _, folder := range filepath.SplitList(os.Getenv(binsVariable)) {
		version, err := serverVersion(ctx, folder)
		if err == nil && version < MinVersion {
			err = fmt.Errorf("they are of version %d, and %d is the oldest", version, MinVersion)
		}
		if err != nil {
			return nil, fmt.Errorf("PostgreSQL's programs in %s, which %s lists: %w", folder, binsVariable, err)
		}
		add(folder, version)
	}
	folders := usualFolders(programFolders)
	if used, _ := findPrograms(ctx, nil); used != "" {
		folders = append([]string{used}, folders...)
	}
	for _, folder := range folders {
		if version, err := serverVersion(ctx, folder); err == nil { // else they are of no use
			add(folder, version)
		}
	}
	slices.SortFunc(all, func(a, b Programs) int { return a.Version - b.Version })
	return all, nil
}

// usualFolders returns the folders that match patterns.
func usualFolders(patterns []string) (folders []string) {
	for _, pattern := range patterns {
		matches, _ := filepath.Glob(pattern) // the only error is a bad pattern
		folders = append(folders, matches...)
	}
	return folders
}

// findPrograms returns the folder with the PostgreSQL programs to use: PATH's,
// else those of the highest version. Where there is none it returns why not.
// Folders, where not nil, replaces programFolders.
func findPrograms(ctx context.Context, folders []string) (folder, why string) {
	if folders == nil {
		folders = programFolders
	}
	var tooOld []string
	usable := func(folder string) int {
		version, err := serverVersion(ctx, folder)
		switch {
		case err != nil:
			return 0
		case version < MinVersion:
			tooOld = append(tooOld, fmt.Sprintf("%s has %d", folder, version))
			return 0
		}
		return version
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil && usable(filepath.Dir(path)) > 0 {
			return filepath.Dir(path), ""
		}
	}
	highest := 0
	for _, match := range usualFolders(folders) {
		if version := usable(match); version > highest {
			highest, folder = version, match
		}
	}
	if folder != "" {
		return folder, ""
	}
	why = fmt.Sprintf("no PostgreSQL %d or later programs (initdb, postgres) are in PATH or the usual folders", MinVersion)
	if len(tooOld) > 0 {
		why += " (" + strings.Join(tooOld, ", ") + ")"
	}
	return "", why
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// serverVersion returns the major version of the programs in a folder; an error
// where one of those that are needed is missing.
func serverVersion(ctx context.Context, folder string) (int, error) {
	for _, name := range []string{"initdb", "pg_ctl"} {
		if _, err := exec.LookPath(filepath.Join(folder, name)); err != nil {
			return 0, err
		}
	}
	out, err := exec.CommandContext(ctx, filepath.Join(folder, "postgres"), "--version").Output()
	if err != nil {
		return 0, err
	}
	found := versionPattern.FindSubmatch(out)
	if found == nil {
		return 0, fmt.Errorf("no version in %q", out)
	}
	return strconv.Atoi(string(found[1]))
}
