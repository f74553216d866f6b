package export

import (
	"cmp"
	"fmt"
	"slices"

	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// plan compares what was exported with a database. outdated are the ranges up to an offset, or beyond what the database
// has, whose rows changed since they were exported. gap is the first range up to the offset that is outdated or was not
// exported; it is empty if there is none. An export that can't continue is a *ledger.Problem.
func plan(place string, done []Manifest, state store.ExportState,
	through ledger.Offset) (outdated []Manifest, gap ledger.Range, err error) {
	slices.SortFunc(done, func(a, b Manifest) int { return cmp.Compare(a.From, b.From) })
	for i := range done {
		m := &done[i]
		if err := fits(place, m, state); err != nil {
			return nil, gap, err
		}
		changed := changedSince(m, state)
		switch {
		case changed == nil && m.To > state.Watermark:
			return nil, gap, &ledger.Problem{
				What: fmt.Sprintf("%s was exported up to %s %d, and the database goes up to %d", place, unit(m.Records), m.To,
					state.Watermark),
				Do: "wait until the database has come so far, or export into another place",
			}
		case changed != nil && state.HistoryFloor > m.CompleteFrom:
			return nil, gap, &ledger.Problem{
				What: fmt.Sprintf("the updates of %s were %s after they had been exported, and are not in the database any more",
					m.Name(), changed.Reason),
				Do: "export into another place: only these files have what was pruned",
			}
		case changed != nil && (m.To <= through || m.To > state.Watermark):
			outdated = append(outdated, *m)
		}
	}
	gap = firstGap(done, outdated, through)
	// From 0 on, what is carried at the floor stands for what was before it.
	if gap.From < gap.To && gap.From < state.HistoryFloor && (gap.From > 0 || gap.To < state.HistoryFloor) {
		return nil, gap, &ledger.Problem{
			What: fmt.Sprintf("%s was exported up to offset %d, and the events of the database begin after offset %d: those "+
				"between them were not exported", place, gap.From, state.HistoryFloor),
			Do: "export into another place",
		}
	}
	return outdated, gap, nil
}

// fits refuses a manifest of another ledger or scope, of a newer schema, or of another history of changes.
func fits(place string, m *Manifest, state store.ExportState) error {
	what, do := "", "name another place with --to, or the database of this export"
	switch {
	// A participant's network is not known before there is a Scan service.
	case m.Participant != state.Participant || m.Network != "" && state.Network != "" && m.Network != state.Network:
		what = fmt.Sprintf("the ledger of %s, and the database holds that of %s", ledgerOf(m.Participant, m.Network),
			ledgerOf(state.Participant, state.Network))
	case m.Scope != state.Scope:
		what = fmt.Sprintf("scope %s, and the database has %s", m.Scope, state.Scope)
	case m.SchemaVersion > state.SchemaVersion:
		what = fmt.Sprintf("schema version %d, and the database has %d", m.SchemaVersion, state.SchemaVersion)
		do = "use the release of the indexer that wrote it"
	case !knows(state, m):
		what = fmt.Sprintf("a database with %d changes of what had been shown, and this one has %d, or others: it is "+
			"another one, or was restored", m.Change, newest(state).Number)
	default:
		return nil
	}
	return &ledger.Problem{What: fmt.Sprintf("%s in %s is of %s", m.Name(), place, what), Do: do}
}

// ledgerOf names the owner of a ledger: a participant, with its network if that is known, or a network.
func ledgerOf(participant, network string) string {
	if network == "" || network == participant {
		return participant
	}
	return participant + " in the network of " + network
}

// newest returns the last change; the zero value: there was none.
func newest(state store.ExportState) (last store.ExportChange) {
	if n := len(state.Changes); n > 0 {
		last = state.Changes[n-1]
	}
	return last
}

// knows reports whether a database has the newest change of a manifest, or one that replaced it.
func knows(state store.ExportState, m *Manifest) bool {
	i := slices.IndexFunc(state.Changes, func(c store.ExportChange) bool { return c.Number == m.Change })
	return m.Change <= newest(state).Number && (i < 0 || state.Changes[i].At.Equal(m.ChangedAt))
}

// changedSince returns the last change of a range's rows after they were exported; nil: none. Changes after a pruning
// are noted from offset 0 on, but of a range that had been pruned by then they can have changed only what was left of
// it; a redaction is noted where the content was. Computed rows also follow from earlier rows: a repair there changes
// them.
func changedSince(m *Manifest, state store.ExportState) (changed *store.ExportChange) {
	var pruned int64
	for _, c := range state.Changes {
		if c.Reason == store.ChangePruned {
			pruned = c.Number
		}
	}
	var floor ledger.Offset // where what was left began when a change was made
	for i, c := range state.Changes {
		switch {
		case c.Reason == store.ChangePruned && c.Number == pruned:
			floor = state.HistoryFloor
		case c.Reason == store.ChangePruned:
			floor = c.To
		}
		if (c.Of == store.StreamTransactions) != m.Records || c.Reason == store.ChangePruned || c.Number <= m.Change {
			continue
		}
		if c.Reason != store.ChangeRedacted && !m.Records && floor > m.CompleteFrom {
			c.From = max(c.From, floor)
		}
		if c.Reason == store.ChangeRepaired {
			c.To = max(c.To, m.To)
		}
		if c.From < min(c.To, m.To) && c.To > m.From {
			changed = &state.Changes[i]
		}
	}
	return changed
}

// firstGap is the first range up to an offset that no manifest is of, or an outdated one.
func firstGap(done, outdated []Manifest, through ledger.Offset) ledger.Range {
	var end ledger.Offset
	for i := range done {
		switch {
		case done[i].From > end:
			return ledger.Range{From: end, To: max(end, min(done[i].From, through))}
		case among(outdated, done[i]):
			return ledger.Range{From: end, To: max(end, min(done[i].To, through))}
		}
		end = done[i].To
	}
	return ledger.Range{From: end, To: max(end, through)}
}

// among reports whether a list has a manifest of the same range.
func among(manifests []Manifest, m Manifest) bool {
	return slices.ContainsFunc(manifests, func(other Manifest) bool { return other.From == m.From })
}
