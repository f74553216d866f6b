package ledger

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/recorded"
	"ledgerindexer/sandbox"
)

// TestDecodingLosesNothing rebuilds the server's JSON from what was decoded and compares it key by key with what
// was sent. What may differ, and nothing else:
//
//   - a member that is null may be absent,
//   - the order of an object's members, and white space and escapes outside of payloads (payloads are the same bytes),
//   - the text form of a time, not the time itself to the nanosecond,
//   - an event's own offset: it is absent, zero or its update's,
//   - the order of events and of interface views,
//   - the order of a list of parties or of interfaces, and how often it has each: such lists are sets,
//   - a minus sign of a zero, and an empty token of an entry that may be absent,
//   - unassignId of 3.3 comes back as reassignmentId, its later name.
func TestDecodingLosesNothing(t *testing.T) {
	t.Parallel()
	t.Run("updates", func(t *testing.T) {
		t.Parallel()
		requireRead(t, "list", everyUpdate())
	})
	t.Run("entries", func(t *testing.T) {
		t.Parallel()
		requireRead(t, "entries", everyEntry())
	})
	t.Run("served updates", func(t *testing.T) {
		t.Parallel()
		requireRead(t, "list", servedUpdates(t))
	})
	t.Run("recorded updates", func(t *testing.T) {
		t.Parallel()
		requireRead(t, "list", recordedUpdates(t))
	})
	t.Run("recorded entries", func(t *testing.T) {
		t.Parallel()
		requireRead(t, "entries", besideProject(t, "active-contracts-6.json"))
	})
}

// servedUpdates is a list of updates as the simulated participant serves them, in both shapes.
func servedUpdates(t *testing.T) []byte {
	t.Helper()
	l := sandbox.NewLedger(sandbox.Options{Seed: 1, EventsPerUpdate: 4})
	l.Grow(300)
	server := sandbox.NewServer(l, sandbox.ServerOptions{})
	var updates []string
	ask := func(shape string, from, to int64) {
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, httptest.NewRequest("POST", "/v2/updates/get-updates-page", strings.NewReader(fmt.Sprintf(
			`{"beginOffsetExclusive":%d,"endOffsetInclusive":%d,"maxPageSize":300,"updateFormat":%s}`, from, to, sandbox.Scope{Shape: shape}.UpdateFormat()))))
		var page struct{ Updates []jsontext.Value }
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &page, json.MatchCaseInsensitiveNames(true)))
		for _, update := range page.Updates {
			updates = append(updates, string(update))
		}
	}
	ask(sandbox.ACSDelta, 0, l.Offset(149))
	ask(sandbox.LedgerEffects, l.Offset(149), l.End())
	require.Greater(t, len(updates), 200)
	return list(updates...)
}

// besideProject reads a response that another project recorded, or skips the test where it is not at hand.
func besideProject(t *testing.T, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(recorded.Beside(t, "recorded/"+name))
	require.NoError(t, err)
	return body
}

// recordedUpdates is the recording with its offsets, renumbered from 0, moved to where a ledger's begin: at 1.
func recordedUpdates(t *testing.T) []byte {
	t.Helper()
	offsets := regexp.MustCompile(`"offset" : \d+`)
	return offsets.ReplaceAllFunc(besideProject(t, "updates-ledger-effects-31.json"), func(member []byte) []byte {
		n, err := strconv.Atoi(string(bytes.TrimPrefix(member, []byte(`"offset" : `))))
		require.NoError(t, err)
		return strconv.AppendInt([]byte(`"offset" : `), int64(n)+1, 10)
	})
}

func requireRebuiltUpdates(t *testing.T, list UpdateList, sent []jsontext.Value) {
	t.Helper()
	require.Len(t, sent, list.Elements)
	updates, checkpoints := list.Updates, list.Checkpoints
	for _, original := range sent {
		var rebuilt members
		if variant := membersIn(t, membersIn(t, original)["update"])["OffsetCheckpoint"]; variant.Kind() == '{' {
			rebuilt, checkpoints = rebuildCheckpoint(checkpoints[0]), checkpoints[1:]
		} else {
			rebuilt, updates = rebuildUpdate(updates[0]), updates[1:]
		}
		requireSameJSON(t, original, rebuilt)
	}
}

func requireRebuiltEntries(t *testing.T, entries []ContractEntry, sent []jsontext.Value) {
	t.Helper()
	require.Len(t, sent, len(entries))
	for i, original := range sent {
		requireSameJSON(t, original, rebuildEntry(entries[i]))
	}
}

