package sandbox

import (
	"encoding/json"
	"slices"
	"strconv"
)

// networkChoice is an exercise as a network's updates show it. A participant of the simulation shows a movement as one
// exercise, of its first amulet. A Scan shows what Splice's models do: a choice of the rules, with the amulets that it
// archives and creates below it.
type networkChoice struct {
	template               *template // nil: one of the rules, which only a network has
	packageID              string    // with a template
	module, entity, choice string    // module and entity without one
	through                string    // id of an interface; empty: none
	consuming              bool
	contract               string
	actor                  uint16
	argument, result       any // marshalled where they are served; nil: of the event

	// the events of the movement that are below it: which is the first, and how many; 0: all from there on; -1: none, it
	// is before that one
	from, over int32
	is         bool // it is the event from itself; else it is around it
	named      bool // the record is named after it; where none is, after the first one
}

// The interface ids that choices of the token standard are made through.
const (
	transferModule = "5d8b1dc9c9a3ef1d6a0eb2ab1ca4ce8a9a2f4a7e3e5b5b4d9bfcf5c3c9a1e001:" +
		"Splice.Api.Token.TransferInstructionV1:"
	throughFactory     = transferModule + "TransferFactory"
	throughInstruction = transferModule + "TransferInstruction"
)

// Contracts of the rules, which are created before the ledger begins.
const (
	contractRules = 1<<30 + iota
	contractFactory
	contractPreapprovals // and the number of the receiver

	contractNames     = 1<<30 + 1<<20 + iota
	contractRequest   // of a subscription
	contractReceiving // an allocation of version 2
)

// name returns the template's name.
func (c *networkChoice) name() (packageName, packageID, module, entity string) {
	if c.template == nil {
		return "splice-amulet", amuletPackages[0], c.module, c.entity
	}
	return c.template.packageName, c.packageID, c.template.module, c.template.entity
}

// choices returns the exercises that a movement is made of in a network, an outer one before those below it; those that
// archive amulets are not among them.
func (v *networkView) choices(number int) []networkChoice {
	list := v.choicesOf(number)
	if len(list) > 0 && !slices.ContainsFunc(list, func(c networkChoice) bool { return c.named }) {
		list[0].named = true
	}
	if m := &v.movements[number]; m.form == formV2 {
		list = append(list, v.logs(m)...)
	}
	return list
}

func (v *networkView) choicesOf(number int) []networkChoice {
	m := &v.movements[number]
	made := v.made(m)
	switch m.kind {
	case moveMint, moveTap:
		c := &v.contracts[made[0]]
		mint := v.rules("AmuletRules_Mint", v.dso, map[string]any{"receiver": v.parties[c.parties[1]],
			"amount": figure(c.amount), "openRound": v.id(contractRules)},
			map[string]any{"amuletSum": map[string]any{"amulet": v.id(made[0]), "amuletPrice": figure(unit / 200),
				"round": v.numbered(m)}})
		if m.kind == moveMint {
			return []networkChoice{mint}
		}
		tap := mint
		tap.choice, tap.actor = "AmuletRules_DevNet_Tap", c.parties[1]
		return []networkChoice{tap, mint}
	case moveWithdraw, moveReject:
		choice := "TransferInstruction_Withdraw"
		if m.kind == moveReject {
			choice = "TransferInstruction_Reject"
		}
		list := []networkChoice{v.instructed(m, choice, v.meta("merge-split", -1, ""), "Failed", map[string]any{}, nil)}
		if m.form == formV2 {
			list = v.inV2(list)
		}
		return list
	case moveTraffic:
		return []networkChoice{v.traffic(number)}
	case moveExpire: // as the ledger has it, or by version 2
		if number%2 == 0 {
			return nil
		}
		expired := v.shownChoice(&v.events[m.first])
		expired.choice, expired.is = expired.choice+"V2", true
		return []networkChoice{expired}
	case moveUnlock: // as the ledger has it
		return nil
	}
	if m.kind > moveTraffic {
		return v.choicesElsewhere(number)
	}
	return v.transferChoices(number, m, made)
}

