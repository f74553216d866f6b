package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/sandbox"
)

// alone is a package without dependencies, and the only one of its name.
const alone = "daml-stdlib-DA-Time-Types"

// A preview changes nothing; the command that it prints makes the change; made again it changes nothing.
func TestVetPreviewAndApply(t *testing.T) {
	t.Parallel()
	for _, version := range append(everyVersion, "the interface's only") {
		t.Run(version, func(t *testing.T) {
			options := sandbox.ServerOptions{Version: version}
			if version == "the interface's only" {
				options = sandbox.ServerOptions{StrictInterface: true}
			}
			s := newVettingServer(t, options)
			global := s.Synchronizers()[0]
			before, past := s.Vetting(), s.state(0)
			args := []string{"vet", "audit-api:1.0.0", s.id("audit", "1.0.0"), "--synchronizer", global, "--valid-from", "2026-03-04T05:06:07.000008+01:00"}
			code, stdout, stderr := s.run(t, args...)
			require.Equal(t, config.ExitDone, code, stderr)
			for _, line := range []string{
				"participant " + s.ParticipantID(), "synchronizer " + global, "serial 7, would become 8",
				"+ audit 1.0.0 2026-03-04T04:06:07.000008Z - " + s.id("audit", "1.0.0"),
				"+ audit-api 1.0.0 2026-03-04T04:06:07.000008Z - " + s.id("audit-api", "1.0.0"),
				fmt.Sprintf("%d more stay vetted as they are (--all shows them).", len(s.own(0).Packages)),
				"This is a preview: 2 vetted, 0 unvetted, 0 with other bounds. Nothing was changed. To make the change:",
			} {
				require.Contains(t, squeezed(stdout), line)
			}
			require.NotContains(t, stdout, "registry")
			require.Equal(t, before, s.Vetting())
			require.Len(t, s.sent(), 1)
			require.Contains(t, s.sent()[0], `"dryRun":true`)

			_, stdout, _ = s.run(t, append(args, "--json")...)
			preview := decodeJSON(t, stdout)
			require.Equal(t, false, preview["applied"])
			requireState(t, past, preview["past"])
			require.Len(t, preview["changes"], 2)
			printed := preview["command"].(string)
			require.Equal(t, fmt.Sprintf("indexer packages vet audit-api:1.0.0 %s --synchronizer %s --valid-from 2026-03-04T05:06:07.000008+01:00 "+
				"--json --ledger-url %s --expected-serial=7 --apply", s.id("audit", "1.0.0"), global, s.url), printed)

			code, stdout, stderr = command(t, nil, strings.Fields(printed)[1:]...)
			require.Equal(t, config.ExitDone, code, stderr)
			made := decodeJSON(t, stdout)
			require.Equal(t, true, made["applied"])
			require.Equal(t, preview["changes"], made["changes"])
			require.NotContains(t, made, "command")
			requireState(t, s.state(0), made["new"])
			require.Equal(t, preview["new"], made["new"], "what was previewed is what was made")
			require.True(t, s.vets(0, "audit", "1.0.0"))
			require.EqualValues(t, 8, s.own(0).Serial)
			require.Equal(t, before[2:], s.Vetting()[2:], "on the other synchronizer nothing changes")

			n := len(s.sent())
			code, stdout, stderr = s.run(t, append(args, "--apply")...)
			require.Equal(t, config.ExitDone, code, stderr)
			require.Contains(t, stdout, "There is nothing to change.")
			require.EqualValues(t, 8, s.own(0).Serial)
			require.Len(t, s.sent(), n+1, "nothing was to be changed, so nothing but the dry run is sent")
		})
	}
}

