package admin

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"ledgerindexer/internal/tools/brief"
)

const (
	rulesFile     = "../../../deploy/prometheus/rules.yml"
	dashboardFile = "../../../deploy/grafana/dashboards/ledgerindexer.json"
)

type alert struct {
	Alert       string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

func alerts(t *testing.T) []alert {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	require.NoError(t, err)
	var file struct{ Groups []struct{ Rules []alert } }
	require.NoError(t, yaml.Unmarshal(text, &file))
	require.Len(t, file.Groups, 1)
	return file.Groups[0].Rules
}

// expressions returns what the dashboard asks for, by the panels' titles.
func expressions(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
		Templating struct{ List []struct{ Query any } }
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	of := map[string][]string{}
	for _, panel := range dashboard.Panels {
		require.NotEmpty(t, panel.Title)
		require.Equal(t, panel.Type == "row", len(panel.Targets) == 0, panel.Title)
		for _, target := range panel.Targets {
			of[panel.Title] = append(of[panel.Title], target.Expr)
		}
	}
	for _, variable := range dashboard.Templating.List {
		if query, is := variable.Query.(map[string]any); is {
			of["variables"] = append(of["variables"], query["query"].(string))
		}
	}
	return of
}

var (
	metricName  = regexp.MustCompile(`\b(?:ledger_indexer|process|go)_\w+`)
	selector    = regexp.MustCompile(`\b(ledger_indexer_\w+)\{([^}]*)\}`)
	matcherName = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"`)
)

// existing returns the labels of every metric, by its name in Prometheus.
func existing(t *testing.T) map[string][]string {
	t.Helper()
	families, err := everything().registry.Gather()
	require.NoError(t, err)
	of := map[string][]string{}
	for _, family := range families {
		labels := []string{"job", "instance", "ledger"} // which Prometheus adds, or the registry of a network's ledger
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, label.GetName())
		}
		of[family.GetName()] = labels
		if strings.EqualFold(family.GetType().String(), "histogram") {
			for _, part := range []string{"_bucket", "_count", "_sum"} {
				of[family.GetName()+part] = append(slices.Clone(labels), "le")
			}
		}
	}
	return of
}

// Every metric that alerts and dashboard name exists, with the labels that they select by.
func TestAlertsAndDashboardNameWhatExists(t *testing.T) {
	t.Parallel()
	exist := existing(t)
	check := func(what, expression string) {
		t.Helper()
		for _, name := range metricName.FindAllString(expression, -1) {
			require.Contains(t, exist, name, what)
		}
		for _, found := range selector.FindAllStringSubmatch(expression, -1) {
			for _, label := range matcherName.FindAllStringSubmatch(found[2], -1) {
				require.Contains(t, exist[found[1]], label[1], "%s: %s", what, found[0])
			}
		}
	}
	for _, a := range alerts(t) {
		require.NotEmpty(t, a.Annotations["summary"], a.Alert)
		require.Contains(t, []string{"critical", "warning", "info"}, a.Labels["severity"], a.Alert)
		check(a.Alert, a.Expr)
	}
	shown := expressions(t)
	require.Greater(t, len(shown), 15)
	for title, list := range shown {
		for _, expression := range list {
			require.Regexp(t, metricName, expression, title)
			check(title, expression)
		}
	}
}