// transferChoices returns the choices of a transfer: the one of the rules, and what is around it.
func (v *networkView) transferChoices(number int, m *movement, made []int32) []networkChoice {
	t := v.transferOf(number)
	transfer := v.rulesTransfer(number, &t)
	switch {
	case m.kind == movePreapproved:
		return v.preapproved(number, &t, transfer)
	case m.kind == moveAccept:
		sender := int(t.sender)
		if t.deal.variant > 0 { // older results don't say it
			sender = -1
		}
		accept := v.instructed(m, "TransferInstruction_Accept", v.meta("transfer", sender, ""), "Completed",
			map[string]any{"receiverHoldingCids": []string{v.id(made[0])}}, nil)
		list := []networkChoice{accept, transfer}
		if t.deal.direct {
			list = list[:1]
		}
		if m.form == formV2 {
			list = v.inV2(list)
		}
		return list
	case m.kind == moveOffer:
		receiver := v.contracts[t.instruction].parties[2]
		factory := v.factory(number, &t, receiver, "Pending", map[string]any{"transferInstructionCid": v.id(t.instruction)})
		if m.form == formV2 {
			factory = v.factoryV2(factory, t.sender, receiver)
		}
		if t.deal.direct {
			return []networkChoice{factory}
		}
		return []networkChoice{factory, transfer}
	case t.deal.direct: // to oneself, or by both
		receiver := t.receivers[0].party
		factory := v.factory(number, &t, receiver, "Completed",
			map[string]any{"receiverHoldingCids": []string{v.id(made[0])}})
		if m.form == formV2 {
			factory = v.factoryV2(factory, t.sender, receiver)
		}
		return []networkChoice{factory}
	}
	if m.form == formSummed && len(t.receivers) == 1 {
		transfer.named = true
		return []networkChoice{v.factory(number, &t, t.receivers[0].party, "Completed",
			map[string]any{"receiverHoldingCids": []string{v.id(made[0])}}), transfer}
	}
	return []networkChoice{transfer}
}

// preapproved returns the choices of a transfer to a receiver that agreed beforehand: of three releases, and by the
// factory or not.
func (v *networkView) preapproved(number int, t *transfer, transfer networkChoice) []networkChoice {
	m := &v.movements[number]
	list := []networkChoice{v.send(m, t, transfer), transfer}
	if t.deal.direct && t.deal.variant > 0 {
		list = list[:1]
	}
	if number%2 == 0 {
		factory := v.factory(number, t, t.receivers[0].party, "Completed",
			map[string]any{"receiverHoldingCids": []string{v.id(v.made(m)[0])}})
		list = append([]networkChoice{factory}, list...)
	}
	return list
}

// send returns the choice of a transfer to a receiver that agreed beforehand, around the transfer itself or, by its
// newest release, without it.
func (v *networkView) send(m *movement, t *transfer, transfer networkChoice) networkChoice {
	argument := map[string]any{"sender": v.parties[t.sender], "amount": figure(t.receivers[0].amount),
		"inputs": v.inputsOf(m), "context": map[string]any{}}
	result := map[string]any{"result": transfer.result, "meta": v.meta("transfer", int(t.sender), "")}
	choice := "TransferPreapproval_Send"
	if t.deal.direct && t.deal.variant > 0 {
		choice = "TransferPreapproval_SendV2"
		result["meta"] = v.meta("transfer", int(t.sender), t.descriptionJSON)
	} else if t.descriptionJSON != "" {
		argument["description"] = json.RawMessage(t.descriptionJSON)
	}
	return networkChoice{
		module: "Splice.AmuletRules", entity: "TransferPreapproval", choice: choice,
		contract: v.preapprovalOf(t.receivers[0].party), actor: t.sender,
		argument: argument, result: result, from: transfer.from, named: true, // what is around it makes no record of its own
	}
}

// preapprovalOf returns the contract by which a receiver agreed.
func (v *networkView) preapprovalOf(receiver uint16) string {
	return v.id(contractPreapprovals + int32(receiver))
}

// rules returns an exercise of the rules of amulets.
func (v *networkView) rules(choice string, actor uint16, argument, result map[string]any) networkChoice {
	return networkChoice{
		module: "Splice.AmuletRules", entity: "AmuletRules", choice: choice, contract: v.id(contractRules), actor: actor,
		argument: argument, result: result,
	}
}

// instructed returns the exercise of a transfer instruction that a movement begins with.
func (v *networkView) instructed(m *movement, choice string, meta map[string]any, tag string, output map[string]any,
	change []string) networkChoice {
	e := &v.events[m.first]
	return networkChoice{
		template: e.served.template(), packageID: e.served.packageID(), choice: choice, through: throughInstruction,
		consuming: true, is: true,
		contract: v.id(e.contract), actor: e.actor,
		argument: map[string]any{"extraArgs": map[string]any{"context": map[string]any{"values": map[string]any{}},
			"meta": v.meta("", -1, "")}},
		result: outcome(tag, output, change, meta),
	}
}

