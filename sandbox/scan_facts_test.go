package sandbox

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func rat(t *testing.T, v any) *big.Rat {
	t.Helper()
	text, ok := v.(string)
	require.True(t, ok, "%v is no text", v)
	require.Regexp(t, `^-?[0-9]+(\.[0-9]{10}|(\.[0-9]+)?E-[0-9]+)$`, text)
	n, ok := new(big.Rat).SetString(text)
	require.True(t, ok)
	return n
}

// served is what a participant tells of a ledger, to be compared with what Scan tells of it.
type served struct {
	updates  map[string]map[string]any // by update id
	created  map[string]map[string]any // by contract id
	archived map[string]bool
}

func serveAll(t *testing.T, l *Ledger) served {
	t.Helper()
	s := served{updates: map[string]map[string]any{}, created: map[string]map[string]any{}, archived: map[string]bool{}}
	for _, u := range serve(t, l, ServerOptions{}).collect(Scope{Shape: LedgerEffects}, 0, l.End()) {
		kind, value := updateOf(t, u)
		if kind != "Transaction" {
			continue
		}
		s.updates[value["updateId"].(string)] = value
		for _, raw := range value["events"].([]any) {
			name, e := variant(t, raw)
			if name == "CreatedEvent" {
				s.created[e["contractId"].(string)] = e
			} else if e["consuming"] == true {
				s.archived[e["contractId"].(string)] = true
			}
		}
	}
	return s
}

// amulet is what a created event says of an amulet, locked or not; ok is false for anything else.
func amulet(e map[string]any) (owner string, amount map[string]any, ok bool) {
	payload, ok := e["createArgument"].(map[string]any)
	if !ok {
		return "", nil, false
	}
	switch template := e["templateId"].(string); {
	case strings.HasSuffix(template, ":Splice.Amulet:LockedAmulet"):
		payload = payload["amulet"].(map[string]any)
	case !strings.HasSuffix(template, ":Splice.Amulet:Amulet"):
		return "", nil, false
	}
	return payload["owner"].(string), payload["amount"].(map[string]any), true
}

// below are the events that an event id names: a creation, or an exercise with all its descendants.
func (s *served) below(t *testing.T, eventID string) (update map[string]any, events []map[string]any) {
	t.Helper()
	id, node, found := strings.Cut(strings.TrimPrefix(eventID, "#"), ":")
	require.True(t, found)
	update = s.updates[id]
	require.NotNil(t, update, "there is no update %s", id)
	first, err := strconv.Atoi(node)
	require.NoError(t, err)
	last := first
	for _, raw := range update["events"].([]any) {
		_, e := variant(t, raw)
		n := int(e["nodeId"].(float64))
		if end, ok := e["lastDescendantNodeId"].(float64); ok && n == first {
			last = int(end)
		}
		if n >= first && n <= last {
			events = append(events, e)
		}
	}
	require.NotEmpty(t, events)
	require.EqualValues(t, first, events[0]["nodeId"], "there is no event %s", eventID)
	return update, events
}

// sums are totals by what they are of.
type sums map[string]*big.Rat

func (s sums) add(of string, n *big.Rat) {
	if s[of] == nil {
		s[of] = new(big.Rat)
	}
	s[of].Add(s[of], n)
}

// nonzero are the sums as text, without those that came to nothing.
func (s sums) nonzero() map[string]string {
	out := map[string]string{}
	for of, n := range s {
		if n.Sign() != 0 {
			out[of] = n.FloatString(10)
		}
	}
	return out
}

