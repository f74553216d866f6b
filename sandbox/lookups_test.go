package sandbox

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
)

func (c *client) contract(id string, parties ...string) answer {
	c.t.Helper()
	body, err := json.Marshal(map[string]any{"contractId": id, "queryingParties": parties})
	require.NoError(c.t, err)
	return c.do(http.MethodPost, "/v2/contracts/contract-by-id", string(body))
}

func (a answer) created() map[string]any {
	a.t.Helper()
	return a.object()["createdEvent"].(map[string]any)
}

// creations are the creation events of all updates by contract id.
func creations(t *testing.T, c *client, l *Ledger) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for _, u := range c.post("/v2/updates", `{"endInclusive":%d,"updateFormat":%s}`, l.End(), allUpdates).list() {
		kind, value := updateOf(t, u)
		if kind != "Transaction" {
			continue
		}
		for _, raw := range value["events"].([]any) {
			if name, e := variant(t, raw); name == "CreatedEvent" {
				out[e["contractId"].(string)] = e
			}
		}
	}
	return out
}

// What a lookup tells is the creation event but for the fields that lookups do not
// have.
func TestContractByIDIsTheCreation(t *testing.T) {
	t.Parallel()
	versions := []string{"3.4", "3.5", "3.6", "strict"}
	if brief.Run() {
		versions = versions[2:]
	}
	for _, version := range versions {
		l := grown(t, Options{Seed: 1}, 300)
		opts := ServerOptions{Version: version}
		if version == "strict" {
			opts = ServerOptions{StrictInterface: true}
		}
		c := serve(t, l, opts)
		streamed := creations(t, serve(t, l, ServerOptions{Version: strings.Replace(version, "strict", "3.5", 1), ListLimit: 1000}), l)
		require.Greater(t, len(streamed), 200)
		others := 0 // contracts with another representative package on the stream
		for id, want := range streamed {
			stakeholders := slices.Concat(want["signatories"].([]any), want["observers"].([]any))
			got := c.contract(id).created()
			packageID, _, _ := strings.Cut(want["templateId"].(string), ":")
			require.Equal(t, packageID, got["representativePackageId"])
			if want["representativePackageId"] != packageID {
				others++
			}
			require.Equal(t, []any{}, got["interfaceViews"])
			require.Equal(t, false, got["acsDelta"])
			require.EqualValues(t, 0, got["nodeId"])
			if version == "strict" {
				require.EqualValues(t, 0, got["offset"])
				require.Equal(t, "", got["createdEventBlob"])
				require.Equal(t, []any{}, got["witnessParties"])
			} else {
				require.EqualValues(t, 1, got["offset"], "a value that means nothing")
				require.NotEmpty(t, got["createdEventBlob"])
				require.ElementsMatch(t, stakeholders, got["witnessParties"])
			}
			for _, key := range []string{"representativePackageId", "interfaceViews", "acsDelta", "nodeId", "offset", "createdEventBlob", "witnessParties"} {
				delete(got, key)
				delete(want, key)
			}
			require.Equal(t, want, got)
		}
		require.Positive(t, others)
	}
}

func TestQueryingParties(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 1}, 100)
	c := serve(t, l, ServerOptions{})
	v := l.view()
	number := slices.IndexFunc(v.contracts, func(c contract) bool { return c.signatories == 2 && c.observers > 0 })
	id := string(l.contractID(nil, int32(number)))
	var holders, others []string
	for i, p := range l.parties {
		if slices.Contains(v.contracts[number].stakeholders(), uint16(i)) {
			holders = append(holders, p)
		} else {
			others = append(others, p)
		}
	}
	require.Equal(t, []any{holders[1]}, c.contract(id, others[0], holders[1], "nobody::1220").created()["witnessParties"])
	require.ElementsMatch(t, holders, c.contract(id, l.parties...).created()["witnessParties"])
	many := make([]string, 10_000)
	for i := range many {
		many[i] = fmt.Sprintf("party-%d::1220%064x", i, i)
	}
	c.contract(id, many...).refused(404, "CONTRACT_PAYLOAD_NOT_FOUND")
	many[7777] = holders[0]
	require.Equal(t, []any{holders[0]}, c.contract(id, many...).created()["witnessParties"])
	a := c.contract(id, others...)
	a.refused(404, "CONTRACT_PAYLOAD_NOT_FOUND")
	require.Contains(t, string(a.body), `["ErrorResource(CONTRACT_ID)","`+id+`"]`)
	for _, bad := range []string{"", "it's", "a\"b", "a\u0000b", "é", strings.Repeat("x", 256)} {
		c.contract(id, holders[0], bad).refused(400, "INVALID_ARGUMENT")
	}
}

