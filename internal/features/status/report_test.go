package status

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
	report, err := json.Marshal(New(db, from))
	require.NoError(t, err)
	for _, name := range names {
		require.Contains(t, string(report), "the reason of "+name[1]+`"`)
	}
}
