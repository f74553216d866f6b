package ledger

import (
	"cmp"
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// The parts of Splice's contracts, arguments and results that records are derived from.
type (
	roundNumber struct {
		Number string `json:"number"`
	}
	metadata struct {
		Values map[string]string `json:"values"`
	}
	transferArgument struct {
		Transfer struct {
			Sender  string `json:"sender"`
			Outputs []struct {
				Receiver         string   `json:"receiver"`
				ReceiverFeeRatio exactSum `json:"receiverFeeRatio"`
				Amount           exactSum `json:"amount"`
			} `json:"outputs"`
		} `json:"transfer"`
	}
	transferResult struct {
		Round          roundNumber `json:"round"`
		CreatedAmulets []struct {
			Value string `json:"value"`
		} `json:"createdAmulets"`
		Summary *struct {
			InputAppReward       *exactSum   `json:"inputAppRewardAmount"`
			InputValidatorReward *exactSum   `json:"inputValidatorRewardAmount"`
			InputSVReward        *exactSum   `json:"inputSvRewardAmount"`
			InputFaucet          *exactSum   `json:"inputValidatorFaucetAmount"`
			InputAmulet          *exactSum   `json:"inputAmuletAmount"`
			BalanceChanges       [][2]change `json:"balanceChanges"`
			HoldingFees          *exactSum   `json:"holdingFees"`
			OutputFees           []exactSum  `json:"outputFees"`
			ChangeFee            *exactSum   `json:"senderChangeFee"`
			ChangeAmount         *exactSum   `json:"senderChangeAmount"`
		} `json:"summary"`
	}
	sendArgument struct {
		Sender      account  `json:"sender"`
		Amount      exactSum `json:"amount"`
		Description *string  `json:"description"`
	}
	sendResult struct {
		Result transferResult `json:"result"`
		Meta   metadata       `json:"meta"`
	}
	standardTransfer struct {
		Sender     account  `json:"sender"`
		Receiver   account  `json:"receiver"`
		Amount     exactSum `json:"amount"`
		Instrument struct {
			Admin string `json:"admin"`
		} `json:"instrumentId"`
		Meta metadata `json:"meta"`
	}
	instructionResult struct {
		Output struct {
			Tag   string `json:"tag"`
			Value struct {
				Instruction string   `json:"transferInstructionCid"`
				Receivers   []string `json:"receiverHoldingCids"`
			} `json:"value"`
		} `json:"output"`
		Receivers []string `json:"receiverHoldingCids"` // of an allocation
		Meta      metadata `json:"meta"`
	}
	amuletPayload struct {
		Owner  string `json:"owner"`
		Amount struct {
			InitialAmount exactSum    `json:"initialAmount"`
			CreatedAt     roundNumber `json:"createdAt"`
			RatePerRound  struct {
				Rate exactSum `json:"rate"`
			} `json:"ratePerRound"`
		} `json:"amount"`
	}
)

// change is one half of an entry of balanceChanges: the party, or what changes.
type change struct {
	Party   string
	Initial exactSum `json:"changeToInitialAmountAsOfRoundZero"`
	Rate    exactSum `json:"changeToHoldingFeesRate"`
}

func (c *change) UnmarshalJSON(text []byte) error {
	if strings.HasPrefix(string(text), `"`) {
		return json.Unmarshal(text, &c.Party)
	}
	type plain change
	return json.Unmarshal(text, (*plain)(c))
}

// account is an account of the token standard, as its owner: in V1 a party, in V2 a record with an optional owner.
type account string

// of returns the owner of an account of an instrument. An account without owner belongs to the instrument's
// administrator.
func (a account) of(admin string) string {
	return cmp.Or(string(a), admin)
}

func (a *account) UnmarshalJSON(text []byte) error {
	if strings.HasPrefix(string(text), `"`) {
		return json.Unmarshal(text, (*string)(a))
	}
	var v2 struct {
		Owner *string `json:"owner"`
	}
	err := json.Unmarshal(text, &v2)
	if v2.Owner != nil {
		*a = account(*v2.Owner)
	}
	return err
}

// exactSum is a decimal, without an exponent. Its zero value means that it is not known.
type exactSum struct{ text string }

func (s *exactSum) UnmarshalJSON(text []byte) error {
	var written string
	if err := json.Unmarshal(text, &written); err != nil {
		return err
	}
	d, err := ParseDecimal(written)
	if err != nil {
		return err
	}
	s.text = string(d.Plain())
	return nil
}

func (s exactSum) known() bool { return s.text != "" }

// rat returns the number for arithmetic.
func (s exactSum) rat() *big.Rat {
	r, _ := new(big.Rat).SetString(s.text) // a decimal
	return r
}

const scaleOfDecimals = 10 // digits after the point

func sumOf(r *big.Rat) exactSum { return exactSum{r.FloatString(scaleOfDecimals)} }

func (s exactSum) value() Decimal { return Decimal(s.text) }

func (s exactSum) optional() *Decimal {
	d := s.value()
	return &d
}

func optionalSum(s *exactSum) *Decimal {
	if s == nil {
		return nil
	}
	return s.optional()
}

var errIncomplete = errors.New("a part is missing")

func (n roundNumber) number() (*int64, error) {
	v, err := strconv.ParseInt(n.Number, 10, 64)
	return &v, err
}

// timesRounded multiplies as Daml's decimals do: to ten digits, half to even.
func timesRounded(a, b *big.Rat) *big.Rat {
	scaled := new(big.Rat).Mul(a, b)
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(scaleOfDecimals), nil)
	scaled.Mul(scaled, new(big.Rat).SetInt(unit))
	whole, rest := new(big.Int).QuoRem(scaled.Num(), scaled.Denom(), new(big.Int))
	twice := rest.Abs(rest).Lsh(rest, 1)
	if c := twice.Cmp(scaled.Denom()); c > 0 || c == 0 && whole.Bit(0) == 1 {
		whole.Add(whole, big.NewInt(int64(scaled.Sign())))
	}
	return new(big.Rat).SetFrac(whole, unit)
}