func TestStrangeContractIDs(t *testing.T) {
	t.Parallel()
	c := serve(t, grown(t, Options{Seed: 1}, 100), ServerOptions{})
	hash := strings.Repeat("ab", 32)
	for _, unknown := range []string{"00" + hash, "00" + hash + strings.Repeat("cd", 94), "01" + strings.Repeat("ab", 12), string(NewLedger(Options{Seed: 77}).contractID(nil, 1))} {
		c.contract(unknown).refused(404, "CONTRACT_PAYLOAD_NOT_FOUND")
	}
	for _, bad := range []string{
		"00ff", "02" + hash, "00" + hash + "a", "00" + strings.ToUpper(hash), "00" + hash + strings.Repeat("cd", 95), "01" + strings.Repeat("ab", 46),
		"#1:0", "'; drop table", "\"\\\u0000\n", "é", strings.Repeat("0", 100_000),
	} {
		a := c.contract(bad)
		a.refused(400, "INVALID_FIELD")
		require.Contains(t, string(a.body), "Invalid field contract_id: ")
	}
	require.Equal(t, "contract_id", c.contract("").refused(400, "MISSING_FIELD")["field_name"])
	for _, body := range []string{`{"contractId":1}`, `{"contractId":"00","queryingParties":"x"}`, `{"contractId":"00","queryingParties":[1]}`} {
		require.Equal(t, 400, c.do(http.MethodPost, "/v2/contracts/contract-by-id", body).status)
	}
}

// A client that reads from the middle hears of the end of contracts whose beginning it
// never saw. They can be looked up, whether the past is pruned or not.
func TestContractsFromBeforeTheMiddle(t *testing.T) {
	t.Parallel()
	for _, prune := range []bool{false, true} {
		l := grown(t, Options{Seed: 1}, 600)
		middle := l.Offset(300)
		if prune {
			require.NoError(t, l.Prune(middle))
		}
		c := serve(t, l, ServerOptions{ListLimit: 1000})
		born, unseen := map[string]bool{}, 0
		scope := Scope{Shape: ACSDelta}
		for _, u := range c.post("/v2/updates", `{"beginExclusive":%d,"endInclusive":%d,"updateFormat":%s}`, middle, l.End(), scope.UpdateFormat()).list() {
			kind, value := updateOf(t, u)
			if kind != "Transaction" {
				continue
			}
			for _, raw := range value["events"].([]any) {
				name, e := variant(t, raw)
				id := e["contractId"].(string)
				if name == "CreatedEvent" {
					born[id] = true
				} else if !born[id] {
					unseen++
					require.Equal(t, id, c.contract(id).created()["contractId"])
				}
			}
		}
		require.Greater(t, unseen, 20)
	}
}

func TestArchivedContractsAreFoundUntilPruned(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 1}, 600)
	c := serve(t, l, ServerOptions{})
	at := l.Offset(400)
	truth := l.Truth(Scope{Shape: LedgerEffects}, at)
	active, gone := map[string]bool{}, map[string]bool{}
	for _, row := range truth["active_contracts"] {
		active[row["contract_id"].(string)] = true
	}
	for _, row := range truth["exercised_events"] {
		if row["consuming"] == true {
			gone[row["contract_id"].(string)] = true
		}
	}
	require.Greater(t, len(gone), 100)
	if brief.Run() {
		for _, ids := range []map[string]bool{active, gone} {
			maps.DeleteFunc(ids, func(string, bool) bool { return len(ids) > 30 })
		}
	}
	for id := range gone {
		require.Equal(t, id, c.contract(id).created()["contractId"])
	}
	require.NoError(t, l.Prune(at))
	for id := range gone {
		c.contract(id).refused(404, "CONTRACT_PAYLOAD_NOT_FOUND")
	}
	for id := range active {
		require.Equal(t, id, c.contract(id).created()["contractId"])
	}
	later := string(l.contractID(nil, int32(len(l.view().contracts)-1)))
	require.Equal(t, later, c.contract(later).created()["contractId"])
}

// A contract that is only divulged is pruned with the update that divulged it.
func TestDivulgedContractsArePruned(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 1}, 600)
	c := serve(t, l, ServerOptions{})
	v := l.view()
	number := int32(slices.IndexFunc(v.contracts, func(c contract) bool { return c.flags&flagDivulged != 0 }))
	u := v.updates[v.contracts[number].created]
	require.Equal(t, 1, len(slices.DeleteFunc(slices.Clone(v.events[u.first:u.first+u.count]), func(e event) bool { return e.contract != number })),
		"it is not archived at once")
	id := string(l.contractID(nil, number))
	require.NoError(t, l.Prune(u.offset-1))
	require.Equal(t, id, c.contract(id).created()["contractId"])
	c.contract(id, l.Parties()...).refused(404, "CONTRACT_PAYLOAD_NOT_FOUND")
	require.NoError(t, l.Prune(u.offset))
	c.contract(id).refused(404, "CONTRACT_PAYLOAD_NOT_FOUND")
}