// Each alert stands in docs/operations.md with what it means and what cures it, and each that stands there exists.
func TestAlertsAreDocumented(t *testing.T) {
	t.Parallel()
	operations, err := os.ReadFile("../../../docs/operations.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(operations), "\n| alert | what it means | what to do |\n|---|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	var documented, exist []string
	for line := range strings.Lines(table) {
		columns := strings.SplitN(line, "|", 5)
		require.NotEmpty(t, strings.TrimSpace(columns[2]), line)
		require.NotEmpty(t, strings.TrimSpace(columns[3]), line)
		documented = append(documented, strings.TrimSpace(columns[1]))
	}
	for _, a := range alerts(t) {
		exist = append(exist, a.Alert)
	}
	require.Equal(t, exist, documented)
}

// The metrics are named as Prometheus names them.
func TestMetricsAreNamedByConvention(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not in PATH (Debian's package prometheus)")
	}
	url, stop := serve(t, NewHealth(nil), everything())
	_, body := get(t, url+"/metrics")
	require.NoError(t, stop())
	var own strings.Builder // without those of Go and the process
	for line := range strings.Lines(body) {
		if strings.Contains(line, namespace+"_") {
			own.WriteString(line)
		}
	}
	command := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	command.Stdin = strings.NewReader(own.String())
	said, err := command.CombinedOutput()
	require.NoError(t, err, string(said))
	require.Empty(t, string(said))
}

// Prometheus itself takes the configuration, and each alert fires where it should.
func TestPromtool(t *testing.T) {
	t.Parallel()
	brief.Long(t, "evaluates all rules over eight hours")
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not in PATH (Debian's package prometheus)")
	}
	for _, args := range [][]string{{"check", "config", "prometheus.yml"}, {"test", "rules", "rules_test.yml"}} {
		command := exec.CommandContext(t.Context(), promtool, args...)
		command.Dir = "../../../deploy/prometheus"
		said, err := command.CombinedOutput()
		require.NoError(t, err, string(said))
	}
	tests, err := os.ReadFile("../../../deploy/prometheus/rules_test.yml")
	require.NoError(t, err)
	for _, a := range alerts(t) {
		require.Contains(t, string(tests), a.Alert, "it is tried")
	}
}

// A process that led keeps the offsets that it came to. What the dashboard makes of those of several is that of the
// leaders.
func TestTheDashboardAfterLeadsHaveMoved(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not in PATH (Debian's package prometheus)")
	}
	// Instance a leads the network's updates, and b the participant's, and the records that follow from the network's.
	test := "tests:\n- interval: 1m\n  input_series:\n"
	for series, value := range map[string]int{
		`leading{instance="a", stream="updates"}`: 0, `leading{instance="a", ledger="network", stream="updates"}`: 1,
		`leading{instance="b", stream="updates"}`: 1, `leading{instance="b", ledger="network", stream="updates"}`: 0,
		`watermark_offset{instance="a"}`: 100, `frontier_offset{instance="a"}`: 150, // it lost the lead while it was catching up
		`watermark_offset{instance="b"}`: 200, `frontier_offset{instance="b"}`: 203,
		`watermark_offset{instance="a", ledger="network"}`: 1000, `frontier_offset{instance="a", ledger="network"}`: 1005, `derived_offset{instance="a", ledger="network"}`: 500,
		`watermark_offset{instance="b", ledger="network"}`: 400, `frontier_offset{instance="b", ledger="network"}`: 460, `derived_offset{instance="b", ledger="network"}`: 990,
		`derived_offset{instance="a"}`: 0, `derived_offset{instance="b"}`: 0,
		`verified_offset{instance="a"}`: 90, `verified_offset{instance="b"}`: 196,
		`verified_offset{instance="a", ledger="network"}`: 993, `verified_offset{instance="b", ledger="network"}`: 390,
	} {
		test += fmt.Sprintf("  - {series: 'ledger_indexer_%s', values: '%d'}\n", series, value)
	}
	test += "  promql_expr_test:\n"
	tried := 0
	for metric, samples := range map[string]string{
		"frontier_offset": `[{labels: '{}', value: 3}, {labels: '{ledger="network"}', value: 5}]`,
		"derived_offset":  `[{labels: '{ledger="network"}', value: 10}]`,
		"verified_offset": `[{labels: '{}', value: 4}, {labels: '{ledger="network"}', value: 7}]`,
	} {
		for _, expression := range expressions(t)["Offsets to go"] {
			if strings.Contains(expression, metric) {
				tried++
				test += fmt.Sprintf("  - {expr: '%s', eval_time: 0m, exp_samples: %s}\n", strings.ReplaceAll(expression, "$job", ".*"), samples)
			}
		}
	}
	require.Equal(t, 3, tried)
	file := filepath.Join(t.TempDir(), "test.yml")
	require.NoError(t, os.WriteFile(file, []byte(test), 0o600))
	said, err := exec.CommandContext(t.Context(), promtool, "test", "rules", file).CombinedOutput()
	require.NoError(t, err, string(said))
}

// What docker-compose.yml mounts of this folder is there.
func TestWhatComposeMountsExists(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docker-compose.yml")
	require.NoError(t, err)
	mounts := regexp.MustCompile(`- (\./deploy/[^:]+):`).FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, mounts)
	for _, mount := range mounts {
		_, err := os.Stat("../../../" + mount[1])
		require.NoError(t, err)
	}
}