// transfer returns the record of e, an exercise of AmuletRules_Transfer, with the event id of the exercise as.
func (u *TransferUpdate) transfer(e, as *TransferExercise) (Record, error) {
	t := u.record(as, RecordTransfer, "transfer")
	var argument transferArgument
	var result transferResult
	if err := errors.Join(json.Unmarshal(e.Argument, &argument), json.Unmarshal(e.Result, &result)); err != nil {
		return t, err
	}
	if err := summed(&t, argument.Transfer.Sender, &result); err != nil {
		return t, err
	}
	outputs, fees := argument.Transfer.Outputs, result.Summary.OutputFees
	if len(fees) != len(outputs) {
		return t, errIncomplete
	}
	senderFee, receiverFees := new(big.Rat), map[string]*big.Rat{}
	amounts := map[string]*big.Rat{}
	for i, o := range outputs {
		if !o.Amount.known() || !o.ReceiverFeeRatio.known() || o.Receiver == "" {
			return t, errIncomplete
		}
		if amounts[o.Receiver] == nil {
			amounts[o.Receiver], receiverFees[o.Receiver] = new(big.Rat), new(big.Rat)
			t.Transfer.Receivers = append(t.Transfer.Receivers, Receiver{Party: o.Receiver})
		}
		amounts[o.Receiver].Add(amounts[o.Receiver], o.Amount.rat())
		receiverFees[o.Receiver].Add(receiverFees[o.Receiver], timesRounded(fees[i].rat(), o.ReceiverFeeRatio.rat()))
		senderFee.Add(senderFee, timesRounded(fees[i].rat(), new(big.Rat).Sub(big.NewRat(1, 1), o.ReceiverFeeRatio.rat())))
	}
	for i := range t.Transfer.Receivers {
		r := &t.Transfer.Receivers[i]
		r.Amount, r.Fee = sumOf(amounts[r.Party]).value(), sumOf(receiverFees[r.Party]).optional()
	}
	t.Transfer.Sender.Fee = sumOf(senderFee).optional()
	return t, nil
}

