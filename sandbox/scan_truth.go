package sandbox

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
)

// historyRelations are the relations of the transaction history that the truth has rows of.
var historyRelations = []string{
	"transactions", "transfers", "transfer_receivers", "balance_changes", "mints", "taps", "aborted_transfer_instructions",
	"unknown_transactions",
}

// HistoryRelations returns the names of the relations of the transaction history that the truth has rows of.
func HistoryRelations() []string { return slices.Clone(historyRelations) }

// Truth returns what the relations of [HistoryRelations] must hold after a database has read everything that is served
// now. Rows are in the service's order, with seq from 1. They come from the ledger's decisions, so they ignore
// ScanOptions.Rewrite.
func (s *Scan) Truth() map[string][]Row {
	return s.historyTruth(s.form(), nil)
}

// DerivedTruth returns what they must hold of a pair of schemas that has read all updates of the network. It is what
// Truth returns, but for what can't be derived, and for what the service does not know better (docs/sql.md).
func (s *Scan) DerivedTruth() map[string][]Row {
	form := s.form()
	form.changes = true
	return s.historyTruth(form, s.network())
}

func (s *Scan) historyTruth(form recordForm, derived *networkView) map[string][]Row {
	v, served := s.now()
	t := &historyTruth{view: v, form: form, derived: derived, rows: map[string][]Row{}}
	for _, relation := range historyRelations {
		t.rows[relation] = []Row{}
	}
	for i, number := range served {
		t.record(int64(i)+1, int(number))
	}
	return t.rows
}

// historyTruth builds the truth from the generator's decisions.
type historyTruth struct {
	*view
	form    recordForm
	derived *networkView // nil: as the service serves records
	rows    map[string][]Row
}

func (t *historyTruth) add(relation string, r Row) { t.rows[relation] = append(t.rows[relation], r) }

func decimal(amount int64) json.Number { return json.Number(units(amount)) }

// recordKind returns the kind of a movement's record, as in the database.
func (v *view) recordKind(number int, f recordForm) string {
	kinds := map[string]string{"transfer": "transfer", "mint": "mint", "devnet_tap": "tap",
		"abort_transfer_instruction": "abort_transfer_instruction"}
	kind, known := kinds[v.movements[number].kind.typeOf()]
	if !known || v.hasSecondPart(number, f) || !v.hasDate(number, f) {
		return "unknown"
	}
	return kind
}

// derivedBy is the version of the rules that derived records follow.
const derivedBy = 1

// record adds the rows of a movement's record.
func (t *historyTruth) record(seq int64, n int) {
	m := &t.movements[n]
	u := &t.updates[m.update]
	of := func(r Row) Row {
		r["seq"], r["event_id"], r["source"] = number(seq), t.eventID(m), "transactions"
		if t.derived != nil {
			r["event_id"], r["source"] = t.derived.derivedID(m), "updates"
		}
		return r
	}
	dated := func(r Row) Row {
		if r["date"] = nil; t.hasDate(n, t.form) {
			r["date"] = instant(u.effective())
		}
		return of(r)
	}
	rounded := func(r Row) Row {
		switch r["round"] = nil; {
		case t.derived != nil:
			r["round"] = number(roundOf(u))
			if m.kind == moveWithdraw || m.kind == moveReject {
				r["round"] = nil
			}
		case m.kind.hasRound():
			r["round"] = number(t.recordRound(n))
		}
		return dated(r)
	}
	kind := t.recordKind(n, t.form)
	row := rounded(Row{
		"update_id": t.updateIDOf(int(m.update)), "kind": kind, "domain_id": t.synchronizers[u.synchronizer],
		"offset_text": t.form.offset(u),
	})
	row["rules"], row["update_offset"] = nil, nil
	if t.derived != nil {
		row["offset_text"], row["rules"] = nil, number(derivedBy)
		row["update_offset"] = number(t.derived.offset(int(m.update)))
	}
	t.add("transactions", row)
	switch first := t.firstOf(m); kind {
	case "mint", "tap":
		c := &t.contracts[first]
		t.add(kind+"s", rounded(Row{"owner": t.parties[c.parties[1]], "amount": decimal(c.amount)}))
	case "abort_transfer_instruction":
		r := dated(Row{"instruction_cid": string(t.contractID(nil, first)), "abort_kind": nil})
		if !t.form.bare {
			r["abort_kind"] = m.kind.abortKind()
		}
		t.add("aborted_transfer_instructions", r)
	case "unknown":
		t.add("unknown_transactions", of(Row{"raw": value(t.appendRecord(nil, n, t.form))}))
	default:
		t.transfer(t.updateIDOf(int(m.update)), t.transferOf(n), of, rounded)
	}
}

