package export

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// What is exported next follows from the manifests and from what changed in the database since.
func TestPlan(t *testing.T) {
	t.Parallel()
	done := func(change int64, ends ...ledger.Offset) (list []Manifest) {
		for i, end := range ends[1:] {
			list = append(list, Manifest{From: ends[i], To: end, CompleteFrom: ends[i], Change: change})
		}
		return list
	}
	changed := func(number int64, from, to ledger.Offset) store.ExportChange {
		return store.ExportChange{Number: number, From: from, To: to, Reason: "repaired"}
	}
	pruned := func(number int64, floor ledger.Offset) store.ExportChange {
		return store.ExportChange{Number: number, To: floor, Reason: store.ChangePruned}
	}
	redacted := func(number int64, at ledger.Offset) store.ExportChange {
		return store.ExportChange{Number: number, From: at - 1, To: at, Reason: store.ChangeRedacted}
	}
	for name, c := range map[string]struct {
		done      []Manifest
		floor     ledger.Offset
		watermark ledger.Offset
		through   ledger.Offset // 0: the watermark
		changes   []store.ExportChange
		outdated  []ledger.Offset // where they begin
		gap       ledger.Range
		refused   string
	}{
		"nothing yet":                     {watermark: 100, gap: ledger.Range{To: 100}},
		"nothing yet, from a snapshot":    {watermark: 100, floor: 60, gap: ledger.Range{To: 100}},
		"the rest":                        {done: done(0, 0, 10, 20), watermark: 100, gap: ledger.Range{From: 20, To: 100}},
		"everything":                      {done: done(0, 0, 10, 100), watermark: 100, gap: ledger.Range{From: 100, To: 100}},
		"one that is missing":             {done: append(done(0, 0, 10), done(0, 20, 30)...), watermark: 100, gap: ledger.Range{From: 10, To: 20}},
		"in any order":                    {done: append(done(0, 20, 30), done(0, 0, 10)...), watermark: 100, gap: ledger.Range{From: 10, To: 20}},
		"changed":                         {done: done(0, 0, 10, 20, 30), watermark: 30, changes: []store.ExportChange{changed(1, 12, 13)}, outdated: []ledger.Offset{10, 20}, gap: ledger.Range{From: 10, To: 20}},
		"changed at its ends":             {done: done(0, 0, 10, 20, 30), watermark: 30, changes: []store.ExportChange{redacted(1, 21), redacted(2, 10)}, outdated: []ledger.Offset{0, 20}, gap: ledger.Range{To: 10}},
		"two that changed":                {done: done(0, 0, 10, 20, 30), watermark: 40, changes: []store.ExportChange{changed(1, 5, 15)}, outdated: []ledger.Offset{0, 10, 20}, gap: ledger.Range{To: 10}},
		"changed, and further on":         {done: done(0, 0, 10, 20, 30), watermark: 40, through: 15, changes: []store.ExportChange{changed(1, 0, 30)}, outdated: []ledger.Offset{0}, gap: ledger.Range{To: 10}},
		"changed only further on":         {done: done(0, 0, 10, 20, 30), watermark: 40, through: 10, changes: []store.ExportChange{changed(1, 10, 30)}, gap: ledger.Range{From: 30, To: 30}},
		"missing, and further on":         {done: append(done(0, 0, 10), done(0, 20, 30)...), watermark: 40, through: 15, gap: ledger.Range{From: 10, To: 15}},
		"reset further on":                {done: done(0, 0, 10, 20, 30), watermark: 12, changes: []store.ExportChange{changed(1, 12, 30)}, outdated: []ledger.Offset{10, 20}, gap: ledger.Range{From: 10, To: 12}},
		"changed before":                  {done: done(7, 0, 10, 20), watermark: 20, changes: []store.ExportChange{changed(7, 0, 20)}, gap: ledger.Range{From: 20, To: 20}},
		"reset":                           {done: done(0, 0, 10, 20), watermark: 15, changes: []store.ExportChange{changed(1, 15, 20)}, outdated: []ledger.Offset{10}, gap: ledger.Range{From: 10, To: 15}},
		"pruned":                          {done: done(0, 0, 10, 20), floor: 20, watermark: 30, gap: ledger.Range{From: 20, To: 30}},
		"pruned and changed":              {done: done(0, 0, 10, 20), floor: 15, watermark: 30, changes: []store.ExportChange{changed(1, 0, 12)}, refused: "repaired after they had been exported"},
		"reset after it was pruned":       {done: done(0, 0, 100), floor: 50, watermark: 80, changes: []store.ExportChange{changed(1, 80, 100)}, refused: "are not in the database any more"},
		"changed, then pruned":            {done: done(0, 0, 10, 20), floor: 15, watermark: 30, changes: []store.ExportChange{changed(1, 0, 12), pruned(2, 15)}, refused: "repaired after they had been exported"},
		"pruned, then changed":            {done: done(0, 0, 10, 20), floor: 10, watermark: 20, changes: []store.ExportChange{pruned(1, 10), changed(2, 0, 20)}, outdated: []ledger.Offset{10}, gap: ledger.Range{From: 10, To: 20}},
		"changed between prunings":        {done: done(0, 0, 10, 20), floor: 15, watermark: 20, changes: []store.ExportChange{pruned(1, 5), changed(2, 11, 13), pruned(3, 15)}, refused: "repaired after they had been exported"},
		"changed, exported, pruned again": {done: append(done(0, 0, 10), done(2, 10, 20)...), floor: 20, watermark: 30, changes: []store.ExportChange{pruned(1, 10), changed(2, 0, 20), pruned(3, 20)}, gap: ledger.Range{From: 20, To: 30}},
		"pruned in part, then changed":    {done: done(0, 0, 10, 20), floor: 15, watermark: 20, changes: []store.ExportChange{pruned(1, 15), changed(2, 0, 20)}, refused: "repaired after they had been exported"},
		"carried, then repaired":          {done: done(0, 0, 10, 20), floor: 10, watermark: 20, changes: []store.ExportChange{pruned(1, 10), changed(2, 0, 10)}, outdated: []ledger.Offset{10}, gap: ledger.Range{From: 10, To: 20}},
		"pruned, then redacted":           {done: done(0, 0, 10, 20), floor: 10, watermark: 20, changes: []store.ExportChange{pruned(1, 10), redacted(2, 15)}, outdated: []ledger.Offset{10}, gap: ledger.Range{From: 10, To: 20}},
		"redacted where it was pruned":    {done: done(0, 0, 10, 20), floor: 10, watermark: 20, changes: []store.ExportChange{pruned(1, 10), redacted(2, 5)}, refused: "redacted after they had been exported"},
		"transactions changed":            {done: done(0, 0, 10, 20), watermark: 20, changes: []store.ExportChange{{Number: 1, To: 20, Of: store.StreamTransactions}}, gap: ledger.Range{From: 20, To: 20}},
		"another change of the number":    {done: done(7, 0, 10), watermark: 20, changes: []store.ExportChange{{Number: 7, At: time.Unix(7, 0), Of: store.StreamTransactions}}, refused: "or was restored"},
		"fewer changes":                   {done: done(7, 0, 10), watermark: 20, changes: []store.ExportChange{changed(6, 0, 1)}, refused: "or was restored"},
		"of which it is part by now":      {done: done(6, 0, 10), watermark: 20, changes: []store.ExportChange{changed(7, 10, 20)}, gap: ledger.Range{From: 10, To: 20}},
		"pruned before it was":            {done: done(0, 0, 10), floor: 20, watermark: 30, refused: "were not exported"},
		"one that is missing, pruned":     {done: done(0, 10, 20), floor: 15, watermark: 30, refused: "were not exported"},
		"behind":                          {done: done(0, 0, 10, 20), watermark: 15, refused: "the database goes up to 15"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := store.ExportState{Extent: store.Extent{Started: true, Watermark: c.watermark, HistoryFloor: c.floor}, Changes: c.changes}
			outdated, gap, err := plan("there", c.done, state, cmp.Or(c.through, c.watermark))
			if c.refused != "" {
				requireProblem(t, err, c.refused)
				return
			}
			require.NoError(t, err)
			var begin []ledger.Offset
			for _, m := range outdated {
				begin = append(begin, m.From)
			}
			require.Equal(t, c.outdated, begin)
			require.Equal(t, c.gap, gap)
		})
	}
}

