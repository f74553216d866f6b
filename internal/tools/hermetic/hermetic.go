// Package hermetic lets tests choose their environment. A test program that imports it has, from its start on, only
// those variables that tests are told apart by and that compilers and containers need. What follows from that needs no
// care: programs that tests start inherit no more, and nothing that reads the environment by itself (libpq's PG*,
// OTEL_*, AWS_*, proxies) finds anything of whoever runs the tests, as the INDEXER_* of a daemon on the same machine.
// Every package with tests imports it; a test sees to that.
package hermetic

import (
	"os"
	"regexp"
	"strings"
)

// kept are the names of the variables that stay: where things lie, Go's own (GOCACHE, not GOOGLE_...), those of the C
// compiler and of the container engine, and the settings of the tests themselves.
var kept = regexp.MustCompile(`^(PATH|HOME|USER|LOGNAME|SHELL|TMPDIR|LD_LIBRARY_PATH|XDG_CACHE_HOME|XDG_RUNTIME_DIR` +
	`|GO[A-Z0-9]+|CGO_\w+|CC|CXX|AR|DOCKER_\w+|TESTCONTAINERS_\w+` +
	`|TEST_\w+|TORTURE_\w+|WRITE_\w+|RAPID_\w+|SCREENSHOTS)$`)

// chosen marks an environment that a test has chosen, for test programs that a test starts: it stays whole.
const chosen = "TEST_ENVIRONMENT_CHOSEN"

func init() {
	if os.Getenv(chosen) != "" {
		return
	}
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); !kept.MatchString(name) {
			if err := os.Unsetenv(name); err != nil && name != "" {
				panic("remove the variable " + name + " from the tests' environment: " + err.Error())
			}
		}
	}
	if err := os.Setenv(chosen, "yes"); err != nil {
		panic("mark the tests' environment: " + err.Error())
	}
}
