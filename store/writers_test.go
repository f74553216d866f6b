package store_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// What only one role may do, no other role's writer can be asked for. They share what every leader may do.
func TestWritersShareNothingButTheLeader(t *testing.T) {
	t.Parallel()
	shared := reflect.TypeFor[*store.Leader]()
	owner := map[string]reflect.Type{}
	for _, writer := range []reflect.Type{
		reflect.TypeFor[*store.UpdatesWriter](), reflect.TypeFor[*store.TransactionsWriter](), reflect.TypeFor[*store.PruningWriter](), reflect.TypeFor[*audit.Repairer](),
	} {
		for method := range writer.Methods() {
			if _, ofAll := shared.MethodByName(method.Name); ofAll {
				continue
			}
			require.NotContains(t, owner, method.Name, "%v", writer)
			owner[method.Name] = writer
		}
	}
	for _, name := range []string{"Append", "MoveWatermark", "Reset", "WriteSnapshotPage", "AppendTransactions", "Prune"} {
		require.Contains(t, owner, name)
	}
}