func outcome(tag string, output map[string]any, change []string, meta map[string]any) map[string]any {
	return map[string]any{
		"output":           map[string]any{"tag": "TransferInstructionResult_" + tag, "value": output},
		"senderChangeCids": append([]string{}, change...), "meta": meta,
	}
}

// factory returns the exercise of the token standard's factory.
func (v *networkView) factory(number int, t *transfer, receiver uint16, tag string,
	output map[string]any) networkChoice {
	m := &v.movements[number]
	amount := t.offered
	if m.kind != moveOffer {
		amount = t.receivers[0].amount
	}
	reason := ""
	if m.kind != movePreapproved { // whose own choice has it
		reason = t.descriptionJSON
	}
	return networkChoice{
		module: "Splice.ExternalPartyAmuletRules", entity: "ExternalPartyAmuletRules", choice: "TransferFactory_Transfer",
		through:  throughFactory,
		contract: v.id(contractFactory), actor: t.sender,
		argument: map[string]any{
			"expectedAdmin": v.parties[v.dso], "extraArgs": map[string]any{"context": map[string]any{"values": map[string]any{}},
				"meta": v.meta("", -1, "")},
			"transfer": map[string]any{
				"sender": v.parties[t.sender], "receiver": v.parties[receiver], "amount": figure(amount),
				"instrumentId": map[string]any{"admin": v.parties[v.dso], "id": amuletName}, "inputHoldingCids": v.holdingsOf(m),
				"meta": v.meta("", -1, reason),
			},
		},
		result: outcome(tag, output, nil, v.meta("transfer", int(t.sender), "")),
	}
}

// rulesTransfer is AmuletRules_Transfer, whose summary has all figures of a transfer.
func (v *networkView) rulesTransfer(number int, t *transfer) networkChoice {
	m := &v.movements[number]
	outputs, fees, created := []any{}, []string{}, []any{}
	made := v.made(m)
	for i, n := range made[:min(len(made), t.deal.receivers)] {
		c := &v.contracts[n]
		output := map[string]any{
			"receiver": v.parties[c.parties[1]], "amount": figure(c.amount + t.deal.fees[i]),
			"receiverFeeRatio": figure(t.deal.ratios[i]), "lock": nil,
		}
		tag := "TransferResultAmulet"
		if c.kind/2 == templateLockedAmulet {
			l := v.lockOf(n)
			output["lock"] = map[string]any{"holders": []string{v.parties[l.holder]}, "expiresAt": instant(l.expires),
				"optContext": json.RawMessage(l.context)}
			tag = "TransferResultLockedAmulet"
		}
		outputs, fees = append(outputs, output), append(fees, figure(t.deal.outputFees[i]))
		created = append(created, map[string]any{"tag": tag, "value": v.id(n)})
	}
	var change any
	if t.deal.change > 0 && len(made) > t.deal.receivers {
		change = v.id(made[len(made)-1])
	}
	return v.rules("AmuletRules_Transfer", t.sender,
		map[string]any{"expectedDso": v.parties[v.dso], "context": map[string]any{}, "transfer": map[string]any{
			"sender": v.parties[t.sender], "provider": v.parties[t.sender], "inputs": v.inputsOf(m), "outputs": outputs,
			"beneficiaries": nil,
		}},
		map[string]any{
			"round": v.numbered(m), "summary": v.summary(t, fees), "createdAmulets": created, "senderChangeAmulet": change,
			"meta": v.meta("transfer", int(t.sender), ""),
		})
}

func (v *networkView) summary(t *transfer, fees []string) map[string]any {
	changes := []any{}
	for _, b := range t.changes {
		changes = append(changes, []any{v.parties[b.party], map[string]any{
			"changeToInitialAmountAsOfRoundZero": figure(b.initial), "changeToHoldingFeesRate": figure(b.rate),
		}})
	}
	s := map[string]any{
		"inputAmuletAmount": figure(t.input), "inputAppRewardAmount": figure(t.deal.rewards[0]),
		"inputValidatorRewardAmount": figure(t.deal.rewards[1]),
		"inputSvRewardAmount":        figure(t.deal.rewards[2]), "balanceChanges": changes,
		"holdingFees": figure(t.holdingFees), "outputFees": fees,
		"senderChangeFee": figure(t.deal.changeFee), "senderChangeAmount": figure(t.deal.change),
		"amuletPrice": figure(unit / 200), "inputValidatorFaucetAmount": nil,
	}
	if n := t.deal.rewards[3]; n >= 0 {
		s["inputValidatorFaucetAmount"] = figure(n)
	}
	if t.deal.grants[0] > 0 {
		s["inputUnclaimedActivityRecordAmount"], s["inputDevelopmentFundAmount"] = figure(t.deal.grants[0]),
			figure(t.deal.grants[1])
	}
	return s
}

