package ledger

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
)

// oracles decode each kind of body, and where it is accepted compare it with what the library reads in it.
var oracles = map[string]func(t *testing.T, body []byte) error{
	"list": func(t *testing.T, body []byte) error {
		list, err := DecodeUpdateList(body, 0)
		if err == nil {
			requireRebuiltUpdates(t, list, elementsOf(t, body))
		}
		return err
	},
	"page": func(t *testing.T, body []byte) error {
		page, err := DecodeUpdatePage(body, 0)
		if err == nil {
			sent := membersIn(t, body)
			requireRebuiltUpdates(t, page.UpdateList, elementsOf(t, sent["updates"]))
			requirePage(t, sent, map[string]string{"lowestPageOffsetExclusive": number(page.Lowest), "highestPageOffsetInclusive": number(page.Highest),
				"nextPageToken": page.Next})
		}
		return err
	},
	"update": func(t *testing.T, body []byte) error {
		update, err := DecodeUpdate(body)
		if err == nil {
			requireSameJSON(t, body, rebuildUpdate(update))
		}
		return err
	},
	"entries": func(t *testing.T, body []byte) error {
		entries, err := DecodeContractEntries(body)
		if err == nil {
			requireRebuiltEntries(t, entries, elementsOf(t, body))
		}
		return err
	},
	"contract page": func(t *testing.T, body []byte) error {
		page, err := DecodeContractPage(body)
		if err == nil {
			sent := membersIn(t, body)
			requireRebuiltEntries(t, page.Entries, elementsOf(t, sent["activeContracts"]))
			requirePage(t, sent, map[string]string{"activeAtOffset": number(page.ActiveAt), "nextPageToken": page.Next})
		}
		return err
	},
	"transactions": func(t *testing.T, body []byte) error {
		records, err := DecodeTransactions(body)
		if err == nil {
			requireRebuiltRecords(t, records, membersIn(t, body)["transactions"])
		}
		return err
	},
	"network": func(t *testing.T, body []byte) error {
		updates, err := DecodeNetworkUpdates(body, 0, "")
		if err == nil {
			requireRebuiltNetwork(t, updates, elementsOf(t, membersIn(t, body)["transactions"]))
		}
		return err
	},
	"contract": func(t *testing.T, body []byte) error {
		contract, err := DecodeContract(body)
		if err == nil {
			requireRebuiltContract(t, contract, membersIn(t, body)["createdEvent"])
		}
		return err
	},
	"vetted": func(t *testing.T, body []byte) error {
		page, err := DecodeVettedPackagesPage(body)
		if err == nil {
			sent := membersIn(t, body)
			requirePage(t, sent, map[string]string{"nextPageToken": page.Next})
			requireRebuiltVetted(t, page.List, elementsOf(t, sent["vettedPackages"]))
		}
		return err
	},
}

func number(offset Offset) string { return strconv.FormatInt(int64(offset), 10) }

// requirePage compares members of a page.
func requirePage(t *testing.T, sent map[string]jsontext.Value, decoded map[string]string) {
	t.Helper()
	for name, got := range decoded {
		require.Equal(t, scalar(sent[name]), got, name)
	}
}

// requireRead decodes a body of a kind, which must be accepted.
func requireRead(t *testing.T, kind string, body []byte) {
	t.Helper()
	require.NoError(t, oracles[kind](t, body), "%s: %q", kind, body)
}