// requireRebuiltContract compares a look-up with those members of the event that it reads.
func requireRebuiltContract(t *testing.T, c Contract, event jsontext.Value) {
	t.Helper()
	rebuilt := rebuildCreated(CreatedEvent{ContractID: c.ContractID, TemplateID: c.TemplateID, PackageName: c.PackageName, Argument: c.Argument,
		ContractKey: c.ContractKey, ContractKeyHash: c.ContractKeyHash, Signatories: c.Signatories, Observers: c.Observers,
		WitnessParties: c.WitnessParties, CreatedAt: c.CreatedAt})
	delete(rebuilt, "offset")
	delete(rebuilt, "nodeId")
	for name, value := range present(t, event) {
		if slices.ContainsFunc(contractMembers.list, func(m member[Contract]) bool { return m.name == strconv.Quote(name) }) {
			requireSameJSON(t, []byte(`{"`+name+`":`+string(value)+`}`), members{name: rebuilt[name]})
			delete(rebuilt, name)
		}
	}
	require.Empty(t, rebuilt)
}

func requireRebuiltVetted(t *testing.T, list []VettedPackages, sent []jsontext.Value) {
	t.Helper()
	require.Len(t, sent, len(list))
	for i, vetted := range list {
		texts := func(value jsontext.Value, of ...string) (all []string) {
			object := membersIn(t, value)
			for _, name := range of {
				all = append(all, scalar(object[name]))
			}
			return all
		}
		require.Equal(t, texts(sent[i], "participantId", "synchronizerId", "topologySerial"),
			[]string{vetted.ParticipantID, vetted.SynchronizerID, strconv.Itoa(int(vetted.TopologySerial))})
		packages := elementsOf(t, membersIn(t, sent[i])["packages"])
		require.Len(t, packages, len(vetted.Packages))
		for j, p := range vetted.Packages {
			require.Equal(t, texts(packages[j], "packageId", "packageName", "packageVersion"), []string{p.PackageID, p.PackageName, p.PackageVersion})
			for name, at := range map[string]Time{"validFromInclusive": p.ValidFrom, "validUntilExclusive": p.ValidUntil} {
				rebuilt := members{}
				rebuilt.time("createdAt", at)
				requireSameJSON(t, jsontext.Value(`{"createdAt":`+cmp.Or(string(membersIn(t, packages[j])[name]), "null")+`}`), rebuilt)
			}
		}
	}
}

// membersIn is an object as the library reads it; empty where it is null or absent.
func membersIn(t *testing.T, object []byte) (all map[string]jsontext.Value) {
	t.Helper()
	if object != nil {
		require.NoError(t, json.Unmarshal(object, &all, jsontext.AllowInvalidUTF8(true)), "%q", object)
	}
	return all
}

// elementsOf is a list as the library reads it; empty where it is null or absent.
func elementsOf(t *testing.T, list []byte) (all []jsontext.Value) {
	t.Helper()
	if list != nil {
		require.NoError(t, json.Unmarshal(list, &all, jsontext.AllowInvalidUTF8(true)), "%q", list)
	}
	return all
}

func requireSameJSON(t *testing.T, original []byte, rebuilt members) {
	t.Helper()
	text, err := json.Marshal(rebuilt, jsontext.AllowInvalidUTF8(true), json.Deterministic(true))
	require.NoError(t, err)
	pair := sha256.Sum256(slices.Concat(original, []byte{0}, text))
	if _, before := foundAlike.Load(pair); before {
		return
	}
	require.True(t, alike(t, "", original, text), "sent:    %q\nrebuilt: %q", original, text)
	foundAlike.Store(pair, true)
}

// foundAlike has the hashes of what was sent and what was rebuilt of it, where both were compared and are alike. Where
// one element of a list is damaged in very many ways, the others are what they were.
var foundAlike sync.Map

// exactly begins a text in what was rebuilt whose rest is the JSON that must have been sent, byte by byte.
const exactly = "exactly "

var timeNames = []string{"recordTime", "effectiveAt", "createdAt", "assignmentExclusivity", "record_time", "effective_at", "created_at", "date"}

var (
	unordered = []string{"events", "interfaceViews"}
	setNames  = []string{
		"witnessParties", "signatories", "observers", "actingParties", "implementedInterfaces", "acting_parties",
	}
)

// setOf is what a list of texts says as a set.
func setOf(list []jsontext.Value) (set []string) {
	for _, value := range list {
		set = append(set, text(value))
	}
	slices.Sort(set)
	return slices.Compact(set)
}

