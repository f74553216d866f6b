package ledger

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/brief"
)

// way is one kind of body, read directly and with the library.
type way struct {
	name     string
	directly func(*direct) any
	decode   func(*decoding) (any, error)
}

var ways = []way{
	{"list", func(d *direct) any { return d.updates(order{}) },
		func(d *decoding) (any, error) { return withEnd(d)(d.updates(order{}, 1)) }},
	{"page", func(d *direct) any { return d.updatePage(0) }, func(d *decoding) (any, error) { return d.updatePage(0) }},
	{"entries", func(d *direct) any { return d.entries() }, func(d *decoding) (any, error) {
		entries, err := d.entries(1)
		if err == nil {
			err = d.end()
		}
		return entries, err
	}},
	{"contract page", func(d *direct) any { return d.contractPage() }, func(d *decoding) (any, error) { return d.contractPage() }},
	{"transactions", func(d *direct) any { return d.transactions() }, func(d *decoding) (any, error) { return d.transactions() }},
}

func withEnd(d *decoding) func(UpdateList, error) (any, error) {
	return func(list UpdateList, err error) (any, error) {
		if err == nil {
			err = d.end()
		}
		return list, err
	}
}

// requireSame decodes a body in both ways, and tells whether it was read directly: then the library reads the same.
func requireSame(t *testing.T, body []byte, w way) bool {
	t.Helper()
	d := newDirect(body)
	got := w.directly(d)
	if !d.ended() {
		return false
	}
	want, err := w.decode(newDecoding(body))
	require.NoError(t, err, "%s: %q", w.name, body)
	switch got := got.(type) { // what the library does not tell
	case UpdateList:
		forgetPlain(got.Updates, nil)
	case UpdatePage:
		forgetPlain(got.Updates, nil)
	case []ContractEntry:
		forgetPlain(nil, got)
	case ContractPage:
		forgetPlain(nil, got.Entries)
	}
	require.Equal(t, want, got, "%s: %q", w.name, body)
	return true
}

func forgetPlain(updates []Update, entries []ContractEntry) {
	for i := range updates {
		updates[i].Plain = false
	}
	for i := range entries {
		entries[i].Plain = false
	}
}

// FuzzDirect looks for a body that is read directly and not by the library, or as something else.
func FuzzDirect(f *testing.F) {
	page := `{"lowestPageOffsetExclusive":0,"updates":` + string(plainUpdates()) + `,"highestPageOffsetInclusive":99,"nextPageToken":null}`
	contracts := `{"activeContracts":` + string(plainEntries()) + `,"activeAtOffset":99,"nextPageToken":"next"}`
	addSeeds(f, "updates", plainUpdates(), plainEntries(), everyUpdate(), everyEntry(), []byte(page), []byte(contracts), plainRecords(), everyRecord(),
		list(transaction(5, created(5, 0), archived(5, 1), exercised(5, 2))))
	f.Fuzz(func(t *testing.T, body []byte) {
		if !utf8.Valid(body) {
			return
		}
		for _, w := range ways {
			requireSame(t, body, w)
		}
	})
}

// plainUpdates is a list with every known kind of update and event, and members that are not known.
func plainUpdates() []byte {
	newer := swap(transaction(20, swap(created(20, 0), `"acsDelta":true`, `"acsDelta":null,"newFlag":{"a": [1, 2]},"other":"\u00e9"`),
		swap(swap(created(20, 1), `"code":0,`, `"code":0,"reason":"x","lang":"en",`), `"viewValue"`, `"cached":true,"viewValue"`),
		swap(archived(20, 2), `"nodeId"`, `"Nodeid":5,"nodeId"`), swap(exercised(20, 3), `"choice"`, `"cost":1.50,"choice"`)),
		`"tracestate":null`, `"tracestate":"s","baggage":"b"`)
	newer = swap(newer, `"commandId"`, `"priority": 7,"commandId"`)
	return list(
		transaction(10, created(10, 0), archived(10, 1), exercised(10, 2)), transaction(11), newer,
		transaction(21, created(0, 3), archived(0, 2), exercised(21, 1)),
		reassignment(30, assigned(30, 0), unassigned(30, 1), swap(assigned(30, 3), `"source"`, `"fee":"1","source"`)),
		reassignment(31, swap(assigned(31, 0), `"reassignmentId"`, `"unassignId"`), swap(unassigned(31, 1), `"reassignmentId"`, `"unassignId"`)),
		swap(reassignment(32), `"synchronizerId":"sync::2",`, ``), swap(checkpoint(40), `"synchronizerTimes"`, `"more":0,"synchronizerTimes"`), checkpoint(40),
		topology(41, authorization("Added"), authorization("Changed"), authorization("Revoked"), authorization("Onboarding")), topology(42),
		transaction(43, swap(created(43, 0), `"alice"`, `"al\u0069ce \"a\""`)),
		" "+strings.ReplaceAll(transaction(44, created(44, 0)), `":`, `" : `)+"\n",
	)
}

