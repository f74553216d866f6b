package ledger

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

// addSeeds gives a fuzz target samples, cut and broken in a few ways, and the files of testdata.
func addSeeds(f *testing.F, bodies ...[]byte) {
	f.Helper()
	for _, body := range bodies {
		f.Add(body)
		f.Add(body[:len(body)/2])
		f.Add([]byte(strings.ReplaceAll(string(body), `"alice"`, `"\ud800\u0000"`)))
		f.Add([]byte(strings.ReplaceAll(string(body), `"nodeId"`, `"offset"`)))
	}
	for _, text := range []string{``, `null`, `[]`, `{}`, `[null]`, `[{"update":null}]`, `[{"update":{"":{"offset":1}}}]`, "\xff", `"`} {
		f.Add([]byte(text))
	}
	files, err := filepath.Glob("testdata/*/*.json")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		body, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(body)
	}
}

func FuzzParseTime(f *testing.F) {
	for _, text := range []string{
		"", "1970-01-01T00:00:00Z", "2025-10-14T11:29:20.015513Z", "2025-10-14T11:29:20.123456789+02:00", "0000-01-01T00:00:00.000000001Z",
		"9999-12-31T23:59:59.999999999Z", "2025-10-14T11:29:20,5Z", "2025-10-14T1:29:20.5Z", "2025-02-30T00:00:00Z",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseTime(text)
		if plain, ok := parsePlainTime([]byte(text)); ok {
			require.NoError(t, err)
			require.Equal(t, got, plain)
		}
		if err != nil {
			require.Equal(t, Time{}, got)
			return
		}
		require.True(t, got.Valid)
		require.Equal(t, time.UTC, got.Time.Location())
		require.Zero(t, got.Time.Nanosecond()%1000, "whole microseconds")
		sent, err := time.Parse(time.RFC3339Nano, text)
		require.NoError(t, err)
		lost := sent.Sub(got.Time)
		require.True(t, lost >= 0 && lost < time.Microsecond, "%v lost", lost)
		require.Equal(t, lost > 0, got.Exact != "", "what microseconds can't hold, and only that, is kept as text")
		require.Contains(t, []string{"", text}, got.Exact)
	})
}

func requireDecodeError(t *testing.T, err error) {
	t.Helper()
	var decodeError *DecodeError
	require.True(t, errors.As(err, &decodeError), "%T", err)
	require.GreaterOrEqual(t, decodeError.Element, -1)
	require.NotEmpty(t, err.Error())
	require.GreaterOrEqual(t, decodeError.Offset, Offset(0))
}

// requireUpdates checks what holds for every list of updates that decodes.
func requireUpdates(t *testing.T, got UpdateList) {
	t.Helper()
	require.Equal(t, len(got.Updates)+len(got.Checkpoints), got.Elements)
	var last Offset
	for _, u := range got.Updates {
		require.Greater(t, u.Offset, last)
		last = u.Offset
		requireExtra(t, u.Extra)
		for _, x := range u.Unknown {
			require.True(t, x.Raw.IsValid(jsontext.AllowInvalidUTF8(true)), "%s", x.Raw)
			require.Equal(t, '{', rune(x.Raw.Kind()))
		}
		if u.Kind == KindUnknown {
			require.Len(t, u.Unknown, 1)
			require.Nil(t, u.Unknown[0].NodeID)
			continue
		}
		require.NotEmpty(t, u.ID)
		requireText(t, u.ID)
		require.True(t, u.RecordTime.Valid)
		require.Equal(t, u.Kind == KindTransaction, u.EffectiveAt.Valid)
		require.True(t, u.SynchronizerID != nil || u.Kind == KindReassignment)
		requireEvents(t, u)
	}
	last = 0
	for _, c := range got.Checkpoints {
		require.GreaterOrEqual(t, c.Offset, last)
		last = c.Offset
		require.LessOrEqual(t, c.Offset, got.Last)
		for _, at := range c.Times {
			require.True(t, at.RecordTime.Valid)
		}
	}
}