// Whatever the ledger and the history both tell, they tell alike: the update, its time and its synchronizer, and, of
// each event that records are named after, who put in how much and who got how much.
func TestHistoryAgreesWithTheLedger(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 31}, 900)
	s := serveAll(t, l)
	c, _ := serveScan(t, l, ScanOptions{BalanceChanges: true, ExtraKinds: true})
	told, changes := map[string]sums{}, map[string]sums{}
	records := c.post(pathTransactions, `{"page_size":1000}`).records()
	require.Greater(t, len(records), 150)
	for _, r := range records {
		id := idOf(r)
		update, events := s.below(t, id)
		require.Equal(t, update["effectiveAt"], r["date"])
		require.Equal(t, update["synchronizerId"], r["domain_id"])
		if told[id] == nil {
			told[id], changes[id] = sums{}, sums{}
		}
		switch r["transaction_type"] {
		case "mint", "devnet_tap":
			o := r[strings.TrimPrefix(r["transaction_type"].(string), "devnet_")].(map[string]any)
			told[id].add("out "+o["amulet_owner"].(string), rat(t, o["amulet_amount"]))
		case "expire":
			o := r["expire"].(map[string]any)
			told[id].add("in "+o["amulet_owner"].(string), rat(t, o["amulet_amount"]))
		case "transfer":
			addTransfer(t, &s, r, told[id])
			for _, raw := range r["transfer"].(map[string]any)["balance_changes"].([]any) {
				b := raw.(map[string]any)
				changes[id].add("initial "+b["party"].(string), rat(t, b["change_to_initial_amount_as_of_round_zero"]))
				changes[id].add("rate "+b["party"].(string), rat(t, b["change_to_holding_fees_rate"]))
			}
		case "abort_transfer_instruction":
			cid := r["abort_transfer_instruction"].(map[string]any)["transfer_instruction_cid"]
			require.Equal(t, events[0]["contractId"], cid)
			require.Contains(t, strings.ToLower(events[0]["choice"].(string)), r["abort_transfer_instruction"].(map[string]any)["abort_kind"])
			delete(told, id)
			continue
		default:
			require.Equal(t, "unlock", r["transaction_type"])
			checkUnlocked(t, &s, events)
			delete(told, id)
			continue
		}
		if _, hasRound := r["round"]; r["transaction_type"] == "mint" {
			require.False(t, hasRound)
		} else if r["round"].(float64) > 0 { // 0: perhaps not told
			for _, e := range events { // amulets are of the round that creates them
				if _, amount, ok := amulet(e); ok {
					require.Equal(t, amount["createdAt"].(map[string]any)["number"], strconv.Itoa(int(r["round"].(float64))))
				}
			}
		}
	}
	for id, want := range told {
		_, events := s.below(t, id)
		seen, moved := sums{}, sums{}
		for _, e := range events {
			sign, side := big.NewRat(1, 1), "out "
			if e["consuming"] == true {
				sign, side = big.NewRat(-1, 1), "in "
				e = s.created[e["contractId"].(string)]
			}
			owner, amount, ok := amulet(e)
			if !ok {
				continue
			}
			initial := rat(t, amount["initialAmount"])
			rate := rat(t, amount["ratePerRound"].(map[string]any)["rate"])
			round, ok := new(big.Rat).SetString(amount["createdAt"].(map[string]any)["number"].(string))
			require.True(t, ok)
			seen.add(side+owner, initial)
			asOfZero := new(big.Rat).Add(initial, new(big.Rat).Mul(rate, round))
			moved.add("initial "+owner, asOfZero.Mul(asOfZero, sign))
			moved.add("rate "+owner, new(big.Rat).Mul(rate, sign))
		}
		require.Equal(t, seen.nonzero(), want.nonzero(), id)
		if len(changes[id]) > 0 {
			require.Equal(t, moved.nonzero(), changes[id].nonzero(), id)
		}
	}
}

// checkUnlocked checks that an unlocked amulet is worth what the locked one was, less its holding fees.
func checkUnlocked(t *testing.T, s *served, events []map[string]any) {
	t.Helper()
	require.Len(t, events, 2)
	owner, was, ok := amulet(s.created[events[0]["contractId"].(string)])
	require.True(t, ok)
	to, is, ok := amulet(events[1])
	require.True(t, ok)
	require.Equal(t, owner, to)
	require.Equal(t, was["initialAmount"], is["initialAmount"], "no fee is due")
}