func TestOtherBounds(t *testing.T) {
	t.Parallel()
	s := newVettingServer(t, sandbox.ServerOptions{})
	global, id := s.Synchronizers()[0], s.id("registry", "1.0.0")
	code, stdout, stderr := s.run(t, "vet", "registry", "--synchronizer", global, "--valid-until", "2050-01-02T03:04:05Z", "--apply")
	require.Equal(t, config.ExitDone, code, stderr)
	require.Contains(t, squeezed(stdout), "- registry 1.0.0 - - "+id+"\n+ registry 1.0.0 - 2050-01-02T03:04:05Z "+id)
	require.Contains(t, squeezed(stdout), "serial 8, was 7")
	require.Contains(t, stdout, "The change was made: 0 vetted, 0 unvetted, 1 with other bounds.")
	_, stdout, _ = s.run(t, "vet", "registry", "--synchronizer", global, "--json")
	change := decodeJSON(t, stdout)["changes"].([]any)[0].(map[string]any)
	require.Equal(t, "changed", change["change"], "without bounds those that are there go")
	require.Equal(t, "2050-01-02T03:04:05Z", change["before"].(map[string]any)["valid_until"])
	require.Nil(t, change["after"].(map[string]any)["valid_until"])
}

// Who needs what goes is said where the participant refuses that, and where it is allowed.
func TestWhatNeedsWhatGoes(t *testing.T) {
	t.Parallel()
	s := newVettingServer(t, sandbox.ServerOptions{})
	unvet := []string{"unvet", "trade-api", "--synchronizer", s.Synchronizers()[0]}
	needs := func(version string) string {
		return fmt.Sprintf("trade:%s (%s) needs trade-api:1.0.0 (%s)", version, s.id("trade", version), s.id("trade-api", "1.0.0"))
	}
	code, _, stderr := s.run(t, unvet...)
	require.Equal(t, config.ExitProblem, code)
	require.Contains(t, stderr, "TOPOLOGY_DEPENDENCIES_NOT_VETTED")
	require.Contains(t, stderr, needs("1.0.0"))
	require.NotContains(t, stderr, "registry:")

	code, stdout, stderr := s.run(t, append(unvet, "--force-flag=allow-unvetted-dependencies")...)
	require.Equal(t, config.ExitDone, code, stderr)
	require.Contains(t, stdout, "\nNeed what goes, and stay vetted:\n  "+needs("1.0.0")+"\n")
	require.Contains(t, stdout, "This is a preview: 0 vetted, 1 unvetted")
	require.NotContains(t, stdout, "registry")
	code, stdout, stderr = s.run(t, append(unvet, "--force-flag=allow-unvetted-dependencies", "--apply", "--json")...)
	require.Equal(t, config.ExitDone, code, stderr)
	first := decodeJSON(t, stdout)["needed_by"].([]any)[0].(map[string]any)
	require.Equal(t, []any{s.id("trade-api", "1.0.0")}, first["needs"])
}

// A name may stand for several packages, in an Unvet; what is not vetted is said.
func TestUnvet(t *testing.T) {
	t.Parallel()
	s := newVettingServer(t, sandbox.ServerOptions{})
	private := s.Synchronizers()[1]
	code, stdout, stderr := s.run(t, "unvet", "bank", "registry:1.0.0", "audit", "nonsense:3", "--synchronizer", private, "--apply")
	require.Equal(t, config.ExitDone, code, stderr)
	require.Contains(t, stdout, "Not vetted, so not to be unvetted: audit, nonsense:3.")
	require.Contains(t, stdout, "The change was made: 0 vetted, 3 unvetted, 0 with other bounds.")
	require.Equal(t, 3, strings.Count(stdout, "\n- "))
	for _, p := range s.own(1).Packages {
		require.NotEqual(t, s.id("registry", "1.0.0"), p.PackageID)
	}
	code, stdout, stderr = s.run(t, "unvet", "registry", "--synchronizer", private, "--json", "--apply")
	require.Equal(t, config.ExitDone, code, stderr)
	require.Equal(t, []any{"registry"}, decodeJSON(t, stdout)["unmatched"])
	require.Equal(t, false, decodeJSON(t, stdout)["applied"])
}

