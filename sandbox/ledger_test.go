package sandbox

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// everything returns all that a ledger serves of its updates.
func everything(l *Ledger, scope Scope) string {
	v := l.view()
	f := scope.compiled(l.names())
	feat := scope.features()
	var out []byte
	for i := range v.updates {
		out, _ = v.appendUpdate(out, i, f, feat)
		out = append(out, '\n')
	}
	return string(out)
}

func TestGrowthCutAnywhereGivesTheSameLedger(t *testing.T) {
	t.Parallel()
	whole, parts := NewLedger(Options{Seed: 7}), NewLedger(Options{Seed: 7})
	whole.Grow(300)
	for _, n := range []int{1, 0, 149, 13, 137} {
		parts.Grow(n)
	}
	scope := Scope{Shape: LedgerEffects, Blobs: true, Interfaces: InterfaceNames()}
	require.Equal(t, everything(whole, scope), everything(parts, scope))
	require.Equal(t, whole.End(), parts.End())
	other := grown(t, Options{Seed: 8}, 300)
	require.NotEqual(t, everything(whole, scope), everything(other, scope))
}

func TestOffsetsAndRecordTimesGrow(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 3, FirstOffset: 100}, 2000)
	v := l.view()
	require.EqualValues(t, 100, v.updates[0].offset)
	gaps := 0
	for i := 1; i < len(v.updates); i++ {
		require.Greater(t, v.updates[i].offset, v.updates[i-1].offset)
		require.Greater(t, v.updates[i].record, v.updates[i-1].record)
		if v.updates[i].offset > v.updates[i-1].offset+1 {
			gaps++
		}
	}
	require.Greater(t, gaps, 300)
	dense := grown(t, Options{Seed: 3, NoGaps: true}, 500)
	require.EqualValues(t, 500, dense.End())
	require.EqualValues(t, 500, dense.Offset(499))
}

// A contract is activated and deactivated in turn on each synchronizer, never twice
// in a row, and nothing happens to it after its archival but the late half of a
// reassignment.
func TestContractsLiveConsistently(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 5, EventsPerUpdate: 6}, 3000)
	v := l.view()
	active := map[stay]bool{}
	archived := map[int32]bool{}
	both := 0
	on := func(c int32, s uint8) {
		require.False(t, active[stay{c, s}], "contract %d is active already", c)
		active[stay{c, s}] = true
		if active[stay{c, 1 - s}] {
			both++
		}
	}
	off := func(c int32, s uint8) {
		require.True(t, active[stay{c, s}], "contract %d is not active", c)
		delete(active, stay{c, s})
	}
	for i := range v.updates {
		u := &v.updates[i]
		switch u.kind {
		case kindTransaction:
			node, created := int32(-1), map[int32]bool{}
			for _, e := range v.events[u.first : u.first+u.count] {
				require.Greater(t, e.node, node)
				node = e.node
				require.GreaterOrEqual(t, e.last, e.node)
				consuming := e.choice >= 0 && e.served.template().choices[e.choice].consuming
				if e.choice < 0 {
					created[e.contract] = e.acs
				} else if delta, here := created[e.contract]; here && consuming {
					require.False(t, delta || e.acs, "contract %d is created and archived in one transaction", e.contract)
				}
				switch {
				case e.choice < 0 && e.acs:
					on(e.contract, u.synchronizer)
				case consuming:
					require.False(t, archived[e.contract], "contract %d is archived already", e.contract)
					archived[e.contract] = true
					if e.acs {
						off(e.contract, u.synchronizer)
					}
				}
			}
		case kindReassignment:
			for _, half := range v.legs[u.first : u.first+u.count] {
				r := &v.reassignments[half.reassignment]
				if half.assign {
					require.Equal(t, r.target, u.synchronizer)
					on(r.contract, r.target)
				} else {
					require.Equal(t, r.source, u.synchronizer)
					off(r.contract, r.source)
				}
			}
		}
	}
	require.Positive(t, both, "no contract was ever active on two synchronizers")
	share := float64(len(active)) / float64(l.gen.created)
	require.InDelta(t, 0.2, share, 0.03)
}

// Three hundred updates are enough to meet everything that a ledger can have.
func TestSmallLedgerHasEverything(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 1}, 300)
	all := everything(l, Scope{Shape: LedgerEffects, Interfaces: InterfaceNames(), Blobs: true})
	for _, part := range []string{
		`"JsAssignmentEvent"`, `"JsUnassignedEvent"`, `"ParticipantAuthorizationAdded"`, `"ParticipantAuthorizationChanged"`,
		`"ParticipantAuthorizationRevoked"`, `"ParticipantAuthorizationOnboarding"`, `"consuming":true`, `"consuming":false`,
		`"acsDelta":false`, `"traceContext":null`, `"tracestate":null`, `"tracestate":"vendor`, `"externalTransactionHash":null`,
		`"externalTransactionHash":"`, `"paidTrafficCost":null`, `"code":9`, `"viewValue":null`, `"commandId":""`, `"submitter":""`,
		`"exerciseResult":null`, `"exerciseResult":{}`, `"assignmentExclusivity":null`, `"assignmentExclusivity":"2026`,
		`"contractKey":{`, `"contractKeyHash":""`, `"interfaceId":null`, `"valueDecoded":"Unknown`,
	} {
		require.Contains(t, all, part)
	}
	v := l.view()
	var transient, divulged, upgraded int
	for _, c := range v.contracts {
		if c.flags&flagTransient != 0 {
			transient++
		}
		if c.flags&flagDivulged != 0 {
			divulged++
		}
	}
	for _, e := range v.events {
		if e.choice >= 0 && e.served != v.contracts[e.contract].kind {
			upgraded++
		}
	}
	require.Positive(t, transient)
	require.Positive(t, divulged)
	require.Positive(t, upgraded)
	require.True(t, strings.Contains(all, `"interfaceViews":[{"interfaceId":`))
}