// plainEntries is a list with every known kind of entry, and members that are not known.
func plainEntries() []byte {
	return list(activeEntry(), incompleteUnassignedEntry(), incompleteAssignedEntry(), entry(`{"JsEmpty":{}}`),
		swap(incompleteAssignedEntry(), `"contractKey"`, `"newKey":1,"contractKey"`),
		swap(swap(activeEntry(), `"synchronizerId"`, `"frozen":false,"synchronizerId"`), `"workflowId":"",`, `"workflowId":null,"page":1,`),
		swap(incompleteUnassignedEntry(), `"unassignedEvent":{`, `"at":"x","unassignedEvent":{"fee":"1",`))
}

// plainRecords is an answer with records of every known kind, in both spellings, and members that are not known.
func plainRecords() []byte {
	records := []string{
		swap(transferRecord, `"rent, \"March\""`, `"\u0000\ud800"`), swap(swap(transferRecord, `,"round":42`, ``), `"receivers"`, `"was":1,"paid"`),
		swap(swap(transferRecord, `"description"`, `"mood":{},"description"`), `"amount":"1.50"`, `"tip":[],"amount":"1.50"`),
		swap(transferRecord, `[{"party":"alice","change_to_initial_amount_as_of_round_zero":"-3.5","change_to_holding_fees_rate":"-0.0000190259"}]`, `[]`),
		swap(transferRecord, `"10.0000000000"`, `null`), swap(abortRecord, `"withdraw"`, `null`), swap(mintRecord, `"mint":`, `"tap":null,"mint":`),
	}
	for _, record := range []string{transferRecord, mintRecord, tapRecord, abortRecord} {
		records = append(records, record, untyped(record), inCoins(record), inCoins(untyped(record)), strings.ReplaceAll(record, `":`, `" : `))
	}
	return history(records...)
}

// What servers send is read directly: if it were not, all would be read twice.
func TestWhatServersSendIsReadDirectly(t *testing.T) {
	t.Parallel()
	require.True(t, requireSame(t, realisticPage(200), ways[0]))
	require.True(t, requireSame(t, plainUpdates(), ways[0]))
	require.True(t, requireSame(t, list(), ways[0]))
	require.True(t, requireSame(t, plainEntries(), ways[2]))
	require.True(t, requireSame(t, list(slices.Repeat([]string{activeEntry()}, 200)...), ways[2]))
	require.True(t, requireSame(t, []byte(`{"lowestPageOffsetExclusive":0,"new":[{}],"updates":`+string(plainUpdates())+`,"highestPageOffsetInclusive":99}`), ways[1]))
	require.True(t, requireSame(t, plainRecords(), ways[4]))
	require.True(t, requireSame(t, realisticHistory(200), ways[4]))
	require.True(t, requireSame(t, history(), ways[4]))
	require.True(t, requireSame(t, []byte(`{"next":7,"transactions" : [ ] }`), ways[4]))
	require.True(t, requireSame(t, []byte(`{"nextPageToken":"next","activeContracts":`+string(plainEntries())+`,"activeAtOffset":99}`), ways[3]))
}