func requireProblem(t *testing.T, err error, what string) {
	t.Helper()
	var problem *ledger.Problem
	require.ErrorAs(t, err, &problem)
	require.Contains(t, problem.What, what)
	require.NotEmpty(t, problem.Do)
}

// A Scan service that is added later tells a participant's network: its place stays its own.
func TestANetworkThatIsKnownLater(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		before, after string
		fits          bool
	}{{"", "net", true}, {"net", "", true}, {"net", "net", true}, {"net", "other", false}} {
		err := fits("there", &Manifest{Participant: "p", Network: c.before}, store.ExportState{Participant: "p", Network: c.after})
		require.Equal(t, c.fits, err == nil, "%v", c)
		if err != nil {
			requireProblem(t, err, "is of the ledger of p in the network of net, and the database holds that of p in the network of other")
		}
	}
}

// What a database must know of itself before it is exported, and where the export ends.
func TestWhereAnExportEnds(t *testing.T) {
	t.Parallel()
	known := store.ExportState{
		Extent: store.Extent{Started: true, Watermark: 100}, Participant: "p", Scope: "s", Verified: 80,
	}
	for _, c := range []struct {
		change  func(*store.ExportState)
		options Options
		through ledger.Offset
		refused string
	}{
		{through: 100},
		{options: Options{Through: 50}, through: 50},
		{options: Options{Full: true}, through: 80},
		{options: Options{Full: true, Through: 90}, through: 80},
		{change: func(s *store.ExportState) { s.Participant, s.Network = "", "n" }, through: 100},
		{options: Options{Through: 101}, refused: "the database goes up to offset 100, and --through is 101"},
		{change: func(s *store.ExportState) { s.Started = false }, options: Options{Records: true},
			refused: "no record of the transaction history is stored"},
		{change: func(s *store.ExportState) { s.Participant = "" }, refused: "does not know whose ledger it holds"},
		{change: func(s *store.ExportState) { s.Scope = "" }, refused: "does not know whose ledger it holds"},
	} {
		state := known
		if c.change != nil {
			c.change(&state)
		}
		through, err := (&Export{options: c.options}).through(state)
		if c.refused == "" {
			require.NoError(t, err)
			require.Equal(t, c.through, through)
			continue
		}
		requireProblem(t, err, c.refused)
	}
}