func requireEvents(t *testing.T, u Update) {
	t.Helper()
	nodes := map[int32]bool{}
	node := func(id int32) {
		require.GreaterOrEqual(t, id, int32(0))
		require.False(t, nodes[id], "node id %d stands twice", id)
		nodes[id] = true
	}
	origin := map[UpdateKind]Origin{KindTransaction: OriginTransaction, KindReassignment: OriginAssignment}[u.Kind]
	for i, e := range u.Created {
		node(e.NodeID)
		require.Equal(t, u.Offset, e.Offset)
		requireCreated(t, e, origin)
		if u.Kind == KindReassignment {
			require.Equal(t, e.NodeID, u.Assigned[i].NodeID)
			require.Equal(t, e.ContractID, u.Assigned[i].ContractID)
		}
	}
	for _, e := range u.Archived {
		node(e.NodeID)
		requireText(t, e.ContractID, e.TemplateID)
		require.NotNil(t, e.WitnessParties)
	}
	for _, e := range u.Exercised {
		node(e.NodeID)
		requireText(t, e.ContractID, e.TemplateID)
		requireText(t, e.ActingParties...)
		require.NotNil(t, e.WitnessParties)
	}
	for _, e := range u.Unassigned {
		node(e.NodeID)
		require.Equal(t, u.Offset, e.Offset)
		requireText(t, e.ContractID, e.TemplateID)
	}
	for i, e := range u.Topology {
		require.Equal(t, int32(i), e.NodeID)
		require.Equal(t, e.Kind == TopologyUnknown, e.PartyID == nil)
	}
}

// requireEntries checks what holds for all entries of a snapshot that decode.
func requireEntries(t *testing.T, entries []ContractEntry) {
	t.Helper()
	for _, e := range entries {
		kinds := 0
		for _, set := range []bool{e.Active != nil, e.Unassigned != nil, e.Assigned != nil, e.Empty, e.Unknown != nil} {
			if set {
				kinds++
			}
		}
		require.Equal(t, 1, kinds)
		requireExtra(t, e.Extra)
		requireText(t, e.Token)
		switch {
		case e.Active != nil:
			requireCreated(t, e.Active.Created, OriginSnapshot)
		case e.Unassigned != nil:
			requireCreated(t, e.Unassigned.Created, OriginSnapshot)
			require.Positive(t, e.Unassigned.Unassigned.Offset)
		case e.Assigned != nil:
			requireCreated(t, e.Assigned.Created, OriginSnapshot)
			require.Equal(t, e.Assigned.Created.NodeID, e.Assigned.Assigned.NodeID)
		}
	}
}

func requireCreated(t *testing.T, e CreatedEvent, origin Origin) {
	t.Helper()
	require.Equal(t, origin, e.Origin)
	require.Positive(t, e.Offset)
	requireText(t, e.ContractID, e.TemplateID)
	requireText(t, e.Signatories...)
	_, err := ParseTemplateID(e.TemplateID)
	require.NoError(t, err)
	require.NotNil(t, e.Signatories)
	require.NotNil(t, e.WitnessParties)
	require.True(t, e.CreatedAt.Valid)
	for _, payload := range []JSON{e.Argument, e.ContractKey} {
		require.True(t, payload == nil || payload.IsValid(jsontext.AllowInvalidUTF8(true)), "%s", payload)
	}
	requireExtra(t, e.Extra)
}

func requireText(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		require.True(t, utf8.ValidString(text) && !strings.Contains(text, "\x00"), "%q", text)
	}
}

// requireExtra checks that unknown members are one object without a name that stands twice.
func requireExtra(t *testing.T, extra JSON) {
	t.Helper()
	if extra != nil {
		require.True(t, extra.IsValid(jsontext.AllowInvalidUTF8(true)), "%s", extra)
		require.Equal(t, '{', rune(extra.Kind()))
	}
}