// With one synchronizer there is nothing to choose, and pastVettedPackages may be absent.
func TestTheFirstVetting(t *testing.T) {
	t.Parallel()
	s := newVettingServer(t, sandbox.ServerOptions{})
	url := participantOf(t, s.Ledger, sandbox.ServerOptions{Disconnected: s.Synchronizers()[1:]})
	first := s.own(0)
	first.Serial = 0
	s.SetVetting(first)
	code, stdout, stderr := command(t, nil, "packages", "vet", alone, "--ledger-url", url)
	require.Equal(t, config.ExitDone, code, stderr)
	require.Contains(t, squeezed(stdout), "serial none, would become 1")
	require.Contains(t, stdout, " --expected-serial=none --apply\n")
	code, stdout, stderr = command(t, nil, "packages", "vet", alone, "--ledger-url", url, "--apply", "--expected-serial=none", "--json")
	require.Equal(t, config.ExitDone, code, stderr)
	require.Nil(t, decodeJSON(t, stdout)["past"])
	require.EqualValues(t, 1, s.own(0).Serial)
	code, _, stderr = command(t, nil, "packages", "unvet", alone, "--ledger-url", url, "--apply", "--expected-serial", "none")
	require.Equal(t, config.ExitProblem, code)
	require.Contains(t, stderr, "TOPOLOGY_SERIAL_MISMATCH")
}

// Somebody changes something between what was previewed and what is to be made: it is not made. So with the serial of
// an earlier preview, and so within one run.
func TestTheSerialMovesBetweenPreviewAndApply(t *testing.T) {
	t.Parallel()
	for name, serial := range map[string]int32{"vetted before": 7, "never vetted before": 0} {
		t.Run(name, func(t *testing.T) {
			s := newVettingServer(t, sandbox.ServerOptions{})
			state := s.own(0)
			if state.Serial = serial; serial == 0 {
				state.Packages = nil
			}
			s.SetVetting(state)
			s.intervene(func(n int) *sandbox.Fault {
				if n == 2 {
					moved := s.own(0)
					moved.Serial++
					s.SetVetting(moved)
				}
				return nil
			})
			code, stdout, stderr := s.run(t, "vet", alone, "--valid-until=2040-01-01T00:00:00Z", "--synchronizer", s.Synchronizers()[0], "--apply")
			require.Equal(t, config.ExitProblem, code)
			require.Empty(t, stdout)
			require.Contains(t, stderr, "somebody else changed them")
			require.Contains(t, stderr, "What to do: look at the present state with `indexer packages list`")
			require.Len(t, s.sent(), 2)
			require.Equal(t, serial+1, s.own(0).Serial)
			require.Equal(t, state.Packages, s.own(0).Packages)

			s.intervene(nil)
			code, _, stderr = s.run(t, "vet", alone, "--valid-until=2040-01-01T00:00:00Z", "--synchronizer", s.Synchronizers()[0], "--apply",
				fmt.Sprintf("--expected-serial=%d", serial+1))
			require.Equal(t, config.ExitDone, code, stderr)
			require.Equal(t, serial+2, s.own(0).Serial)
		})
	}
}

// What the participant refuses is said with what to do, and nothing is changed.
func TestRefusedChanges(t *testing.T) {
	t.Parallel()
	s := newVettingServer(t, sandbox.ServerOptions{})
	global := "--synchronizer=" + s.Synchronizers()[0]
	before := s.Vetting()
	for name, c := range map[string]struct {
		args []string
		says []string
	}{
		"several synchronizers":  {[]string{"vet", "registry"}, []string{"PACKAGE_SERVICE_CANNOT_AUTODETECT_SYNCHRONIZER", "--synchronizer"}},
		"another synchronizer":   {[]string{"vet", "registry", "--synchronizer=s::12"}, []string{"PACKAGE_SERVICE_NOT_CONNECTED_TO_SYNCHRONIZER", "s::12"}},
		"a dependency":           {[]string{"vet", "audit", global}, []string{"TOPOLOGY_DEPENDENCIES_NOT_VETTED", s.id("audit-api", "1.0.0"), "--force-flag allow-unvetted-dependencies,"}},
		"a dependency that goes": {[]string{"unvet", "trade-api", global}, []string{"TOPOLOGY_DEPENDENCIES_NOT_VETTED", s.id("trade-api", "1.0.0")}},
		"what it does not have":  {[]string{"vet", "orphan", global}, []string{"TOPOLOGY_CANNOT_VET_DUE_TO_MISSING_PACKAGES", "packages: Set(", "upload"}},
		"an ambiguous name":      {[]string{"vet", "bank", global}, []string{"AMBIGUOUS_VETTING_REFERENCE", "by name and version"}},
		"no such name":           {[]string{"vet", "nothing", global}, []string{"UNRESOLVED_VETTING_REFERENCE", "nothing"}},
		"no upgrade":             {[]string{"vet", "bank:2.0.0", global}, []string{"NOT_VALID_UPGRADE_PACKAGE", "--force-flag allow-incompatible-upgrades,"}},
		"a version twice":        {[]string{"vet", fork(s), global}, []string{"KNOWN_PACKAGE_VERSION", "unvet the other one"}},
		"another serial":         {[]string{"vet", "audit-api", global, "--expected-serial=6"}, []string{"TOPOLOGY_SERIAL_MISMATCH", "indexer packages list"}},
		"no name at all":         {[]string{"vet", "a.b", global}, []string{"check --synchronizer and, of a change, the packages"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := s.run(t, append(c.args, "--apply")...)
			require.Equal(t, config.ExitProblem, code, stderr)
			require.Empty(t, stdout)
			for _, text := range append(c.says, "indexer: dry run: ", "\nWhat to do: ") {
				require.Contains(t, stderr, text)
			}
		})
	}
	require.Equal(t, before, s.Vetting())
}