// What a database brings from below its history is one range, also where the export has what follows it already.
func TestWhatIsCarriedIsOneRange(t *testing.T) {
	t.Parallel()
	state := store.ExportState{Extent: store.Extent{Started: true, HistoryFloor: 100, Watermark: 300}}
	for _, to := range []ledger.Offset{100, 200, 300} {
		at, err := (&Export{}).cut(t.Context(), nil, state, ledger.Range{To: to})
		require.NoError(t, err)
		require.Equal(t, ledger.Offset(100), at)
	}
}

// What comes while an export runs is for the next one, and what a reset took away meanwhile is for none.
func TestAnExportOfABusyLedgerEnds(t *testing.T) {
	t.Parallel()
	e, follows := &Export{}, &Export{options: Options{Full: true}}
	for _, c := range []struct{ watermark, through, followed ledger.Offset }{{100, 100, 100}, {200, 100, 200}, {90, 90, 90}, {150, 100, 150}} {
		state := store.ExportState{Extent: store.Extent{Started: true, Watermark: c.watermark}, Participant: "p", Scope: "s", Verified: c.watermark}
		through, err := e.through(state)
		require.NoError(t, err)
		require.Equal(t, c.through, through)
		through, err = follows.through(state)
		require.NoError(t, err)
		require.Equal(t, c.followed, through)
	}
}

// An export of records looks at what changed of these alone.
func TestPlanOfRecords(t *testing.T) {
	t.Parallel()
	done := []Manifest{{Records: true, To: 10}, {Records: true, From: 10, To: 20}}
	state := store.ExportState{Extent: store.Extent{Started: true, Watermark: 60}, Records: true, Changes: []store.ExportChange{
		{Number: 1, To: 5, Of: store.StreamUpdates, Reason: store.ChangeRepaired},
	}}
	outdated, gap, err := plan("there", slices.Clone(done), state, 60)
	require.NoError(t, err)
	require.Empty(t, outdated)
	require.Equal(t, ledger.Range{From: 20, To: 60}, gap)
	state.Changes = append(state.Changes, store.ExportChange{Number: 2, To: 50, Of: store.StreamTransactions, Reason: "read again"})
	outdated, gap, err = plan("there", slices.Clone(done), state, 60)
	require.NoError(t, err)
	require.Equal(t, done, outdated)
	require.Equal(t, ledger.Range{To: 10}, gap, "of the reading before")
}