// traffic returns a purchase of traffic: all that is sent is burned.
func (v *networkView) traffic(number int) networkChoice {
	m := &v.movements[number]
	t := v.transferOf(number)
	paid, purchased := t.deal.sent[0], int32(contractRules)
	if n := v.beside(m); n >= 0 {
		purchased = n
	}
	return v.rules("AmuletRules_BuyMemberTraffic", t.sender,
		map[string]any{
			"expectedDso": v.parties[v.dso], "provider": v.parties[t.sender], "memberId": "PAR::" + v.participant,
			"synchronizerId": v.synchronizers[0],
			"migrationId":    strconv.Itoa(firstMigration), "trafficAmount": strconv.FormatInt(paid/1000, 10),
			"inputs": v.inputsOf(m), "context": map[string]any{},
		},
		map[string]any{
			"round": v.numbered(m), "summary": v.summary(&t, []string{}), "amuletPaid": figure(paid),
			"purchasedTraffic":   v.id(purchased),
			"senderChangeAmulet": nil, "meta": v.meta("burn", -1, ""),
		})
}

// made returns the amulets that a movement creates, in order.
func (v *view) made(m *movement) (list []int32) {
	for _, e := range v.moved(m) {
		if e.choice < 0 && v.contracts[e.contract].kind.holdsAmulet() {
			list = append(list, e.contract)
		}
	}
	return list
}

// holdingsOf returns the ids of the amulets that a movement archives.
func (v *networkView) holdingsOf(m *movement) []string {
	list := []string{}
	for _, e := range v.moved(m) {
		if e.choice >= 0 && v.contracts[e.contract].kind.holdsAmulet() {
			list = append(list, v.id(e.contract))
		}
	}
	return list
}

func (v *networkView) inputsOf(m *movement) []any {
	list := []any{}
	for _, e := range v.moved(m) {
		if c := &v.contracts[e.contract]; e.choice >= 0 && c.kind.holdsAmulet() {
			list = append(list, map[string]any{"tag": "InputAmulet", "value": v.id(e.contract)})
		} else if tag := coupons[c.kind/2].input; e.choice >= 0 && tag != "" {
			list = append(list, map[string]any{"tag": tag, "value": v.id(e.contract)})
		}
	}
	return list
}

// meta returns metadata of the token standard; what is empty, or a sender below 0, is left out.
func (v *networkView) meta(kind string, sender int, reasonJSON string) map[string]any {
	values := map[string]any{}
	if kind != "" {
		values[metaPrefix+"tx-kind"] = kind
	}
	if sender >= 0 {
		values[metaPrefix+"sender"] = v.parties[sender]
	}
	if reasonJSON != "" {
		values[metaPrefix+"reason"] = json.RawMessage(reasonJSON)
	}
	return map[string]any{"values": values}
}

func (v *networkView) numbered(m *movement) map[string]any {
	return map[string]any{"number": strconv.FormatInt(roundOf(&v.updates[m.update]), 10)}
}

func (v *networkView) id(contract int32) string { return string(v.contractID(nil, contract)) }

// values returns the argument and the result of node's exercise, in update i.
func (v *networkView) values(i int, node *networkNode) (argument, result []byte) {
	if node.as.argument == nil {
		return v.appendChoiceArgument(nil, i, node.event), v.appendExerciseResult(nil, i, node.event)
	}
	return []byte(mustJSON(node.as.argument)), []byte(mustJSON(node.as.result))
}

// shownChoice returns the choice of an event as the ledger has it.
func (v *networkView) shownChoice(e *event) networkChoice {
	t, ch := e.served.template(), e.served.template().choices[e.choice]
	c := networkChoice{
		template: t, packageID: e.served.packageID(), choice: ch.name, consuming: ch.consuming, contract: v.id(e.contract),
		actor: e.actor,
	}
	if ch.through >= 0 {
		c.through = interfaces[ch.through].id()
	}
	return c
}

// movementsOf returns the numbers of the movements of update i.
func (v *networkView) movementsOf(i int) (first, end int) {
	return v.firstMovement(i), v.firstMovement(i + 1)
}