// fork is the second package of a name and version.
func fork(s *vettingServer) string {
	for _, p := range s.Packages() {
		if p.Name == "trade" && s.id(p.Name, p.Version) != p.ID {
			return p.ID
		}
	}
	panic("no version of trade is there twice")
}

func TestForceFlags(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{
		{"--force-flag=allow-unvetted-dependencies", "--force-flag=allow-incompatible-upgrades"},
		{"--force-flag=UPDATE_VETTED_PACKAGES_FORCE_FLAG_ALLOW_UNVETTED_DEPENDENCIES,UPDATE_VETTED_PACKAGES_FORCE_FLAG_ALLOW_VET_INCOMPATIBLE_UPGRADES"},
	} {
		s := newVettingServer(t, sandbox.ServerOptions{})
		code, stdout, stderr := s.run(t, append([]string{"vet", "audit", "bank:2.0.0", "--apply", "--synchronizer", s.Synchronizers()[0]}, flags...)...)
		require.Equal(t, config.ExitDone, code, stderr)
		require.Contains(t, stdout, "2 vetted")
		require.True(t, s.vets(0, "audit", "1.0.0"))
		require.True(t, s.vets(0, "bank", "2.0.0"))
	}
}

func TestChangeUsageErrors(t *testing.T) {
	t.Parallel()
	s := newVettingServer(t, sandbox.ServerOptions{})
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no reference":        {[]string{"vet"}, "ref"},
		"an empty reference":  {[]string{"unvet", ""}, "not \"\""},
		"no version":          {[]string{"vet", "bank:"}, `not "bank:"`},
		"a space":             {[]string{"vet", "bank 1"}, `not "bank 1"`},
		"an escape":           {[]string{"unvet", "bank\x1b[2J"}, `not "bank\x1b[2J"`},
		"no UTF-8":            {[]string{"unvet", "\xff"}, "is not text in UTF-8"},
		"a serial":            {[]string{"vet", "bank", "--expected-serial=seven"}, `--expected-serial must be none or a number from 1 on, not "seven"`},
		"a force flag":        {[]string{"vet", "bank", "--force-flag=all"}, `--force-flag must be allow-incompatible-upgrades or allow-unvetted-dependencies, not "all"`},
		"no time in between":  {[]string{"vet", "bank", "--valid-from=2026-01-01T00:00:00Z", "--valid-until=2026-01-01T01:00:00+01:00"}, "--valid-until must be after --valid-from"},
		"a finer time":        {[]string{"vet", "bank", "--valid-from=2026-01-01T00:00:00.0000001Z"}, "whole microseconds"},
		"bounds for an unvet": {[]string{"unvet", "bank", "--valid-from=2026-01-01T00:00:00Z"}, "unknown flag --valid-from"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := s.run(t, c.args...)
			require.Equal(t, config.ExitUsage, code, stderr)
			require.Empty(t, stdout)
			require.Contains(t, stderr, c.says)
		})
	}
	require.Empty(t, s.sent())
}