func TestRewriteOfLookups(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 1}, 30)
	id, other := string(l.contractID(nil, 3)), string(l.contractID(nil, 4))
	dropped := string(l.contractID(nil, 5))
	c := serve(t, l, ServerOptions{Rewrite: func(e Element) []byte {
		if strings.Contains(string(e.Raw), dropped) {
			return nil
		}
		return []byte(strings.ReplaceAll(string(e.Raw), id, other))
	}})
	require.Equal(t, other, c.contract(id).created()["contractId"])
	c.contract(dropped).refused(404, "CONTRACT_PAYLOAD_NOT_FOUND")
}

func TestContractByIDOfAReplay(t *testing.T) {
	t.Parallel()
	l := inFlightAtEnd(t)
	c := serve(t, l, ServerOptions{ListLimit: 100_000})
	replay := func(begin int64) *Replay {
		updates := c.post("/v2/updates", `{"beginExclusive":%d,"endInclusive":%d,"updateFormat":%s}`, begin, l.End(), allUpdates)
		r, err := LoadReplay(writeFile(t, "u.json", string(updates.body)))
		require.NoError(t, err)
		return r
	}
	r := replay(0)
	strict, replayedStrict := serve(t, l, ServerOptions{StrictInterface: true}), serve(t, r, ServerOptions{StrictInterface: true})
	replayed := serve(t, r, ServerOptions{})
	looked := 0
	for id := range creations(t, c, l) {
		if looked++; brief.Run() && looked%5 > 0 {
			continue
		}
		require.Equal(t, strict.contract(id, l.parties...).created(), replayedStrict.contract(id, l.parties...).created())
		want, got := c.contract(id).created(), replayed.contract(id).created()
		require.ElementsMatch(t, want["witnessParties"], got["witnessParties"])
		require.EqualValues(t, 1, got["offset"])
	}
	replayed.contract(string(l.contractID(nil, 0)), "nobody::1220").refused(404, "CONTRACT_PAYLOAD_NOT_FOUND")
	for _, unknown := range []string{"nonsense", "\"\\\u0000", "00ff"} {
		replayed.contract(unknown).refused(404, "CONTRACT_PAYLOAD_NOT_FOUND")
	}
	replayed.contract("").refused(400, "MISSING_FIELD")

	// An assignment carries the creation of a contract from before the recording.
	v := l.view()
	half := v.legs[slices.IndexFunc(v.legs, func(l leg) bool { return l.assign })]
	moved := v.reassignments[half.reassignment]
	r = replay(v.updates[moved.assigned].offset - 1)
	id := string(l.contractID(nil, moved.contract))
	require.Equal(t, id, serve(t, r, ServerOptions{}).contract(id).created()["contractId"])
}

func TestUpdateByID(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3.4", "3.5", "3.6", "strict"} {
		l := grown(t, Options{Seed: 1}, 100)
		opts := ServerOptions{Version: version}
		if version == "strict" {
			opts = ServerOptions{StrictInterface: true}
		}
		c := serve(t, l, opts)
		read := func(id, format string) answer {
			body, err := json.Marshal(map[string]any{"updateId": id, "updateFormat": json.RawMessage(format)})
			require.NoError(t, err)
			return c.do(http.MethodPost, "/v2/updates/update-by-id", string(body))
		}
		for i := range l.Len() {
			kind, value := updateOf(t, read(l.UpdateID(i), allUpdates).object())
			require.NotEqual(t, "OffsetCheckpoint", kind)
			require.EqualValues(t, l.Offset(i), value["offset"])
		}
		unknown := NewLedger(Options{Seed: 77}).UpdateID(1)
		a := read(unknown, allUpdates)
		a.refused(404, "UPDATE_NOT_FOUND")
		require.Contains(t, string(a.body), `["ErrorResource(UPDATE_ID)","`+unknown+`"]`)
		// All of it filtered out: another kind of update, and parties that see nothing.
		read(l.UpdateID(1), `{}`).refused(404, "UPDATE_NOT_FOUND")
		read(l.UpdateID(1), Scope{Parties: []string{"nobody::1220"}}.UpdateFormat()).refused(404, "UPDATE_NOT_FOUND")
		for _, bad := range []string{"nonsense", "1220ab", unknown[:67] + "G", unknown + "00", "'\"\\\u0000\n", strings.Repeat("12", 50_000)} {
			read(bad, allUpdates).refused(400, "INVALID_ARGUMENT")
		}
		require.Equal(t, "update_id", read("", allUpdates).refused(400, "MISSING_FIELD")["field_name"])
		require.Equal(t, "update_format", read(l.UpdateID(1), `null`).refused(400, "MISSING_FIELD")["field_name"])
		c.post("/v2/updates/update-by-id", `{"updateId":%q}`, l.UpdateID(1)).refused(400, "MISSING_FIELD")
		require.NoError(t, l.Prune(l.Offset(17)))
		read(l.UpdateID(17), allUpdates).refused(404, "UPDATE_NOT_FOUND")
		updateOf(t, read(l.UpdateID(18), allUpdates).object())
	}
}