// addTransfer adds what a transfer puts in and pays out, and checks that it balances and what it says of an
// instruction.
func addTransfer(t *testing.T, s *served, r map[string]any, told sums) {
	t.Helper()
	transfer := r["transfer"].(map[string]any)
	from := transfer["sender"].(map[string]any)
	sender := from["party"].(string)
	input := rat(t, from["input_amulet_amount"])
	if transfer["transfer_kind"] == "create_transfer_instruction" && input.Sign() == 0 { // not told
		input = rat(t, transfer["transferInstructionAmount"])
	}
	told.add("in "+sender, input)
	told.add("out "+sender, rat(t, from["sender_change_amount"]))
	left := new(big.Rat).Set(input)
	for _, name := range rewardFields[:3] { // faucets are part of what validators get
		left.Add(left, rat(t, from[name]))
	}
	for _, name := range []string{"holding_fees", "sender_fee", "sender_change_fee", "sender_change_amount"} {
		require.GreaterOrEqual(t, rat(t, from[name]).Sign(), 0)
		left.Sub(left, rat(t, from[name]))
	}
	parties := map[string]bool{}
	for _, raw := range transfer["receivers"].([]any) {
		to := raw.(map[string]any)
		require.False(t, parties[to["party"].(string)], "a receiver is told twice")
		parties[to["party"].(string)] = true
		amount := rat(t, to["amount"])
		left.Sub(left, amount)
		told.add("out "+to["party"].(string), amount.Sub(amount, rat(t, to["receiver_fee"])))
	}
	if transfer["transfer_kind"] == "create_transfer_instruction" {
		to := transfer["receivers"].([]any)[0].(map[string]any)
		require.Equal(t, []any{sender, transfer["transferInstructionAmount"]}, []any{to["party"], to["amount"]}, "locked, and still the sender's")
		offer := s.created[transfer["transferInstructionCid"].(string)]["createArgument"].(map[string]any)["transfer"].(map[string]any)
		require.Equal(t, offer["amount"], transfer["transferInstructionAmount"])
		require.Equal(t, offer["receiver"], transfer["transferInstructionReceiver"])
		require.Equal(t, offer["sender"], sender)
	} else if transfer["transfer_kind"] == "transfer_instruction_accept" {
		cid := transfer["transferInstructionCid"].(string)
		require.True(t, s.archived[cid])
		offer := s.created[cid]["createArgument"].(map[string]any)["transfer"].(map[string]any)
		require.True(t, parties[offer["receiver"].(string)])
	} else {
		require.NotContains(t, transfer, "transferInstructionCid")
	}
	require.Zero(t, left.Sign(), "%s does not balance: %s is left", idOf(r), left.FloatString(10))
}

// The reported balance of a party at a round is the sum of the changes that were served, by the formula of the service.
func TestReportedBalancesAreTheSumOfTheChanges(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 32}, 700)
	c, s := serveScan(t, l, ScanOptions{BalanceChanges: true})
	records := c.post(pathTransactions, `{"page_size":1000}`).records()
	last := int64(0)
	for _, r := range records {
		if n, ok := r["round"].(float64); ok {
			last = max(last, int64(n))
		}
	}
	require.Greater(t, last, int64(10))
	for _, round := range []int64{-1, 0, 3, last / 2, last, last + 1000} {
		initial, rate := sums{}, sums{}
		for _, r := range records {
			transfer, ok := r["transfer"].(map[string]any)
			if !ok || int64(r["round"].(float64)) > round {
				continue
			}
			for _, raw := range transfer["balance_changes"].([]any) {
				b := raw.(map[string]any)
				initial.add(b["party"].(string), rat(t, b["change_to_initial_amount_as_of_round_zero"]))
				rate.add(b["party"].(string), rat(t, b["change_to_holding_fees_rate"]))
			}
		}
		want := map[string]string{}
		for party, sum := range initial {
			balance := new(big.Rat).Sub(sum, rate[party].Mul(rate[party], big.NewRat(round+1, 1)))
			want[party] = ""
			if balance.Sign() >= 0 {
				want[party] = balance.FloatString(10)
			}
		}
		require.Equal(t, want, s.ReportedBalances(round))
	}
	require.Empty(t, s.ReportedBalances(-1))
	signs := map[bool]bool{}
	for _, balance := range s.ReportedBalances(last) {
		signs[balance == ""] = true
	}
	require.Len(t, signs, 2, "some are negative, and some are not")
	require.Nil(t, NewScan(l, ScanOptions{}).ReportedBalances(last))
}