// The reader's token is for reading: a change takes an administrator's, and says so.
func TestChangesTakeAnAdministrator(t *testing.T) {
	t.Parallel()
	l := grown(1)
	authority := sandbox.NewAuthority(sandbox.AuthorityOptions{ParticipantID: l.ParticipantID(), Lifetime: time.Hour})
	authority.SetUser(sandbox.User{ID: "reader", Rights: []sandbox.Right{sandbox.CanReadAsAnyParty()}})
	authority.SetUser(sandbox.User{ID: "boss", Rights: []sandbox.Right{sandbox.ParticipantAdmin()}})
	file := func(user string) string {
		path := filepath.Join(t.TempDir(), user)
		require.NoError(t, os.WriteFile(path, []byte(authority.Token(user)), 0o600))
		return path
	}
	reader, boss := file("reader"), file("boss")
	s := newVettingServer(t, sandbox.ServerOptions{Authority: authority})
	vet := []string{"vet", "audit-api", "--synchronizer", s.Synchronizers()[0], "--apply", "--log-level=debug"}

	code, _, stderr := s.run(t, append(vet, "--ledger-token-file", reader)...)
	require.Equal(t, config.ExitUsage, code)
	require.Contains(t, stderr, "--admin-token-file is missing")
	require.Empty(t, s.sent())

	code, _, stderr = s.run(t, vet...)
	require.Equal(t, config.ExitProblem, code)
	require.Contains(t, stderr, "What to do: give the token of a participant administrator with --admin-token-file.")

	code, _, stderr = s.run(t, append(vet, "--admin-token-file", reader)...)
	require.Equal(t, config.ExitProblem, code)
	require.Contains(t, stderr, "user reader lacks participant admin")
	require.False(t, s.vets(0, "audit-api", "1.0.0"))

	for _, list := range [][]string{{"list", "--ledger-token-file", reader}, {"list", "--admin-token-file", boss}} {
		code, stdout, stderr := s.run(t, list...)
		require.Equal(t, config.ExitDone, code, stderr)
		require.Contains(t, stdout, "registry")
	}

	var printed strings.Builder
	code, stdout, stderr := s.run(t, append(vet, "--ledger-token-file", reader, "--admin-token-file", boss)...)
	require.Equal(t, config.ExitDone, code, stderr)
	printed.WriteString(stdout + stderr)
	require.True(t, s.vets(0, "audit-api", "1.0.0"))
	token, err := os.ReadFile(boss)
	require.NoError(t, err)
	require.NotContains(t, printed.String(), string(token))
}

// Where no answer comes to the change itself, it may have been made.
func TestAnUnknownOutcomeIsSaidToBeOne(t *testing.T) {
	t.Parallel()
	s := newVettingServer(t, sandbox.ServerOptions{})
	s.intervene(func(n int) *sandbox.Fault {
		if n == 2 {
			return &sandbox.Fault{Cut: 20} // made, and the answer is cut off
		}
		return nil
	})
	code, stdout, stderr := s.run(t, "vet", "audit-api", "--synchronizer", s.Synchronizers()[0], "--apply")
	require.Equal(t, config.ExitFailed, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "whether the change was made is not known (look with `indexer packages list`)")
	require.Len(t, s.sent(), 2, "tried again")
	require.True(t, s.vets(0, "audit-api", "1.0.0"))

	s.intervene(func(int) *sandbox.Fault { return &sandbox.Fault{Status: 503, Body: "later"} })
	code, _, stderr = s.run(t, "vet", "audit-api", "--synchronizer", s.Synchronizers()[0], "--apply")
	require.Equal(t, config.ExitFailed, code)
	require.NotContains(t, stderr, "not known", "of a dry run")
}

func TestCommandsAreQuotedForTheShell(t *testing.T) {
	t.Parallel()
	f := changeFlags{}
	require.Equal(t, `indexer packages vet 'a b' 'it'\''s' '' '$HOME' --expected-serial=none --apply`,
		f.command([]string{"packages", "vet", "a b", "it's", "", "$HOME"}, nil))
	require.Equal(t, "indexer packages unvet --json --expected-serial=none --apply -- bank -x",
		f.command([]string{"packages", "unvet", "--json", "--", "bank", "-x"}, nil), "what follows a -- is no flag")
	f.ExpectedSerial = "4"
	require.Equal(t, "indexer packages vet x --expected-serial 4 --apply", f.command([]string{"packages", "vet", "x", "--expected-serial", "4"}, nil))
}