// Whatever is done to a character, a body that is still read directly is what the library reads. Within a word one letter is as good
// as another one. With the race detector, and where it has to be short, one character in eleven is tried.
func TestDamagedBodiesAreNeverMisread(t *testing.T) {
	t.Parallel()
	element := list(transaction(10, created(10, 0), archived(10, 1), exercised(10, 2)), checkpoint(11), reassignment(12, assigned(12, 0), unassigned(12, 1)),
		topology(13, authorization("Added")))
	page := []byte(`{"lowestPageOffsetExclusive":0,"updates":` + string(list(topology(13, authorization("Added")))) + `,"highestPageOffsetInclusive":99,"nextPageToken":"next"}`)
	contracts := []byte(`{"activeContracts":` + string(list(entry(`{"JsEmpty":{}}`))) + `,"activeAtOffset":99,"nextPageToken":"next"}`)
	records := history(transferRecord, mintRecord, tapRecord, abortRecord)
	for _, whole := range []struct {
		body []byte
		way  way
	}{{element, ways[0]}, {page, ways[1]}, {list(activeEntry()), ways[2]}, {list(incompleteUnassignedEntry()), ways[2]},
		{list(incompleteAssignedEntry()), ways[2]}, {contracts, ways[3]}, {records, ways[4]}} {
		require.True(t, requireSame(t, whole.body, whole.way))
		for i := range whole.body {
			if withinWord(whole.body, i) || brief.Run() && i%11 != 0 {
				continue
			}
			for _, c := range []string{"", "x", `"`, "{", "}", "[", "]", ",", ":", "0", "-", "null", " ", `\`, `\u0000`, "\x00", "é"} {
				body := slices.Concat(whole.body[:i], []byte(c), whole.body[i+1:])
				if utf8.Valid(body) {
					requireSame(t, body, whole.way)
				}
			}
		}
	}
}

// withinWord tells whether letters stand at a place and at two more on each side of it.
func withinWord(body []byte, i int) bool {
	return i >= 2 && i+2 < len(body) && !bytes.ContainsFunc(body[i-2:i+3], func(r rune) bool { return !unicode.IsLetter(r) })
}

// A list that is known already is read as it is the first time, wherever its texts have brackets, quotes and escapes, and whatever follows it.
func TestKnownListsAreReadLikeNewOnes(t *testing.T) {
	t.Parallel()
	l := newLexicon()
	for range 2 {
		for text, want := range map[string][]string{
			`[]`: {}, `[ ]`: {}, `["a"]`: {"a"}, `["a","b"]`: {"a", "b"}, `["a" , "b"]`: {"a", "b"}, `["a","b","c"]`: {"a", "b", "c"},
			`["a]"]`: {"a]"}, `["]"]`: {"]"}, `["a","]"]`: {"a", "]"}, `["[]","b"]`: {"[]", "b"}, `["\"]"]`: {`"]`}, `["\"]","b"]`: {`"]`, "b"},
			`["a\\"]`: {`a\`}, `["\u0061"]`: {"a"}, `["\u005d"]`: {"]"}, `["\ud83d\ude00"]`: {"😀"}, `["é"]`: {"é"}, `[""]`: {""},
		} {
			for _, behind := range []string{"", "]", `,"b"]`, " ", `"`, "x"} {
				d := &direct{scanner: scanner{text: []byte(text + behind)}, reader: &reader{lexicon: l}}
				require.Equal(t, want, d.partyList(), text)
				require.Equal(t, len(text), d.at, text)
				require.Zero(t, d.unusual, text)
				require.False(t, d.refused, text)
			}
		}
		for _, text := range []string{``, `[`, `["a"`, `["a",]`, `["a","b"`, `["a" "b"]`, `[["a"]]`, `["a]`, `["a\"]`, `["\ud83d"]`, `["\u0000"]`, `[null]`, `[1]`, `{}`} {
			d := &direct{scanner: scanner{text: []byte(text)}, reader: &reader{lexicon: l}}
			d.partyList()
			require.True(t, d.refused, text)
		}
	}
	var first, second []string
	for _, list := range []*[]string{&first, &second} {
		d := &direct{scanner: scanner{text: []byte(`["a","b"]`)}, reader: &reader{lexicon: l}}
		*list = d.partyList()
	}
	require.Same(t, &first[0], &second[0], "it is in memory once")
}
