package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/sandbox"
)

// everyVersion are the servers that list packages.
var everyVersion = []string{"3.4", "3.5", "3.6"}

// vettingServer is a participant whose requests to change what is vetted are seen before it does.
type vettingServer struct {
	*sandbox.Ledger
	url string

	mu      sync.Mutex
	bodies  []string
	before  func(n int) *sandbox.Fault // the nth request, from 1
	visited []string
}

func newVettingServer(t *testing.T, options sandbox.ServerOptions) *vettingServer {
	t.Helper()
	s := &vettingServer{Ledger: grown(10)}
	options.Fault = func(r *http.Request) *sandbox.Fault {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.visited = append(s.visited, r.URL.Path)
		if r.URL.Path != "/v2/package-vetting/update" {
			return nil
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
			return &sandbox.Fault{Status: http.StatusInternalServerError}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.bodies = append(s.bodies, string(body))
		if s.before == nil {
			return nil
		}
		return s.before(len(s.bodies))
	}
	s.url = participantOf(t, s.Ledger, options)
	return s
}

// intervene has before decide on each request to change from now on; nil lets them all pass.
func (s *vettingServer) intervene(before func(n int) *sandbox.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

func (s *vettingServer) sent() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bodies)
}

func (s *vettingServer) run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return command(t, nil, append(append([]string{"packages"}, args...), "--ledger-url", s.url)...)
}

// own is what the participant itself has vetted on a synchronizer: 0 is global, 1 is private.
func (s *vettingServer) own(synchronizer int) sandbox.Vetting {
	for _, v := range s.Vetting() {
		if v.Participant == s.ParticipantID() && v.Synchronizer == s.Synchronizers()[synchronizer] {
			return v
		}
	}
	return sandbox.Vetting{Synchronizer: s.Synchronizers()[synchronizer], Participant: s.ParticipantID()}
}

func (s *vettingServer) vets(synchronizer int, name, version string) bool {
	return slices.ContainsFunc(s.own(synchronizer).Packages, func(p sandbox.Vetted) bool { return p.PackageID == s.id(name, version) })
}

// id is that of the first package with a name and version.
func (s *vettingServer) id(name, version string) string {
	for _, p := range s.Packages() {
		if p.Name == name && p.Version == version {
			return p.ID
		}
	}
	panic("no package " + name + " " + version)
}

// state is own in the form that the command prints.
func (s *vettingServer) state(synchronizer int) map[string]any {
	v := s.own(synchronizer)
	bound := func(at *time.Time) any {
		if at == nil {
			return nil
		}
		return at.UTC().Format(time.RFC3339Nano)
	}
	packages := []any{}
	for _, p := range v.Packages {
		row := map[string]any{
			"package_id": p.PackageID, "package_name": "", "package_version": "", "valid_from": bound(p.ValidFrom), "valid_until": bound(p.ValidUntil),
		}
		for _, known := range s.Packages() {
			if known.ID == p.PackageID {
				row["package_name"], row["package_version"] = known.Name, known.Version
			}
		}
		packages = append(packages, row)
	}
	return map[string]any{
		"participant_id": v.Participant, "synchronizer_id": v.Synchronizer, "topology_serial": float64(v.Serial), "packages": packages,
	}
}

func requireState(t *testing.T, want map[string]any, got any) {
	t.Helper()
	state := got.(map[string]any)
	require.ElementsMatch(t, want["packages"], state["packages"])
	for _, key := range []string{"participant_id", "synchronizer_id", "topology_serial"} {
		require.Equal(t, want[key], state[key])
	}
}

func decodeJSON(t *testing.T, text string) (value map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &value), text)
	return value
}

