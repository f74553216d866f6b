package status

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// A background task that fails is in the report, whichever it is.
func TestEveryTaskIsReported(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../../../ingest/task.go")
	require.NoError(t, err)
	names := regexp.MustCompile(`(?m)^\tTask\w+ += "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	require.Greater(t, len(names), 5)
	var from store.Status
	from.Started = true
	for _, name := range names {
		from.Tasks = append(from.Tasks, store.Task{Name: name[1], FailedAt: time.Now(), Failure: "the reason of " + name[1]})
	}
	db, err := store.Open(store.Config{URL: "postgres://127.0.0.1:1/nobody"}) // which is not connected to
	require.NoError(t, err)
	defer db.Close()
	report := New(db, from)
	require.True(t, report.TaskFails())
	text, lines := encoded(t, report), fmt.Sprint(report.Lines(false))
	for _, name := range names {
		require.Contains(t, text, "the reason of "+name[1]+`"`)
		require.Regexp(t, `task `+name[1]+` \[failed \S+: the reason of `+name[1]+`\]`, lines)
	}
	from.Tasks = []store.Task{{Name: store.StreamUpdates, FailedAt: time.Now()}, {Name: store.StreamTransactions, FailedAt: time.Now()}}
	require.False(t, New(db, from).TaskFails(), "streams are none")
}

// A public report says of the parties that have come and gone what it can say without their names.
func TestLinesOfHosting(t *testing.T) {
	t.Parallel()
	report := &Report{Streams: []Stream{{StateFloor: new(ledger.Offset(7)), Hosting: []store.HostingChange{
		{Offset: 3000, Kind: ledger.TopologyRevoked, Party: "alice::1220"},
	}}}}
	lines := report.Public().Lines(false)
	require.Equal(t, []Line{{"events", []string{"complete after offset 0"}}, {"active set", []string{"known from offset 7"}}}, lines[:2])
	require.Equal(t, "hosting", lines[2].Name)
	require.Equal(t, "party … is not hosted here any more since offset 3000", lines[2].Texts[0])
	require.Contains(t, lines[2].Texts[1], "take it out of --parties")
}

func encoded(t *testing.T, report *Report) string {
	t.Helper()
	text, err := json.Marshal(report)
	require.NoError(t, err)
	return string(text)
}