// requireRecord checks what holds for every record that decodes.
func requireRecord(t *testing.T, r *Record) {
	t.Helper()
	require.NotEmpty(t, r.EventID)
	requireText(t, r.EventID)
	requireOptionalText(t, r.Type, r.DomainID, r.Offset)
	requireExtra(t, r.Extra)
	parts := map[RecordKind]bool{
		RecordTransfer: r.Transfer != nil, RecordMint: r.Mint != nil, RecordTap: r.Tap != nil,
		RecordAbort: r.Abort != nil, RecordUnknown: r.Raw != nil,
	}
	for kind, set := range parts {
		require.Equal(t, kind == r.Kind, set, "%s in a record of the kind %s", kind, r.Kind)
	}
	require.True(t, r.Date.Valid || r.Kind == RecordUnknown)
	require.Contains(t, []string{"", wordCoin, wordAmulet}, r.Word)
	switch r.Kind {
	case RecordTransfer:
		requireTransfer(t, r.Transfer)
		require.Equal(t, r.Word != "", r.Transfer.Sender.InputAmount != nil)
	case RecordMint, RecordTap:
		owned := r.Mint
		if owned == nil {
			owned = r.Tap
		}
		requireText(t, owned.Owner)
		requireDecimal(t, &owned.Amount)
		requireExtra(t, owned.Extra)
		require.NotEmpty(t, r.Word)
	case RecordAbort:
		require.NotEmpty(t, r.Abort.InstructionCID)
		requireText(t, r.Abort.InstructionCID)
		requireOptionalText(t, r.Abort.Kind)
		requireExtra(t, r.Abort.Extra)
	default:
		require.Nil(t, r.Extra)
	}
}

func requireTransfer(t *testing.T, r *Transfer) {
	t.Helper()
	s := &r.Sender
	requireText(t, s.Party)
	requireDecimal(t, s.ChangeFee, s.ChangeAmount, s.Fee, s.HoldingFees, s.InputAmount, s.InputAppRewardAmount, s.InputValidatorRewardAmount,
		s.InputSVRewardAmount, s.InputValidatorFaucetAmount, r.InstructionAmount)
	requireOptionalText(t, r.Description, r.Kind, r.InstructionReceiver, r.InstructionCID)
	requireExtra(t, r.Extra)
	requireExtra(t, s.Extra)
	for _, x := range r.Receivers {
		requireText(t, x.Party)
		requireDecimal(t, &x.Amount, x.Fee)
		requireExtra(t, x.Extra)
	}
	for _, x := range r.BalanceChanges {
		requireText(t, x.Party)
		requireDecimal(t, &x.InitialAmount, &x.HoldingFeesRate)
		requireExtra(t, x.Extra)
	}
}

func requireOptionalText(t *testing.T, texts ...*string) {
	t.Helper()
	for _, text := range texts {
		if text != nil {
			requireText(t, *text)
		}
	}
}

func requireDecimal(t *testing.T, numbers ...*Decimal) {
	t.Helper()
	for _, d := range numbers {
		if d != nil {
			_, err := ParseDecimal(string(*d))
			require.NoError(t, err)
		}
	}
}

func requireVetted(t *testing.T, list []VettedPackages, sent []jsontext.Value) {
	t.Helper()
	for _, v := range list {
		require.NotEmpty(t, v.ParticipantID)
		require.NotEmpty(t, v.SynchronizerID)
		requireText(t, v.ParticipantID, v.SynchronizerID)
		require.GreaterOrEqual(t, v.TopologySerial, int32(0))
		require.NotNil(t, v.Packages)
		seen := map[string]bool{}
		for _, p := range v.Packages {
			require.NotEmpty(t, p.PackageID)
			require.False(t, seen[p.PackageID])
			seen[p.PackageID] = true
			requireText(t, p.PackageID, p.PackageName, p.PackageVersion)
		}
	}
	requireRebuiltVetted(t, list, sent)
}

// requireWalk checks that node ids have no gap, and that what lies below an exercise does not reach beyond what its
// parent has.
func requireWalk(t *testing.T, u *Update) {
	t.Helper()
	var ids []int32
	for _, e := range u.Created {
		ids = append(ids, e.NodeID)
	}
	for _, e := range u.Unknown {
		ids = append(ids, *e.NodeID)
	}
	var ends []int32
	for _, e := range u.Exercised {
		ids = append(ids, e.NodeID)
		for len(ends) > 0 && ends[len(ends)-1] < e.NodeID {
			ends = ends[:len(ends)-1]
		}
		require.GreaterOrEqual(t, e.LastDescendantNodeID, e.NodeID)
		if len(ends) > 0 {
			require.LessOrEqual(t, e.LastDescendantNodeID, ends[len(ends)-1])
		}
		ends = append(ends, e.LastDescendantNodeID)
	}
	slices.Sort(ids)
	for i, id := range ids {
		require.EqualValues(t, i, id)
	}
}
