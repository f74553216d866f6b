package ledger

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
)

// oracles decode each kind of body. Where it is accepted, what was decoded keeps the rules of its type, and is what the
// library reads in the body.
var oracles = map[string]func(t *testing.T, body []byte) error{
	"list": oracle(func(body []byte) (UpdateList, error) { return DecodeUpdateList(body, 0) }, func(t *testing.T, body []byte, got UpdateList) {
		requireUpdates(t, got)
		requireRebuiltUpdates(t, got, elementsOf(t, body))
	}),
	"page": oracle(func(body []byte) (UpdatePage, error) { return DecodeUpdatePage(body, 0) }, func(t *testing.T, body []byte, got UpdatePage) {
		require.LessOrEqual(t, got.Lowest, got.Highest)
		for _, update := range got.Updates {
			require.True(t, got.Lowest < update.Offset && update.Offset <= got.Highest)
		}
		requireUpdates(t, got.UpdateList)
		sent := membersIn(t, body)
		requireRebuiltUpdates(t, got.UpdateList, elementsOf(t, sent["updates"]))
		requirePage(t, sent, map[string]string{"lowestPageOffsetExclusive": number(got.Lowest), "highestPageOffsetInclusive": number(got.Highest),
			"nextPageToken": got.Next})
	}),
	"update": oracle(DecodeUpdate, func(t *testing.T, body []byte, got Update) {
		requireUpdates(t, UpdateList{Updates: []Update{got}, Elements: 1, Last: got.Offset})
		requireSameJSON(t, body, rebuildUpdate(got))
	}),
	"entries": oracle(DecodeContractEntries, func(t *testing.T, body []byte, got []ContractEntry) {
		requireEntries(t, got)
		requireRebuiltEntries(t, got, elementsOf(t, body))
	}),
	"contract page": oracle(DecodeContractPage, func(t *testing.T, body []byte, got ContractPage) {
		require.NotNil(t, got.Entries, "a page without a list is not taken for the end")
		require.GreaterOrEqual(t, got.ActiveAt, Offset(0))
		requireText(t, got.Next)
		requireEntries(t, got.Entries)
		sent := membersIn(t, body)
		requireRebuiltEntries(t, got.Entries, elementsOf(t, sent["activeContracts"]))
		requirePage(t, sent, map[string]string{"activeAtOffset": number(got.ActiveAt), "nextPageToken": got.Next})
	}),
	"transactions": oracle(DecodeTransactions, func(t *testing.T, body []byte, got []Record) {
		again, err := DecodeTransactions(body)
		require.NoError(t, err)
		for i := range got {
			requireRecord(t, &got[i])
			require.Equal(t, got[i].Fingerprint(), again[i].Fingerprint())
		}
		requireRebuiltRecords(t, got, elementsOf(t, membersIn(t, body)["transactions"]))
	}),
	"network": oracle(func(body []byte) ([]Update, error) { return DecodeNetworkUpdates(body, 0, "dso") }, func(t *testing.T, body []byte, got []Update) {
		last := Offset(0)
		for _, u := range got {
			require.Greater(t, u.Offset, last)
			last = u.Offset
			requireExtra(t, u.Extra)
			require.NotEmpty(t, u.ID)
			require.True(t, u.RecordTime.Valid && u.SynchronizerID != nil)
			if u.Kind == KindTransaction {
				requireWalk(t, &u)
			}
		}
		requireRebuiltNetwork(t, got, elementsOf(t, membersIn(t, body)["transactions"]))
	}),
	"contract": oracle(DecodeContract, func(t *testing.T, body []byte, got Contract) {
		requireText(t, got.PackageName)
		requireText(t, got.Observers...)
		requireText(t, got.WitnessParties...)
		requireCreated(t, CreatedEvent{
			Offset: 1, Origin: OriginSnapshot, ContractID: got.ContractID, TemplateID: got.TemplateID, Signatories: got.Signatories,
			WitnessParties: got.WitnessParties, CreatedAt: got.CreatedAt, Argument: got.Argument, ContractKey: got.ContractKey,
		}, OriginSnapshot)
		requireRebuiltContract(t, got, membersIn(t, body)["createdEvent"])
	}),
	"vetted": oracle(DecodeVettedPackagesPage, func(t *testing.T, body []byte, got VettedPackagesPage) {
		require.NotNil(t, got.List)
		requireText(t, got.Next)
		sent := membersIn(t, body)
		requirePage(t, sent, map[string]string{"nextPageToken": got.Next})
		requireVetted(t, got.List, elementsOf(t, sent["vettedPackages"]))
	}),
	"vetting": oracle(decodeVetting, func(t *testing.T, body []byte, got vetting) {
		sent := membersIn(t, body)
		requireVetted(t, []VettedPackages{got.now}, []jsontext.Value{sent["newVettedPackages"]})
		if got.past != nil {
			requireVetted(t, []VettedPackages{*got.past}, []jsontext.Value{sent["pastVettedPackages"]})
		}
	}),
}

// oracle decodes a body: what is refused is refused with a *DecodeError and as a whole, and what is accepted is checked.
func oracle[T any](decode func([]byte) (T, error), check func(t *testing.T, body []byte, got T)) func(t *testing.T, body []byte) error {
	return func(t *testing.T, body []byte) error {
		got, err := decode(body)
		if err != nil {
			requireDecodeError(t, err)
			require.Zero(t, got)
			return err
		}
		require.True(t, utf8.Valid(body))
		check(t, body, got)
		return nil
	}
}

type vetting struct {
	past *VettedPackages
	now  VettedPackages
}

func decodeVetting(body []byte) (got vetting, err error) {
	got.past, got.now, err = DecodeVettingUpdate(body)
	return got, err
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
	page := func(updates []byte) []byte {
		return []byte(`{"lowestPageOffsetExclusive":0,"updates":` + string(updates) + `,"highestPageOffsetInclusive":99,"nextPageToken":null}`)
	}
	contracts := func(entries []byte, next string) []byte {
		return []byte(`{"activeContracts":` + string(entries) + `,"activeAtOffset":99,"nextPageToken":` + next + `}`)
	}
	addSeeds(f, plainUpdates(), everyUpdate(), page(plainUpdates()), page(list()), plainEntries(), everyEntry(), contracts(plainEntries(), `"next"`),
		contracts(list(), `"\ud800"`), plainRecords(), everyRecord(), history(), []byte(lookedUp()), vettedPage(`"x"`, sampleVetted, noneVetted),
		[]byte(`{"pastVettedPackages":`+noneVetted+`,"newVettedPackages":`+sampleVetted+`}`),
		[]byte(`{"pastVettedPackages":{},"newVettedPackages":`+noneVetted+`}`),
		everyNetworkUpdate(), networkPage(), networkPage(networkTree(1, 3)), networkPage(networkOrphans(3)), networkPage(networkAssignment(1, 3), networkUnassignment(1, 4)))
	for _, update := range []string{transaction(5, created(5, 0), archived(5, 1), exercised(5, 2)), reassignment(5, assigned(5, 0), unassigned(5, 1)),
		topology(5, authorization("Added")), checkpoint(0)} {
		addSeeds(f, []byte(update), list(update))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, oracle := range oracles {
			_ = oracle(t, body)
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
			for j, c := range []string{"", "x", `"`, "{", "}", "[", "]", ",", ":", "0", "-", "null", " ", `\`, `\u0000`, "\x00", "\xff", "é"} {
				if (i+j)%2 == 0 { // the same follows the same often enough
					continue
				}
				body := slices.Concat(whole.body[:i], []byte(c), whole.body[i+1:])
				_ = oracles[whole.kind](t, body)
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