// summed fills the record of a transfer from the summary in its result.
func summed(t *Record, sender string, r *transferResult) (err error) {
	s := r.Summary
	if s == nil || sender == "" || s.InputAmulet == nil || s.HoldingFees == nil {
		return errIncomplete
	}
	if t.Round, err = r.Round.number(); err != nil {
		return err
	}
	t.Transfer = &Transfer{Receivers: []Receiver{}, BalanceChanges: []BalanceChange{}, Sender: Sender{
		Party: sender, ChangeFee: optionalSum(s.ChangeFee), ChangeAmount: optionalSum(s.ChangeAmount),
		HoldingFees: s.HoldingFees.optional(),
		InputAmount: s.InputAmulet.optional(), InputAppRewardAmount: optionalSum(s.InputAppReward),
		InputValidatorRewardAmount: optionalSum(s.InputValidatorReward), InputSVRewardAmount: optionalSum(s.InputSVReward),
		InputValidatorFaucetAmount: optionalSum(s.InputFaucet),
	}}
	for _, c := range s.BalanceChanges {
		if c[0].Party == "" || !c[1].Initial.known() || !c[1].Rate.known() {
			return errIncomplete
		}
		t.Transfer.BalanceChanges = append(t.Transfer.BalanceChanges, BalanceChange{Party: c[0].Party,
			InitialAmount: c[1].Initial.value(), HoldingFeesRate: c[1].Rate.value()})
	}
	return nil
}

// send returns the record of a transfer to a receiver that agreed beforehand.
func (u *TransferUpdate) send(i int) (t Record, err error) {
	e := &u.Exercises[i]
	var argument sendArgument
	var result sendResult
	if err := errors.Join(json.Unmarshal(e.Argument, &argument), json.Unmarshal(e.Result, &result)); err != nil {
		return t, err
	}
	if inner := u.below(i, ruleTransfer); inner >= 0 {
		t, err = u.transfer(&u.Exercises[inner], e)
	} else {
		t, err = u.sent(e, &argument, &result)
	}
	if err != nil {
		return t, err
	}
	kind := "preapproval_send"
	t.Transfer.Kind, t.Transfer.Description = &kind, argument.Description
	if e.Choice == "TransferPreapproval_SendV2" {
		t.Transfer.Description = reasonOf(result.Meta)
	}
	return t, nil
}

// sent returns the record of a transfer without an exercise of AmuletRules_Transfer. Its own result sums it up, but
// names no receiver: that is the owner of the amulet that it creates.
func (u *TransferUpdate) sent(e *TransferExercise, argument *sendArgument, result *sendResult) (Record, error) {
	t := u.record(e, RecordTransfer, "transfer")
	if err := summed(&t, string(argument.Sender), &result.Result); err != nil {
		return t, err
	}
	if len(result.Result.CreatedAmulets) == 0 || !argument.Amount.known() {
		return t, errIncomplete
	}
	a, err := u.createdAmulet(result.Result.CreatedAmulets[0].Value)
	if err != nil {
		return t, err
	}
	fees := new(big.Rat)
	for _, fee := range result.Result.Summary.OutputFees {
		fees.Add(fees, fee.rat())
	}
	t.Transfer.Sender.Fee = sumOf(fees).optional()
	t.Transfer.Receivers = append(t.Transfer.Receivers, Receiver{Party: a.Owner, Amount: argument.Amount.value(),
		Fee: sumOf(new(big.Rat)).optional()})
	return t, nil
}

func reasonOf(meta metadata) *string {
	if reason, ok := meta.Values[metaReason]; ok {
		return &reason
	}
	return nil
}