// What Holdings says of active contracts is what the snapshot serves of them.
func TestHoldingsAreThoseOfTheSnapshot(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 33}, 800)
	for i := 0; !holdsTwice(l); i++ { // on two synchronizers
		require.Less(t, i, 4000)
		l.Grow(1)
	}
	c := serve(t, l, ServerOptions{})
	middle := l.Offset(400)
	for l.InFlight(middle) {
		middle++
	}
	for name, scope := range map[string]Scope{
		"all": {Interfaces: InterfaceNames()}, "payloads": {}, "some parties": {Parties: l.Parties()[:2], Interfaces: InterfaceNames()},
		"views": {Interfaces: InterfaceNames()[ifaceTokenHolding:], InterfacesOnly: true},
	} {
		for _, at := range []int64{middle, l.End()} {
			want := map[string]map[string]any{}
			for _, entry := range c.entries(scope, at) {
				kind, body := variant(t, entry["contractEntry"])
				if kind != "JsActiveContract" {
					continue
				}
				e := body["createdEvent"].(map[string]any)
				if h := holdingOf(t, e); h != nil && (want[h["contract_id"].(string)] == nil || want[h["contract_id"].(string)]["activated_offset"].(int64) < h["activated_offset"].(int64)) {
					want[h["contract_id"].(string)] = h
				}
			}
			require.NotEmpty(t, want)
			rows := l.Holdings(scope, at)
			got := map[string]map[string]any{}
			all, locked, contracts := new(big.Rat), new(big.Rat), 0
			for _, r := range rows["holdings"] {
				offset, err := r["activated_offset"].(json.Number).Int64()
				require.NoError(t, err)
				got[r["contract_id"].(string)] = map[string]any{
					"contract_id": r["contract_id"], "activated_offset": offset, "owner": r["owner"], "instrument": r["instrument"], "admin": r["instrument_admin"],
					"amount": r["amount"], "locked": r["locked"], "admin_signed": r["admin_signed"], "round": r["created_round"],
				}
				if n, ok := r["amount"].(json.Number); ok {
					amount, ok := new(big.Rat).SetString(n.String())
					require.True(t, ok)
					all.Add(all, amount)
					if r["locked"] == true {
						locked.Add(locked, amount)
					}
				}
				contracts++
			}
			require.Equal(t, want, got, "%s at %d", name, at)
			require.Len(t, rows["holdings"], len(got))
			for _, r := range rows["holding_totals"] {
				n, err := r["contracts"].(json.Number).Int64()
				require.NoError(t, err)
				contracts -= int(n)
				part := func(column string) *big.Rat {
					text, _ := r[column].(json.Number)
					if r[column] == nil {
						text = "0"
					}
					n, ok := new(big.Rat).SetString(text.String())
					require.True(t, ok, "%s: %v", column, r[column])
					return n
				}
				amount := part("amount")
				require.Zero(t, amount.Cmp(new(big.Rat).Add(part("locked_amount"), part("unlocked_amount"))))
				all.Sub(all, amount)
				locked.Sub(locked, part("locked_amount"))
			}
			require.Zero(t, contracts)
			require.Zero(t, all.Sign(), "the totals come to another sum")
			require.Zero(t, locked.Sign(), "the totals come to another sum")
		}
	}
}

// holdsTwice says whether a holding is active on two synchronizers.
func holdsTwice(l *Ledger) bool {
	v := l.view()
	for i := range v.reassignments {
		r := &v.reassignments[i]
		unassigned, assigned := r.halves(len(v.updates))
		if assigned && !unassigned && v.contracts[r.contract].kind.template().implements(ifaceTokenHolding) && v.active(&v.activations[r.to], len(v.updates)) {
			return true
		}
	}
	return false
}

// holdingOf is what a created event says of a holding, or nil.
func holdingOf(t *testing.T, e map[string]any) map[string]any {
	t.Helper()
	h := map[string]any{
		"contract_id": e["contractId"], "activated_offset": int64(e["offset"].(float64)), "owner": nil, "instrument": nil, "admin": nil,
		"amount": nil, "locked": nil, "admin_signed": false, "round": nil,
	}
	isAmulet := strings.HasSuffix(e["templateId"].(string), ":Splice.Amulet:Amulet") || strings.HasSuffix(e["templateId"].(string), ":Splice.Amulet:LockedAmulet")
	fill := func(owner, instrument, admin, amount any, locked bool) {
		h["owner"], h["instrument"], h["admin"], h["amount"], h["locked"] = owner, instrument, admin, json.Number(rat(t, amount).FloatString(10)), locked
		for _, signer := range e["signatories"].([]any) {
			h["admin_signed"] = h["admin_signed"] == true || signer == admin
		}
	}
	shown := false
	for _, raw := range e["interfaceViews"].([]any) {
		v := raw.(map[string]any)
		value, ok := v["viewValue"].(map[string]any)
		if !ok || !strings.HasSuffix(v["interfaceId"].(string), ":Splice.Api.Token.HoldingV1:Holding") {
			continue
		}
		shown = true
		instrument := value["instrumentId"].(map[string]any)
		fill(value["owner"], instrument["id"], instrument["admin"], value["amount"], value["lock"] != nil)
		if isAmulet {
			h["round"] = json.Number(value["meta"].(map[string]any)["values"].(map[string]any)["amulet.splice.lfdecentralizedtrust.org/created-in-round"].(string))
		}
	}
	if isAmulet && e["createArgument"] != nil {
		payload := e["createArgument"].(map[string]any)
		locked := payload["lock"] != nil
		owner, amount, ok := amulet(e)
		require.True(t, ok)
		if locked {
			payload = payload["amulet"].(map[string]any)
		}
		before := h["owner"]
		fill(owner, amuletName, payload["dso"], amount["initialAmount"], locked)
		require.True(t, before == nil || before == h["owner"])
		h["round"] = json.Number(amount["createdAt"].(map[string]any)["number"].(string))
	}
	if !isAmulet && !shown {
		return nil
	}
	return h
}
