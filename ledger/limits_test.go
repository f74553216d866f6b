package ledger

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
)

// many is a JSON list of n elements.
func many(n int, element func(i int) string) []byte {
	elements := make([]string, n)
	for i := range elements {
		elements[i] = element(i)
	}
	return list(elements...)
}

func TestMostElementsOfAnAnswer(t *testing.T) {
	t.Parallel()
	brief.Skip(t)
	unknown := func(i int) string { return fmt.Sprintf(`{"update":{"New":{"offset":%d}}}`, i+1) }
	got, err := DecodeUpdateList(many(mostElements, unknown), 0)
	require.NoError(t, err)
	require.Len(t, got.Updates, mostElements)
	_, err = DecodeUpdateList(many(mostElements+1, unknown), 0)
	require.EqualError(t, err, "element 100000 at offset 100001: is one more than the 100000 that are read of an answer; no server serves as many at once")

	record := func(i int) string { return fmt.Sprintf(`{"event_id":"%d","new":{}}`, i) }
	page := func(n int) []byte { return []byte(`{"transactions":` + string(many(n, record)) + `}`) }
	records, err := DecodeTransactions(page(mostElements))
	require.NoError(t, err)
	require.Len(t, records, mostElements)
	_, err = DecodeTransactions(page(mostElements + 1))
	require.ErrorIs(t, err, errTooMany)
	requireDecodeError(t, err)
}

func TestMostTimesOfACheckpoint(t *testing.T) {
	t.Parallel()
	at := func(n int) []byte {
		times := many(n, func(i int) string {
			return fmt.Sprintf(`{"synchronizerId":"s::%d","recordTime":"2025-01-01T00:00:00Z"}`, i)
		})
		return []byte(`[{"update":{"OffsetCheckpoint":{"value":{"offset":7,"synchronizerTimes":` + string(times) + `}}}}]`)
	}
	got, err := DecodeUpdateList(at(mostTimes), 0)
	require.NoError(t, err)
	require.Len(t, got.Checkpoints[0].Times, mostTimes)
	_, err = DecodeUpdateList(at(mostTimes+1), 0)
	require.ErrorContains(t, err, "OffsetCheckpoint.synchronizerTimes[1000]: is one more than the 1000 that are read")
}

// What a server sends can make no error long, wherever it stands in the answer.
func TestErrorsAreShort(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 1<<20)
	nested := strings.Repeat(`{"`+long[:5]+`":`, 5_000) + `{"a":1,"a":2}` + strings.Repeat("}", 5_000)
	network := string(networkPage(networkTransaction(1, 1, `"u1:0"`, networkExercise(1, 0, false, ""))))
	for name, body := range map[string]string{
		"name":         swap(network, `{"a": 1}`, `{"`+long+`":{"`+long+`":1,"`+long+`":2}}`),
		"names":        swap(network, `{"a": 1}`, nested),
		"event":        swap(network, `"u1:0":{`, `"`+long+`":{`),
		"update":       swap(swap(network, `"update_id":"u1"`, `"update_id":"`+long+`"`), `"u1:0"]`, `"u1:1"]`),
		"time":         swap(network, `"effective_at":"2025`, `"effective_at":"`+long),
		"template":     swap(network, sampleTemplate, long),
		"synchronizer": swap(string(networkPage(networkAssignment(1, 5))), `"event":`, `"synchronizer_id":"`+long+`","event":`),
	} {
		err := oracles["network"](t, []byte(body))
		require.ErrorContains(t, err, "element 0", name)
		require.Less(t, len(err.Error()), 2_500, name)
	}
	err := oracles["update"](t, []byte(`{"update":{"`+long+`":{}}}`))
	require.ErrorContains(t, err, "and has no readable offset")
	require.Less(t, len(err.Error()), 2_500)
}

// Nesting is read as deep as the library goes, wherever it stands, and the error says where it went on.
func TestMostNesting(t *testing.T) {
	t.Parallel()
	nested := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	for name, read := range map[string]func(value string) error{
		"payload": func(value string) error {
			_, err := DecodeUpdateList(list(transaction(7, swap(created(7, 0), `"1.0000000000"`, value))), 0)
			return err
		},
		"unknown member": func(value string) error {
			_, err := DecodeUpdate([]byte(swap(transaction(7), `"events"`, `"new":`+value+`,"events"`)))
			return err
		},
		"record": func(value string) error {
			_, err := DecodeTransactions([]byte(`{"transactions":[{"event_id":"#1:0","new":{"a":` + value + `}}]}`))
			return err
		},
		"page": func(value string) error {
			_, err := DecodeContractPage([]byte(`{"new":` + value + `,"activeContracts":[],"activeAtOffset":7}`))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, read(nested(maxDepth-20)))
			for _, value := range []string{nested(maxDepth + 1), strings.Repeat("[", 1_000_000)} {
				err := read(value)
				require.ErrorContains(t, err, "more than 10000 lists and objects stand within each other at byte")
				requireDecodeError(t, err)
			}
		})
	}
}