// factory returns the record of a transfer that was begun through the token standard's factory.
func (u *TransferUpdate) factory(i int) (records []Record, explained bool, err error) {
	e := &u.Exercises[i]
	var argument struct {
		Transfer standardTransfer `json:"transfer"`
	}
	var result instructionResult
	if err := errors.Join(json.Unmarshal(e.Argument, &argument), json.Unmarshal(e.Result, &result)); err != nil {
		return nil, true, err
	}
	x, output := &argument.Transfer, &result.Output
	sender, to := x.Sender.of(x.Instrument.Admin), x.Receiver.of(x.Instrument.Admin)
	switch inner := u.below(i, ruleTransfer, ruleSend); {
	// to oneself, or by both
	case output.Tag == "TransferInstructionResult_Pending" || output.Tag == "TransferInstructionResult_Completed" &&
		inner < 0:
		receiver := to
		if output.Tag == "TransferInstructionResult_Pending" {
			if receiver = sender; !x.Amount.known() { // who locks it
				return nil, true, errIncomplete
			}
		}
		t, err := u.moved(i, sender, receiver, x.Amount)
		if err != nil {
			return nil, true, err
		}
		t.Transfer.Description = reasonOf(x.Meta)
		if output.Tag == "TransferInstructionResult_Pending" {
			kind := "create_transfer_instruction"
			t.Transfer.Kind, t.Transfer.InstructionReceiver, t.Transfer.InstructionAmount = &kind, &to, x.Amount.optional()
			t.Transfer.InstructionCID = &output.Value.Instruction
		}
		return []Record{t}, true, nil
	case output.Tag == "TransferInstructionResult_Completed":
		return u.explain(inner)
	}
	return nil, false, nil
}

// accepted returns the record of a choice that settles an offered transfer or an allocation.
func (u *TransferUpdate) accepted(i int, kind string) (t Record, err error) {
	e := &u.Exercises[i]
	var result instructionResult
	if err := json.Unmarshal(e.Result, &result); err != nil {
		return t, err
	}
	receivers := slices.Concat(result.Output.Value.Receivers, result.Receivers)
	if len(receivers) == 0 {
		return t, errIncomplete
	}
	a, err := u.createdAmulet(receivers[0])
	if err != nil {
		return t, err
	}
	sender := result.Meta.Values[metaSender]
	if sender == "" && e.Contract != nil {
		var contract struct {
			Transfer   standardTransfer `json:"transfer"`
			Allocation struct {
				Leg standardTransfer `json:"transferLeg"`
			} `json:"allocation"`
		}
		if err := json.Unmarshal(e.Contract, &contract); err != nil {
			return t, err
		}
		if sender = string(contract.Transfer.Sender); sender == "" {
			sender = string(contract.Allocation.Leg.Sender)
		}
	}
	if t, err = u.moved(i, sender, a.Owner, a.Amount.InitialAmount); err != nil {
		return t, err
	}
	if kind != "" {
		t.Transfer.Kind, t.Transfer.InstructionCID = &kind, &e.ContractID
	}
	return t, nil
}

// allocated returns the record of an allocation of V1, which locks what is to be sent. The history had none of V2.
func (u *TransferUpdate) allocated(i int) (records []Record, explained bool, err error) {
	var argument struct {
		Allocation struct {
			Leg *standardTransfer `json:"transferLeg"`
		} `json:"allocation"`
	}
	if err := json.Unmarshal(u.Exercises[i].Argument, &argument); err != nil {
		return nil, true, err
	}
	leg := argument.Allocation.Leg
	if leg == nil {
		return nil, true, nil
	}
	t, err := u.moved(i, string(leg.Sender), string(leg.Sender), leg.Amount)
	return []Record{t}, true, err
}

