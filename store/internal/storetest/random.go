package storetest

import (
	"fmt"

	"pgregory.net/rapid"

	"ledgerindexer/ledger"
)

// History is a sequence of updates with few contracts, so that everything happens to each of them.
type History struct {
	Created int
	Updates []ledger.Update
}

// Draw adds random updates.
func (h *History) Draw(t *rapid.T) {
	offset := ledger.Offset(0)
	synchronizers := []string{"sync::1", "sync::2"}
	for range rapid.IntRange(1, 25).Draw(t, "updates") {
		offset += ledger.Offset(rapid.IntRange(1, 3).Draw(t, "gap"))
		u := NewUpdate(offset, rapid.SampledFrom(synchronizers).Draw(t, "synchronizer"))
		nodes := rapid.Permutation([]int32{0, 1, 2, 3, 4, 5}).Draw(t, "nodes")
		for _, node := range nodes[:rapid.IntRange(0, 6).Draw(t, "events")] {
			h.addEvent(t, &u, node)
		}
		h.Updates = append(h.Updates, u)
	}
}

func (h *History) addEvent(t *rapid.T, u *ledger.Update, node int32) {
	contract := fmt.Sprint("unseen", rapid.IntRange(0, 1).Draw(t, "unseen")) // its creation is
	if h.Created > 0 && rapid.IntRange(0, 3).Draw(t, "seen") > 0 {
		contract = fmt.Sprint("c", rapid.IntRange(max(0, h.Created-3), h.Created-1).Draw(t, "contract"))
	}
	other := map[string]string{"sync::1": "sync::2", "sync::2": "sync::1"}[*u.SynchronizerID]
	switch rapid.IntRange(0, 7).Draw(t, "event") {
	case 0, 1: // a contract is created once; what is only witnessed is never active
		c := Creation(node, fmt.Sprint("c", h.Created))
		c.ACSDelta = drawACSDelta(t)
		h.Created++
		u.Created = append(u.Created, c)
	case 2:
		u.Archived = append(u.Archived, Archival(node, contract))
	case 3:
		u.Exercised = append(u.Exercised, Exercise(node, contract, true, drawACSDelta(t)))
	case 4:
		u.Exercised = append(u.Exercised, Exercise(node, contract, false, drawACSDelta(t)))
	case 5, 6:
		Assign(u, node, contract, other, *u.SynchronizerID, 1)
	default:
		Unassign(u, node, contract, *u.SynchronizerID, other, 2)
	}
}

func drawACSDelta(t *rapid.T) *bool {
	return rapid.SampledFrom([]*bool{new(true), new(true), nil, new(false)}).Draw(t, "acs delta")
}

// Batches cuts the history into pages, and the pages into batches.
func (h *History) Batches(t *rapid.T) [][]ledger.Page {
	var batches [][]ledger.Page
	at := ledger.Offset(0)
	for rest := h.Updates; len(rest) > 0; {
		n := rapid.IntRange(1, len(rest)).Draw(t, "page")
		page := ledger.Page{From: at, To: rest[n-1].Offset, Updates: rest[:n]}
		at, rest = page.To, rest[n:]
		if len(batches) > 0 && rapid.Bool().Draw(t, "same batch") {
			batches[len(batches)-1] = append(batches[len(batches)-1], page)
		} else {
			batches = append(batches, []ledger.Page{page})
		}
	}
	return batches
}