// FuzzDecoder looks for a body that is accepted, and is not what the library reads in it.
func FuzzDecoder(f *testing.F) {
	page := `{"lowestPageOffsetExclusive":0,"updates":` + string(plainUpdates()) + `,"highestPageOffsetInclusive":99,"nextPageToken":null}`
	contracts := `{"activeContracts":` + string(plainEntries()) + `,"activeAtOffset":99,"nextPageToken":"next"}`
	addSeeds(f, "updates", plainUpdates(), plainEntries(), everyUpdate(), everyEntry(), []byte(page), []byte(contracts), plainRecords(), everyRecord(),
		list(transaction(5, created(5, 0), archived(5, 1), exercised(5, 2))), []byte(transaction(5, created(5, 0))), []byte(lookedUp()),
		vettedPage(`"x"`, sampleVetted, noneVetted))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, oracle := range oracles {
			if err := oracle(t, body); err != nil {
				requireDecodeError(t, err)
			}
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

func TestWhatServersSendIsRead(t *testing.T) {
	t.Parallel()
	requireRead(t, "list", realisticPage(200))
	requireRead(t, "list", plainUpdates())
	requireRead(t, "list", list())
	requireRead(t, "entries", plainEntries())
	requireRead(t, "entries", list(slices.Repeat([]string{activeEntry()}, 200)...))
	requireRead(t, "page", []byte(`{"lowestPageOffsetExclusive":0,"new":[{}],"updates":`+string(plainUpdates())+`,"highestPageOffsetInclusive":99}`))
	requireRead(t, "transactions", plainRecords())
	requireRead(t, "transactions", realisticHistory(200))
	requireRead(t, "transactions", history())
	requireRead(t, "contract", []byte(lookedUp()))
	newer := swap(sampleVetted, `"topologySerial"`, `"new":[1],"topologySerial"`)
	requireRead(t, "vetted", vettedPage(`"dG9rZW4="`, newer, noneVetted))
	requireRead(t, "vetted", vettedPage(`null`))
	requireRead(t, "transactions", []byte(`{"next":7,"transactions" : [ ] }`))
	requireRead(t, "contract page", []byte(`{"nextPageToken":"next","activeContracts":`+string(plainEntries())+`,"activeAtOffset":99}`))
}

// Whatever is done to a character, a body that is still accepted is what the library reads in it, and the error of one
// that is not is a *DecodeError. Within a word one letter is as good as another one. With the race detector, and where
// it has to be short, one character in 211 is tried.
func TestDamagedBodiesAreNeverMisread(t *testing.T) {
	t.Parallel()
	element := list(transaction(10, created(10, 0), archived(10, 1), exercised(10, 2)), checkpoint(11), reassignment(12, assigned(12, 0), unassigned(12, 1)),
		topology(13, authorization("Added")))
	page := `{"lowestPageOffsetExclusive":0,"updates":` + string(list(topology(13, authorization("Added")))) + `,"highestPageOffsetInclusive":99,"nextPageToken":"next"}`
	contracts := `{"activeContracts":` + string(list(entry(`{"JsEmpty":{}}`))) + `,"activeAtOffset":99,"nextPageToken":"next"}`
	for _, whole := range []struct {
		kind string
		body []byte
	}{{"list", element}, {"page", []byte(page)}, {"entries", list(activeEntry())}, {"entries", list(incompleteUnassignedEntry())},
		{"entries", list(incompleteAssignedEntry())}, {"contract page", []byte(contracts)},
		{"transactions", history(transferRecord, mintRecord, tapRecord, abortRecord)}, {"contract", []byte(lookedUp())},
		{"vetted", vettedPage(`"x"`, sampleVetted)}} {
		requireRead(t, whole.kind, whole.body)
		for i := range whole.body {
			if withinWord(whole.body, i) || brief.Run() && i%211 != 0 {
				continue
			}
			for _, c := range []string{"", "x", `"`, "{", "}", "[", "]", ",", ":", "0", "-", "null", " ", `\`, `\u0000`, "\x00", "\xff", "é"} {
				body := slices.Concat(whole.body[:i], []byte(c), whole.body[i+1:])
				if err := oracles[whole.kind](t, body); err != nil {
					requireDecodeError(t, err)
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
			`["a]"]`: {"a]"}, `["]"]`: {"]"}, `["a","]"]`: {"]", "a"}, `["[]","b"]`: {"[]", "b"}, `["\"]"]`: {`"]`}, `["\"]","b"]`: {`"]`, "b"},
			`["a\\"]`: {`a\`}, `["\u0061"]`: {"a"}, `["\u005d"]`: {"]"}, `["b","a"]`: {"a", "b"}, `["b","a","b","a","a"]`: {"a", "b"}, `["b","\u0061"]`: {"a", "b"},
			`["B","a","b","é","e"]`: {"B", "a", "b", "e", "é"}, `["b","a]"]`: {"a]", "b"}, `["\ud83d\ude00"]`: {"😀"}, `["é"]`: {"é"}, `[""]`: {""},
		} {
			for _, behind := range []string{"", "]", `,"b"]`, " ", `"`, "x"} {
				d := newDecoder([]byte(text+behind), l)
				require.Equal(t, want, d.partyList(), text)
				require.Equal(t, len(text), d.at, text)
				require.Zero(t, d.unusual, text)
				require.False(t, d.refused, text)
			}
		}
		for _, text := range []string{``, `[`, `["a"`, `["a",]`, `["a","b"`, `["a" "b"]`, `[["a"]]`, `["a]`, `["a\"]`, `["\ud83d"]`, `["\u0000"]`, `[null]`, `[1]`, `{}`} {
			d := newDecoder([]byte(text), l)
			d.partyList()
			require.True(t, d.refused, text)
		}
	}
	var first, second []string
	for _, list := range []*[]string{&first, &second} {
		d := newDecoder([]byte(`["a","b"]`), l)
		*list = d.partyList()
	}
	require.Same(t, &first[0], &second[0], "it is in memory once")
}