// moved returns the record of a transfer through the token standard. In older releases it is the record of the
// AmuletRules_Transfer below it; else it is computed from the amulets that are archived and created below it.
func (u *TransferUpdate) moved(i int, sender, receiver string, amount exactSum) (Record, error) {
	e := &u.Exercises[i]
	if inner := u.below(i, ruleTransfer); inner >= 0 {
		return u.transfer(&u.Exercises[inner], e)
	}
	t := u.record(e, RecordTransfer, "transfer")
	if sender == "" || receiver == "" || !amount.known() {
		return t, errIncomplete
	}
	zero := func() *Decimal { return sumOf(new(big.Rat)).optional() }
	t.Transfer = &Transfer{
		Sender: Sender{
			Party: sender, ChangeFee: zero(), ChangeAmount: zero(), Fee: zero(), HoldingFees: zero(),
			InputAppRewardAmount:       zero(),
			InputValidatorRewardAmount: zero(), InputSVRewardAmount: zero(),
		},
		Receivers: []Receiver{{Party: receiver, Amount: amount.value(), Fee: zero()}},
	}
	return t, u.count(&t, e)
}

// count computes a transfer's round, input and balance changes from the amulets below an exercise. If the payload of
// one is not known, input and balance changes are left out.
func (u *TransferUpdate) count(t *Record, e *TransferExercise) error {
	type total struct{ initial, rate *big.Rat }
	input, totals, parties := new(big.Rat), map[string]*total{}, []string(nil)
	made := map[string]bool{}
	known := true
	for i := range u.Amulets {
		m := &u.Amulets[i]
		if m.NodeID < e.NodeID || m.NodeID > e.LastDescendant {
			continue
		}
		if m.Created {
			made[m.ContractID] = true
		}
		if m.Payload == nil {
			known = false
			continue
		}
		a, err := m.amulet()
		if err != nil {
			return err
		}
		round, err := a.Amount.CreatedAt.number()
		if err != nil {
			return err
		}
		sign := big.NewRat(-1, 1)
		switch {
		case m.Created:
			sign, t.Round = big.NewRat(1, 1), round
		case !made[m.ContractID]:
			input.Add(input, a.Amount.InitialAmount.rat())
		}
		if totals[a.Owner] == nil {
			totals[a.Owner] = &total{new(big.Rat), new(big.Rat)}
			parties = append(parties, a.Owner)
		}
		rate := a.Amount.RatePerRound.Rate.rat()
		initial := new(big.Rat).Mul(rate, new(big.Rat).SetInt64(*round))
		initial.Add(initial, a.Amount.InitialAmount.rat())
		totals[a.Owner].initial.Add(totals[a.Owner].initial, initial.Mul(initial, sign))
		totals[a.Owner].rate.Add(totals[a.Owner].rate, new(big.Rat).Mul(rate, sign))
	}
	if !known {
		return nil
	}
	t.Transfer.Sender.InputAmount = sumOf(input).optional()
	t.Transfer.BalanceChanges = []BalanceChange{}
	for _, party := range parties {
		t.Transfer.BalanceChanges = append(t.Transfer.BalanceChanges, BalanceChange{
			Party: party, InitialAmount: sumOf(totals[party].initial).value(),
			HoldingFeesRate: sumOf(totals[party].rate).value(),
		})
	}
	return nil
}

func (u *TransferUpdate) createdAmulet(contractID string) (*amuletPayload, error) {
	for i := range u.Amulets {
		if m := &u.Amulets[i]; m.Created && m.ContractID == contractID && m.Payload != nil {
			return m.amulet()
		}
	}
	return nil, errIncomplete
}

// amulet reads the payload of an amulet, or that of the amulet inside a locked one.
func (m *TransferAmulet) amulet() (*amuletPayload, error) {
	var p struct {
		amuletPayload
		Amulet *amuletPayload `json:"amulet"`
	}
	if err := json.Unmarshal(m.Payload, &p); err != nil {
		return nil, err
	}
	a := &p.amuletPayload
	if p.Amulet != nil {
		a = p.Amulet
	}
	if a.Owner == "" || !a.Amount.InitialAmount.known() || !a.Amount.RatePerRound.Rate.known() {
		return nil, errIncomplete
	}
	return a, nil
}
