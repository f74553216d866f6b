package admin

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/version"
)

// everything sets each metric at least once: a vector without values is not gathered.
func everything() *Metrics {
	m := NewMetrics()
	m.Build(version.Build{})
	m.Leading(streamUpdates, true)
	m.Epoch(streamUpdates, 1)
	m.StreamState(streamUpdates, Leads)
	m.Committed(1, 1)
	m.Wrote("updates", 1)
	m.Phase(context.Background(), "copy", time.Second)
	m.Request(context.Background(), "updates", 200, time.Second, 1)
	m.Decoded(context.Background(), "updates", time.Second)
	m.NotJSON("updates")
	m.HostingChanged("revoked")
	m.ScanPassed("https://scan.example.com", "failed")
	m.Retrying(streamUpdates, "no_answer")
	m.TaskRetrying("lookups")
	m.TaskFailing("lookups", true)
	m.LookedUp("found")
	m.PackageTypes("stored")
	m.Sealed(streamUpdates, "equal", 0)
	return m
}

// Every metric stands in docs/operations.md with its labels and its kind, and every one that stands there exists.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	m := everything()
	described := make(chan *prometheus.Desc, 200)
	m.registry.Describe(described)
	close(described)
	var names []string
	for desc := range described {
		name := regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(desc.String())[1]
		if own, isOwn := strings.CutPrefix(name, namespace+"_"); isOwn {
			names = append(names, own)
		}
	}
	families, err := m.registry.Gather()
	require.NoError(t, err)
	var exist, gathered []string
	for _, family := range families {
		name, isOwn := strings.CutPrefix(family.GetName(), namespace+"_")
		if !isOwn {
			continue
		}
		gathered = append(gathered, name)
		var labels []string
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, label.GetName())
		}
		exist = append(exist, fmt.Sprint(name, labels, " ", strings.ToLower(family.GetType().String())))
	}
	require.ElementsMatch(t, names, gathered, "everything sets each metric")

	operations, err := os.ReadFile("../../../docs/operations.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(operations), "\n| name | kind | says |\n|---|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	var documented []string
	for line := range strings.Lines(table) {
		columns := strings.SplitN(line, "|", 5)
		require.NotEmpty(t, strings.TrimSpace(columns[3]), line)
		rows := regexp.MustCompile(`(\w+)(?:\{([\w,]+)\})?`).FindAllStringSubmatch(columns[1], -1)
		require.NotEmpty(t, rows, line)
		for _, row := range rows {
			labels := strings.FieldsFunc(row[2], func(r rune) bool { return r == ',' })
			slices.Sort(labels)
			documented = append(documented, fmt.Sprint(row[1], labels, " ", strings.TrimSpace(columns[2])))
		}
	}
	require.ElementsMatch(t, documented, exist)
}
