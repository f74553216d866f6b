package sandbox

import (
	"net/http"
	"slices"
	"time"
)

// pathHoldingsSummary is the path of the sums of holdings (interface.md, "Updates of a network").
const pathHoldingsSummary = "/v1/holdings/summary"

// holdingsSummary implements POST /v1/holdings/summary: what each of some owners held at a snapshot, by initial
// amounts. Who held nothing is not listed.
func (s *Scan) holdingsSummary(w http.ResponseWriter, r *http.Request) {
	v, q, at, ok := s.snapshotAsked(w, r, "owner_party_ids")
	if !ok {
		return
	}
	type sums struct{ locked, unlocked int64 }
	of := map[string]*sums{}
	for _, held := range v.snapshot(v.after(q.migration, at)) {
		c := &v.contracts[held.contract]
		if !c.kind.holdsAmulet() {
			continue
		}
		owner := v.parties[c.parties[1]]
		if of[owner] == nil {
			of[owner] = &sums{}
		}
		if c.kind/2 == templateLockedAmulet {
			of[owner].locked += c.amount
		} else {
			of[owner].unlocked += c.amount
		}
	}
	type summary struct {
		Party    string `json:"party_id"`
		Unlocked string `json:"total_unlocked_coin"`
		Locked   string `json:"total_locked_coin"`
		All      string `json:"total_coin_holdings"`
	}
	list := []summary{}
	for owner, held := range of {
		if slices.Contains(q.owners, owner) {
			list = append(list, summary{owner, units(held.unlocked), units(held.locked), units(held.unlocked + held.locked)})
		}
	}
	writeValue(w, map[string]any{"record_time": time.UnixMicro(at).UTC().Format(time.RFC3339Nano),
		"migration_id": q.migration, "summaries": list})
}
