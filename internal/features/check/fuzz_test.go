package check

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzAddress looks for a URL that is repeated with its password, or that is taken without a host.
func FuzzAddress(f *testing.F) {
	const secret = "correct-horse-battery"
	for _, text := range []string{"", "http://server", "https://joe:" + secret + "@server:7575/x", "http://joe:" + secret + "@ser ver", " http://x", "ftp://" + secret + "@x",
		"http://:80", "http://server:99999", "http://server?" + secret, "http://server#" + secret, "server:80", "http://[::1", "http://joe:" + secret} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		report := &Report{}
		u, ok := address(section{report: report, group: "ledger"}, "--ledger-url", text)
		said := fmt.Sprintf("%+v", report)
		if at := strings.LastIndex(text, "@"); at >= 0 && strings.Contains(text[:at], ":"+secret) {
			require.NotContains(t, said, secret)
		}
		if !ok {
			require.Nil(t, u)
			require.Len(t, report.Findings, 1)
			return
		}
		require.Empty(t, report.Findings)
		require.NotEmpty(t, u.Hostname())
		require.NotContains(t, shown(u), "@")
		require.NotEmpty(t, hostPort(u))
	})
}

// FuzzSQLName: a name from a database, as it stands in a statement to be copied, is one quoted name and the same.
func FuzzSQLName(f *testing.F) {
	for _, name := range []string{"", "plain", `a"b`, `""`, `"; DROP SCHEMA indexer; --`, "\\", "\u00e9", "a\nb", "\xff", "a.b", "U&\"x"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if strings.Contains(name, "\x00") {
			return // no name of a database holds it
		}
		quoted := sqlName(name)
		inner, found := strings.CutPrefix(quoted, `"`)
		require.True(t, found)
		inner, found = strings.CutSuffix(inner, `"`)
		require.True(t, found)
		require.Equal(t, name, strings.ReplaceAll(inner, `""`, `"`))
		require.NotContains(t, strings.ReplaceAll(inner, `""`, ""), `"`, "nothing ends the name before its end")
	})
}
