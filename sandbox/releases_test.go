package sandbox

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/openapi"
)

// row is a row of a table of interface.md, "Releases": an operation or a member, and whether each release has it.
type row struct {
	name  string
	cells []string
}

// releases are the rows of the table whose first column has a title. They begin with words and a text in backquotes.
func releases(t *testing.T, title string) (rows []row) {
	t.Helper()
	text, err := os.ReadFile("../docs/interface.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "\n| "+title+" |")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	for _, line := range strings.Split(table, "\n")[2:] {
		cells := strings.Split(strings.Trim(line, "| "), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, row{cells[0], cells[1:]})
	}
	return rows
}

// operation is the method and the path of a row; ok is false where it is about something else.
func (r row) operation() (method, path string, ok bool) {
	begin, rest, _ := strings.Cut(r.name, "`")
	name, _, _ := strings.Cut(rest, "`")
	method, path, ok = strings.Cut(name, " ")
	return method, path, ok && begin == ""
}

// member is the member of a row that is about one.
func (r row) member() (string, bool) {
	name, ok := strings.CutPrefix(r.name, "member `")
	name, _, _ = strings.Cut(name, "`")
	return name, ok
}

func (r row) has(i int) bool { return !strings.HasPrefix(r.cells[i], "-") }

// The table of releases is what the simulator serves, and what the servers' documents have.
func TestReleasesOfParticipants(t *testing.T) {
	t.Parallel()
	rows := releases(t, "a participant")
	scope := Scope{Interfaces: InterfaceNames()}
	l := grown(t, Options{Seed: 1}, 100)
	for i, version := range []string{"3.4", "3.5.5", "3.5", "3.6"} {
		c := serve(t, l, ServerOptions{Version: version})
		all := string(c.post("/v2/updates", `{"endInclusive":%d,"updateFormat":%s}`, l.End(), scope.UpdateFormat()).body) +
			string(c.post("/v2/state/active-contracts", `{"activeAtOffset":%d,"eventFormat":%s}`, l.End(), scope.EventFormat()).body) +
			string(c.do(http.MethodGet, "/v2/state/ledger-end", "").body)
		operations, members := 0, 0
		for _, r := range rows {
			if member, ok := r.member(); ok {
				members++
				require.Equal(t, r.has(i), strings.Contains(all, fmt.Sprintf("%q:", member)), "%s: %s", version, r.name)
			}
			method, path, ok := r.operation()
			if !ok {
				continue
			}
			operations++
			a := c.do(method, strings.Replace(path, "{package-id}", l.Packages()[0].ID, 1), `{}`)
			require.Equal(t, r.has(i), a.has(), "%s: %s", version, r.name)
		}
		require.Greater(t, operations, 15)
		require.Greater(t, members, 4)
		t.Run(version, func(t *testing.T) {
			api := openapi.Ledger(t, version)
			for _, r := range rows {
				if method, path, ok := r.operation(); ok {
					require.Equal(t, r.has(i), api.Has(method, path), "%s: %s", version, r.name)
				}
			}
		})
	}
}

func TestReleasesOfScan(t *testing.T) {
	t.Parallel()
	rows := releases(t, "a Scan service")
	l := grown(t, Options{Seed: 1}, 10)
	serves := func(release string, r row) bool {
		method, path, _ := r.operation()
		c, _ := serveScan(t, l, ScanOptions{Release: release})
		return c.do(method, strings.Replace(path, "{update_id}", l.UpdateID(1), 1), `{}`).has()
	}
	for _, r := range rows {
		_, _, ok := r.operation()
		if !ok {
			continue
		}
		for i, release := range []string{"0.5.17", "0.6.12", "0.7.4"} {
			require.Equal(t, r.has(i), serves(release, r), "%s: %s", release, r.name)
			if first, later := strings.CutPrefix(r.cells[i], "from 0.6."); later {
				var n int
				_, err := fmt.Sscan(first, &n)
				require.NoError(t, err)
				require.True(t, serves(fmt.Sprintf("0.6.%d", n), r), r.name)
				require.False(t, serves(fmt.Sprintf("0.6.%d", n-1), r), r.name)
			}
		}
	}
	for i, release := range []string{"0.6", "0.7"} {
		t.Run(release, func(t *testing.T) {
			api := openapi.Scan(t, release)
			for _, r := range rows {
				if method, path, ok := r.operation(); ok {
					require.Equal(t, r.has(i+1), api.Has(method, path), "%s: %s", release, r.name)
				}
			}
		})
	}
}

// has reports whether the server has the operation: what it lacks it answers in a form of its own.
func (a answer) has() bool {
	lacks := strings.Contains(string(a.body), `"errors":[`) || strings.Contains(string(a.body), "The requested resource could not be found.")
	return a.status != http.StatusMethodNotAllowed && (a.status != http.StatusNotFound || !lacks)
}