// alike tells whether two values of a name have no differences but those above. Neither it nor present is marked as a
// helper, which takes as long as the rest.
func alike(t *testing.T, name string, sent, rebuilt jsontext.Value) bool {
	if payload, ok := strings.CutPrefix(text(rebuilt), exactly); ok {
		return string(sent) == payload
	}
	switch kind := sent.Kind(); {
	case kind != rebuilt.Kind():
		return false
	case kind == '{':
		sent, rebuilt := present(t, sent), present(t, rebuilt)
		for name, value := range sent {
			if !alike(t, name, value, rebuilt[name]) {
				return false
			}
		}
		return len(sent) == len(rebuilt)
	case kind == '[':
		sent, rebuilt := elementsOf(t, sent), elementsOf(t, rebuilt)
		if slices.Contains(setNames, name) {
			return slices.Equal(setOf(sent), setOf(rebuilt))
		}
		for _, value := range sent {
			i := slices.IndexFunc(rebuilt, func(other jsontext.Value) bool { return alike(t, "", value, other) })
			if i < 0 || i > 0 && !slices.Contains(unordered, name) {
				return false
			}
			rebuilt = slices.Delete(rebuilt, i, i+1)
		}
		return len(rebuilt) == 0
	case kind == '"' && slices.Contains(timeNames, name):
		at, err := time.Parse(time.RFC3339Nano, text(sent))
		again, errAgain := time.Parse(time.RFC3339Nano, text(rebuilt))
		return err == nil && errAgain == nil && at.Equal(again) || text(sent) == text(rebuilt)
	case kind == '"':
		return text(sent) == text(rebuilt)
	default:
		return string(sent) == string(rebuilt) || string(sent) == "-0" && string(rebuilt) == "0"
	}
}

// text is what a text says, and nothing where it is none.
func text(value jsontext.Value) string {
	if value.Kind() != '"' {
		return ""
	}
	return string(unquoted(value))
}

// present are the members of an object without what may differ: members that are null, empty tokens, and the names and
// offsets that events have in common with their update.
func present(t *testing.T, object jsontext.Value) map[string]jsontext.Value {
	all := membersIn(t, object)
	for name, value := range all {
		switch {
		case value.Kind() == 'n', name == "streamContinuationToken" && string(value) == `""`:
			delete(all, name)
		case name == "unassignId":
			delete(all, name)
			all["reassignmentId"] = value
		}
	}
	if _, isEvent := all["nodeId"]; isEvent {
		delete(all, "offset")
	}
	return all
}

// scalar is what a text or a number says; nothing where it is absent or null.
func scalar(value jsontext.Value) string {
	switch {
	case value == nil || value.Kind() == 'n':
		return ""
	case value.Kind() == '"':
		return text(value)
	}
	return strings.TrimPrefix(string(value), "-") // only of a zero
}

// members is a JSON object in the making. Members that are nil are left out by add.
type members map[string]any

func object1(name string, value any) members { return members{name: value} }

func (m members) text(name string, value *string) {
	if value != nil {
		m[name] = *value
	}
}

func (m members) texts(name string, value []string) {
	if value != nil {
		m[name] = value
	}
}

func (m members) bytes(name string, value []byte) {
	if value != nil {
		m[name] = base64.StdEncoding.EncodeToString(value)
	}
}

func (m members) payload(name string, value JSON) {
	if value != nil {
		m[name] = exactly + string(value)
	}
}

func (m members) time(name string, value Time) {
	switch {
	case value.Exact != "":
		m[name] = value.Exact
	case value.Valid:
		m[name] = value.Time.Format(time.RFC3339Nano)
	}
}

func add[T any](m members, name string, value *T) {
	if value != nil {
		m[name] = *value
	}
}

// extra puts the members of Extra back and returns those that belong to other levels.
func (m members) extra(extra JSON) map[string]members {
	elsewhere := map[string]members{}
	if extra == nil {
		return elsewhere
	}
	var all map[string]jsontext.Value
	if err := json.Unmarshal(extra, &all, jsontext.AllowInvalidUTF8(true)); err != nil {
		panic(err)
	}
	for name, value := range all {
		if !slices.Contains(extraNames, name) {
			m[name] = value
			continue
		}
		var level members
		if err := json.Unmarshal(value, &level, json.WithUnmarshalers(rawLeaves), jsontext.AllowInvalidUTF8(true)); err != nil {
			panic(err)
		}
		elsewhere[name] = level
	}
	return elsewhere
}

// rawLeaves keeps values that stand in an any as raw JSON, but for objects.
var rawLeaves = json.UnmarshalFromFunc(func(dec *jsontext.Decoder, value *any) error {
	if dec.PeekKind() == '{' {
		var level members
		err := json.UnmarshalDecode(dec, &level)
		*value = level
		return err
	}
	raw, err := dec.ReadValue()
	*value = raw.Clone()
	return err
})

// merge puts one object into another, level by level.
func (m members) merge(other members) members {
	for name, value := range other {
		below, ok := value.(members)
		existing, both := m[name].(members)
		if ok && both {
			existing.merge(below)
		} else {
			m[name] = value
		}
	}
	return m
}
