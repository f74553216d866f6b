package throwaway

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
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
	for _, pattern := range folders {
		matches, _ := filepath.Glob(pattern) // the only error is a bad pattern
		for _, match := range matches {
			if version := usable(match); version > highest {
				highest, folder = version, match
			}
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