// squeezed is a table with one space between cells.
func squeezed(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

func TestPackagesList(t *testing.T) {
	t.Parallel()
	for _, version := range everyVersion {
		t.Run(version, func(t *testing.T) {
			s := newVettingServer(t, sandbox.ServerOptions{Version: version, VettingPage: 1})
			code, stdout, stderr := s.run(t, "list", "--json")
			require.Equal(t, config.ExitDone, code, stderr)
			list := decodeJSON(t, stdout)
			require.Equal(t, s.ParticipantID(), list["participant_id"])
			require.NotContains(t, list, "note")
			vetted := list["vetted_packages"].([]any)
			require.Len(t, vetted, 2)
			requireState(t, s.state(0), vetted[0])
			requireState(t, s.state(1), vetted[1])

			_, stdout, _ = s.run(t, "list")
			global, private := s.Synchronizers()[0], s.Synchronizers()[1]
			for _, line := range []string{
				"SYNCHRONIZER NAME VERSION PACKAGE ID VALID FROM VALID UNTIL SERIAL",
				global + " registry 1.0.0 " + s.id("registry", "1.0.0") + " - - 7",
				private + " registry 1.0.0 " + s.id("registry", "1.0.0") + " - - 2",
			} {
				require.Contains(t, squeezed(stdout), line)
			}
			require.Equal(t, 1+len(s.own(0).Packages)+len(s.own(1).Packages), strings.Count(stdout, "\n"))

			_, stdout, _ = s.run(t, "list", "--synchronizer", private, "--name-prefix=regis", "--name-prefix", "trade-")
			require.Equal(t, []string{"registry", "trade-api"}, secondColumn(stdout))
			_, stdout, _ = s.run(t, "list", "--name-prefix", "none,such")
			require.Equal(t, "no vetted packages\n", stdout)
			code, _, stderr = s.run(t, "list", "--name-prefix=")
			require.Equal(t, config.ExitUsage, code)
			require.Contains(t, stderr, "--name-prefix must not be empty")
			code, _, stderr = s.run(t, "list", "--synchronizer", "nowhere::12")
			require.NotEqual(t, config.ExitDone, code)
			require.Contains(t, stderr, "nowhere::12")
		})
	}
}

func secondColumn(table string) (cells []string) {
	for i, line := range strings.Split(strings.TrimSpace(squeezed(table)), "\n") {
		if i > 0 {
			cells = append(cells, strings.Fields(line)[1])
		}
	}
	return cells
}

// On a server that can't list them, a dry run of nothing tells what is vetted, whichever form of nothing it takes.
func TestPackagesListByDryRun(t *testing.T) {
	t.Parallel()
	s := newVettingServer(t, sandbox.ServerOptions{StrictInterface: true})
	code, _, stderr := s.run(t, "list")
	require.Equal(t, config.ExitProblem, code)
	require.Contains(t, stderr, "connected to several")
	require.Contains(t, stderr, "What to do: name it with --synchronizer")

	before := s.Vetting()
	code, stdout, stderr := s.run(t, "list", "--synchronizer", s.Synchronizers()[0], "--json")
	require.Equal(t, config.ExitDone, code, stderr)
	list := decodeJSON(t, stdout)
	require.Contains(t, list["note"], "no operation that lists packages: this is what a dry run of a change of nothing says")
	requireState(t, s.state(0), list["vetted_packages"].([]any)[0])
	_, stdout, _ = s.run(t, "list", "--synchronizer", s.Synchronizers()[0], "--name-prefix", "bank-")
	require.Contains(t, stdout, "Note: the server has no operation that lists packages")
	require.Contains(t, stdout, "bank-api")
	require.NotContains(t, stdout, "registry")
	require.Equal(t, before, s.Vetting())
	for _, body := range s.sent() {
		require.Contains(t, body, `"dryRun":true`)
	}

	s.intervene(func(int) *sandbox.Fault { // takes Empty
		return &sandbox.Fault{Status: 200, ContentType: "application/json", Body: `{"newVettedPackages":{"packages":[],"participantId":"p::12",
			"synchronizerId":"s::12","topologySerial":1}}`}
	})
	n := len(s.sent())
	code, stdout, stderr = s.run(t, "list")
	require.Equal(t, config.ExitDone, code, stderr)
	require.Contains(t, stdout, "no vetted packages")
	require.Len(t, s.sent(), n+1)
	require.Contains(t, s.sent()[n], `{"Empty":{}}`)
}

func TestPackagesListByDryRunIsForAdministrators(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("reader"), 0o600))
	s := newVettingServer(t, sandbox.ServerOptions{NoVetting: true, Token: "reader"})
	code, _, stderr := s.run(t, "list", "--ledger-token-file", token)
	require.Equal(t, config.ExitProblem, code)
	require.Contains(t, stderr, "What to do: give the administrator's token with --admin-token-file.")
	require.Empty(t, s.sent())
}

// Which token is missing is said with every flag that gives one; what is wrong with a request, in the server's words.
func TestPackagesListThatIsRefused(t *testing.T) {
	t.Parallel()
	s := newVettingServer(t, sandbox.ServerOptions{Token: "sesame"})
	code, _, stderr := s.run(t, "list")
	require.Equal(t, config.ExitProblem, code)
	require.Contains(t, stderr, "What to do: give the file that holds it with --ledger-token-file or --admin-token-file, ")

	s = newVettingServer(t, sandbox.ServerOptions{})
	code, _, stderr = s.run(t, "list", "--synchronizer", "garbage")
	require.NotEqual(t, config.ExitDone, code)
	require.Contains(t, stderr, "PROTO_DESERIALIZATION_FAILURE")
	require.Equal(t, 1, strings.Count(stderr, "garbage"), stderr)
}

// Names of the ledger can't do anything to a terminal.
func TestPackagesAreEscaped(t *testing.T) {
	t.Parallel()
	s := newVettingServer(t, sandbox.ServerOptions{StrictInterface: true})
	s.intervene(func(int) *sandbox.Fault {
		state := `{"participantId":"p\u001b[2J","synchronizerId":"s\u009b\n\u202e","topologySerial":3,"packages":[
			{"packageId":"` + strings.Repeat("x", 3) + `\r","packageName":"evil\u001b]0;title\u0007\tname","packageVersion":"\u0001\\"}]}`
		return &sandbox.Fault{Status: 200, ContentType: "application/json",
			Body: `{"pastVettedPackages":` + state + `,"newVettedPackages":` + strings.Replace(state, `"packageId":"`, `"packageId":"y`, 1) + `}`}
	})
	for _, args := range [][]string{{"list"}, {"vet", "x"}, {"list", "--json"}, {"unvet", "x", "--json"}} {
		code, stdout, stderr := s.run(t, args...)
		require.Equal(t, config.ExitDone, code, stderr)
		for _, r := range stdout {
			require.True(t, r == '\n' || r >= ' ' && r != 0x7f && (r < 0x80 || r > 0x9f) && r != 0x202e, "%U in %q", r, stdout)
		}
		require.Contains(t, stdout, "evil")
	}
}