func (t *historyTruth) transfer(updateID string, x transfer, of, rounded func(Row) Row) {
	r := rounded(Row{
		"update_id": updateID, "sender": t.parties[x.sender], "sender_change_fee": decimal(x.deal.changeFee),
		"sender_change_amount": decimal(x.deal.change),
		"sender_fee":           decimal(x.deal.senderFee), "holding_fees": decimal(x.holdingFees),
		"input_amount": decimal(x.input),
		"description":  nil, "transfer_kind": nil, "instruction_receiver": nil, "instruction_amount": nil,
		"instruction_cid": nil,
	})
	for i, n := range x.deal.rewards {
		if r[rewardFields[i]] = nil; n >= 0 {
			r[rewardFields[i]] = decimal(n)
		}
	}
	if x.descriptionJSON != "" {
		r["description"] = value([]byte(x.descriptionJSON))
	}
	if x.kind != "" && !t.form.bare {
		r["transfer_kind"] = x.kind
	}
	if x.offeredTo >= 0 {
		r["instruction_receiver"], r["instruction_amount"] = t.parties[x.offeredTo], decimal(x.offered)
	}
	if x.instruction >= 0 {
		r["instruction_cid"] = string(t.contractID(nil, x.instruction))
	}
	if t.derived != nil {
		r["input_amount"] = decimal(x.consumed)
	}
	t.add("transfers", r)
	for i, to := range x.receivers {
		t.add("transfer_receivers", of(Row{
			"ordinal": number(i), "party": t.parties[to.party], "amount": decimal(to.amount), "receiver_fee": decimal(to.fee),
			"net_amount": decimal(to.amount - to.fee),
		}))
	}
	if !t.form.changes {
		return
	}
	for i, b := range x.changes {
		r := rounded(Row{
			"ordinal": number(i), "party": t.parties[b.party], "change_to_initial_amount_as_of_round_zero": decimal(b.initial),
			"change_to_holding_fees_rate": decimal(b.rate),
		})
		delete(r, "source")
		t.add("balance_changes", r)
	}
}

// derivedID returns the event id of the record that follows from a movement.
func (v *networkView) derivedID(m *movement) string {
	nodes, _ := v.nodes(int(m.update))
	for n := range nodes {
		if b := nodes[n].names; b != nil && b.first == m.first {
			return fmt.Sprintf("#%s:%d", v.updateIDOf(int(m.update)), n)
		}
	}
	panic(fmt.Sprintf("sandbox: the DSO does not see movement of update %d", m.update))
}

// ReportedBalances returns what the balance changes of the transfers in rounds up to and including one come to, by
// party, for the parties that have any: Σ initial − Σ rate × (round + 1), as decimals, or an empty text where that is
// negative. It is nil where no balance changes are sent, or a record up to the round, or one without a round, is of an
// unknown kind and so may be a transfer.
func (s *Scan) ReportedBalances(round int64) map[string]string {
	if !s.opts.BalanceChanges {
		return nil
	}
	v, served := s.now()
	form := s.form()
	sums := map[uint16]*big.Int{}
	for _, number := range served {
		m := &v.movements[number]
		kind := v.recordKind(int(number), form)
		switch later := m.kind.hasRound() && v.recordRound(int(number)) > round; {
		case kind == "unknown" && !later:
			return nil
		case kind != "transfer" || later:
			continue
		}
		for _, b := range v.transferOf(int(number)).changes {
			if sums[b.party] == nil {
				sums[b.party] = new(big.Int)
			}
			lost := new(big.Int).Mul(big.NewInt(b.rate), big.NewInt(round+1))
			sums[b.party].Add(sums[b.party], lost.Sub(big.NewInt(b.initial), lost))
		}
	}
	balances := map[string]string{}
	for party, sum := range sums {
		balances[v.parties[party]] = ""
		if sum.Sign() >= 0 {
			balances[v.parties[party]] = bigUnits(sum)
		}
	}
	return balances
}

// bigUnits writes an amount of units with ten digits after the point.
func bigUnits(n *big.Int) string { return new(big.Rat).SetFrac(n, big.NewInt(unit)).FloatString(10) }

// MiningRounds returns what the relation mining_rounds of a network's pair of schemas must hold, in the order of
// rounds.
func (s *Scan) MiningRounds() []Row {
	v := s.network()
	rows := []Row{}
	for i := range v.updates {
		if v.updates[i].kind != kindTransaction {
			continue
		}
		nodes, _ := v.nodes(i)
		for n := range nodes {
			c := &v.contracts[nodes[n].contract]
			if nodes[n].as != nil || c.kind/2 != templateOpenRound {
				continue
			}
			opens := opensAt(v.updates[i].effective())
			rows = append(rows, Row{
				"round": number(c.amount), "amulet_price": json.Number(amuletPrice(c.amount)), "opens_at": instant(opens),
				"target_closes_at": instant(opens + 2*roundMicros),
				"contract_id":      v.id(nodes[n].contract), "ledger_offset": number(v.offset(i)), "node_id": number(n),
				"record_time": instant(v.updates[i].record),
			})
		}
	}
	return rows
}
