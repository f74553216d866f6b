package sandbox

import "strconv"

// interfaceAt returns the id of an interface of the token standard, by its module and name. Parties that other
// participants host move their amulets by choices of these interfaces.
func interfaceAt(name string) string {
	return "5d8b1dc9c9a3ef1d6a0eb2ab1ca4ce8a9a2f4a7e3e5b5b4d9bfcf5c3c9a1e001:Splice.Api.Token." + name
}

// choicesElsewhere returns the choices of a movement that only parties hosted elsewhere make.
func (v *networkView) choicesElsewhere(number int) []networkChoice {
	m := &v.movements[number]
	c := &v.contracts[v.firstOf(m)]
	amulets := record{amuletName: v.idsOf(v.made(m))}
	switch m.kind {
	case moveCoupons: // as the ledger has it
		return nil
	case moveCollect:
		t := v.transferOf(number)
		return []networkChoice{v.rulesTransfer(number, &t)}
	case moveCommand, moveCommanded:
		return v.commanded(number)
	case moveRounds:
		return []networkChoice{v.roundChoice(m)}
	case moveApproval:
		return []networkChoice{v.approval(number)}
	case moveLock, moveAllocate:
		return v.locking(number)
	case moveExecute:
		return v.executed(number)
	case moveName:
		return v.named(number)
	case moveCancel:
		cancelled := record{"senderHoldingCids": v.idsOf(v.made(m)), "meta": noMeta()}
		switch m.form {
		case formSummed:
			return []networkChoice{v.own(m, "Allocation_Cancel", interfaceAt("AllocationV1:Allocation"),
				record{"extraArgs": v.extraArgs()}, cancelled)}
		case formDirect:
			return []networkChoice{v.own(m, "Allocation_Withdraw", interfaceAt("AllocationV1:Allocation"),
				record{"extraArgs": v.extraArgs()}, cancelled)}
		}
		all := v.onFactory("ExternalPartyAmuletRules_ExpireAmuletAllocations", "", v.dso,
			record{"expectedDso": v.parties[v.dso], "observers": []string{}}, record{"results": []any{cancelled}})
		return []networkChoice{all, v.own(m, "AmuletAllocation_DsoExpire", "", record{"expireLock": true}, cancelled)}
	case moveAllocateV2:
		a := &v.contracts[v.beside(m)]
		return []networkChoice{v.onFactory("AllocationFactory_Allocate",
			interfaceAt("AllocationInstructionV2:AllocationFactory"), a.parties[1],
			record{
				"settlement": v.settlementV2(a), "allocation": v.allocationV2(a),
				"requestedAt":      instant(v.updates[m.update].effective()),
				"inputHoldingCids": v.holdingsOf(m), "extraArgs": v.extraArgs(), "actors": []string{v.parties[a.parties[1]]},
			},
			record{"output": record{"tag": "AllocationInstructionResult_Completed",
				"value": record{"allocationCid": v.id(v.beside(m))}}, "authorizerChangeCids": record{}, "meta": noMeta()})}
	case moveSettle:
		settled := record{"output": record{"tag": "AllocationResult_Settled",
			"value": record{"nextIterationAllocationCid": nil}}, "authorizerHoldingCids": record{}, "meta": noMeta()}
		argument := record{"actors": []string{v.parties[v.dso], v.parties[c.parties[2]]}, "extraTransferLegSides": []any{},
			"nextIterationFunding": nil, "extraArgs": v.extraArgs()}
		batch := v.onFactory("SettlementFactory_SettleBatch", interfaceAt("AllocationV2:SettlementFactory"), c.parties[2],
			record{"settlement": v.settlementV2(c), "transferLegs": []any{}, "allocations": []string{v.id(v.firstOf(m))},
				"actors": []string{v.parties[c.parties[2]]}, "extraArgs": v.extraArgs()},
			record{"results": []any{settled}, "meta": noMeta()})
		sent := v.own(m, "Allocation_Settle", interfaceAt("AllocationV2:Allocation"), argument, settled)
		sent.is, sent.consuming, sent.over = false, false, 2
		received := sent
		received.contract, received.from, received.over = v.id(contractReceiving), 2, 1
		received.result = record{"output": settled["output"], "authorizerHoldingCids": amulets, "meta": noMeta()}
		return []networkChoice{batch, sent, received}
	default: // moveExpired
		failed := outcome("Failed", record{}, v.idsOf(v.made(m)), noMeta())
		all := v.rules("AmuletRules_Amulet_ExpireTransferInstructions", v.dso, record{"expectedDso": v.parties[v.dso],
			"observers": []string{}}, record{"results": []any{failed}})
		expired := v.own(m, "TransferInstruction_Update", throughInstruction, record{"extraActors": []string{},
			"extraArgs": v.extraArgs()}, failed)
		expired.actor = v.dso
		return []networkChoice{all, expired}
	}
}

// beside returns the contract that a movement creates beside amulets.
func (v *view) beside(m *movement) int32 {
	for _, e := range v.events[m.first : m.first+m.count] {
		if e.choice < 0 && !v.contracts[e.contract].kind.holdsAmulet() {
			return e.contract
		}
	}
	return -1
}

func (v *networkView) idsOf(contracts []int32) []string {
	list := []string{}
	for _, n := range contracts {
		list = append(list, v.id(n))
	}
	return list
}

func (v *networkView) extraArgs() record {
	return record{"context": noMeta(), "meta": noMeta()}
}

// own returns a choice that archives the contract that a movement begins with.
func (v *networkView) own(m *movement, choice, through string, argument, result record) networkChoice {
	e := &v.events[m.first]
	return networkChoice{
		template: e.served.template(), packageID: e.served.packageID(), choice: choice, through: through, consuming: true,
		is: true, contract: v.id(e.contract),
		actor: e.actor, argument: argument, result: result,
	}
}

// onFactory returns a choice of the rules for parties that sign elsewhere, which is the token standard's factory too.
func (v *networkView) onFactory(choice, through string, actor uint16, argument, result record) networkChoice {
	return networkChoice{
		module: "Splice.ExternalPartyAmuletRules", entity: "ExternalPartyAmuletRules", choice: choice, through: through,
		contract: v.id(contractFactory),
		actor:    actor, argument: argument, result: result,
	}
}

// inV2 returns the choices of a movement of the token standard as its version 2 has them: the first one makes that of
// version 1.
func (v *networkView) inV2(list []networkChoice) []networkChoice {
	outer := list[0]
	outer.is, outer.consuming, outer.through = false, false, interfaceAt("TransferInstructionV2:TransferInstruction")
	outer.argument = record{"actors": []string{v.parties[outer.actor]}, "extraArgs": v.extraArgs()}
	return append([]networkChoice{outer}, list...)
}

// factoryV2 returns a transfer by version 2 of the token standard's factory, between accounts.
func (v *networkView) factoryV2(c networkChoice, sender, receiver uint16) networkChoice {
	c.through = interfaceAt("TransferInstructionV2:TransferFactory")
	argument := c.argument.(record)
	delete(argument, "expectedAdmin")
	argument["actors"] = []string{v.parties[sender]}
	transfer := argument["transfer"].(record)
	transfer["sender"], transfer["receiver"] = v.accountOf(sender), v.accountOf(receiver)
	return c
}

// locking returns the choices that lock amulets for an allocation or a payment.
func (v *networkView) locking(number int) []networkChoice {
	m, t := &v.movements[number], v.transferOf(number)
	made := v.beside(m)
	transfer := v.rulesTransfer(number, &t)
	if m.kind == moveAllocate {
		allocate := v.onFactory("AllocationFactory_Allocate", interfaceAt("AllocationInstructionV1:AllocationFactory"),
			t.sender,
			record{
				"expectedAdmin": v.parties[v.dso], "allocation": v.allocation(&v.contracts[made]),
				"requestedAt":      instant(v.updates[m.update].effective()),
				"inputHoldingCids": v.holdingsOf(m), "extraArgs": v.extraArgs(),
			},
			record{"output": record{"tag": "AllocationInstructionResult_Completed",
				"value": record{"allocationCid": v.id(made)}}, "senderChangeCids": []string{}, "meta": noMeta()})
		if t.deal.direct {
			return []networkChoice{allocate}
		}
		return []networkChoice{allocate, transfer}
	}
	pay := networkChoice{
		module: "Splice.Wallet.Subscriptions", entity: "SubscriptionRequest",
		choice: "SubscriptionRequest_AcceptAndMakePayment", contract: v.id(contractRequest), actor: t.sender,
		argument: record{"inputs": v.inputsOf(m), "context": record{}, "walletProvider": v.parties[t.sender]},
		result:   record{"subscriptionPayment": v.id(made), "senderChange": nil},
	}
	if v.contracts[made].kind/2 == templatePayment {
		pay.entity, pay.choice = "SubscriptionIdleState", "SubscriptionIdleState_MakePayment"
	}
	transfer.named = true
	return []networkChoice{pay, transfer}
}

// executed returns the choices of the execution of an allocation. The results of some don't say who sends.
func (v *networkView) executed(number int) []networkChoice {
	m, t := &v.movements[number], v.transferOf(number)
	sender := int(t.sender)
	if t.deal.variant > 0 {
		sender = -1
	}
	execute := v.own(m, "Allocation_ExecuteTransfer", interfaceAt("AllocationV1:Allocation"),
		record{"extraArgs": v.extraArgs()},
		record{"senderHoldingCids": []string{}, "receiverHoldingCids": v.idsOf(v.made(m)), "meta": v.meta("transfer", sender,
			"")})
	if t.deal.direct {
		return []networkChoice{execute}
	}
	return []networkChoice{execute, v.rulesTransfer(number, &t)}
}

// commanded returns the choices of a transfer by command: that which makes the command, or those of the transfer.
func (v *networkView) commanded(number int) []networkChoice {
	m := &v.movements[number]
	c := &v.contracts[v.firstOf(m)]
	if m.kind == moveCommand {
		argument := v.payloadElsewhere(v.firstOf(m))
		delete(argument, "dso")
		argument["expectedDso"] = v.parties[v.dso]
		return []networkChoice{v.onFactory("ExternalPartyAmuletRules_CreateTransferCommand", "", c.parties[1], argument,
			record{"transferCommandCid": v.id(v.firstOf(m))})}
	}
	t := v.transferOf(number)
	transfer := v.rulesTransfer(number, &t)
	transfer.from = 1
	command := v.own(m, "TransferCommand_Send", "",
		record{"context": record{}, "inputs": v.inputsOf(m), "transferPreapprovalCidO": v.preapprovalOf(c.parties[2]),
			"transferCounterCid": v.id(contractRules)},
		record{"result": record{"tag": "TransferCommandResultSuccess", "value": record{"result": transfer.result}},
			"sender": v.parties[c.parties[1]], "nonce": "0"})
	return []networkChoice{command, v.send(m, &t, transfer), transfer}
}

// named returns the choices of a payment of a subscription. What was locked goes to an app or, for a name, to the DSO,
// which burns it.
func (v *networkView) named(number int) []networkChoice {
	m, t := &v.movements[number], v.transferOf(number)
	user, state := v.parties[t.sender], v.id(v.events[m.first+nameState].contract)
	rules := networkChoice{
		template: &templates[templateNameRules], packageID: namesPackages[0], choice: "AnsRules_CollectInitialEntryPayment",
		contract: v.id(contractNames), actor: t.sender,
		argument: record{"user": user, "entryContext": v.id(contractNames), "paymentCid": v.id(v.firstOf(m)),
			"transferContext": record{}},
		result: record{"entryCid": v.id(v.events[m.first+m.count-1].contract), "subscriptionStateCid": state},
	}
	collect := v.own(m, "SubscriptionInitialPayment_Collect", "", record{"transferContext": record{}},
		record{"subscription": v.id(contractRequest), "subscriptionState": state, "amulet": v.id(v.made(m)[0])})
	if v.contracts[v.firstOf(m)].kind/2 == templatePayment {
		rules.choice, collect.choice = "AnsRules_CollectEntryRenewalPayment", "SubscriptionPayment_Collect"
	}
	collect.over = nameState + 1
	transfer := v.rulesTransfer(number, &t)
	transfer.from, transfer.over, transfer.named = nameTransfer, 2, true
	if m.count == collect.over {
		return []networkChoice{collect, transfer}
	}
	return []networkChoice{rules, collect, transfer}
}

// approval returns a purchase of a preapproval or of a proposal of one, or its renewal. All that is sent is burned.
// Since 0.6.9 some cost nothing.
func (v *networkView) approval(number int) networkChoice {
	m, t := &v.movements[number], v.transferOf(number)
	paid, fees := t.deal.sent[0], []string{figure(t.deal.outputFees[0])}
	if t.input == 0 {
		t, paid, fees = transfer{deal: deal{terms: terms{rewards: [4]int64{0, 0, 0, -1}}}}, 0, []string{}
	}
	approved := v.beside(m)
	owner := v.parties[v.contracts[approved].parties[1]]
	result := record{
		"amuletPaid": figure(paid), "meta": v.meta("burn", -1, ""),
		"transferResult": record{"round": v.numbered(m), "summary": v.summary(&t, fees), "createdAmulets": []any{},
			"senderChangeAmulet": nil, "meta": nil},
	}
	argument := record{"context": record{}, "inputs": v.inputsOf(m)}
	expires := instant(v.updates[m.update].effective() + 90*day)
	switch {
	case v.contracts[approved].kind/2 == templateSetupProposal:
		argument["user"], argument["validator"], argument["preapprovalExpiresAt"], argument["expectedDso"] = owner, owner,
			expires, v.parties[v.dso]
		result["proposalCid"], result["user"], result["validator"] = v.id(approved), owner, owner
		return v.rules("AmuletRules_CreateExternalPartySetupProposal", v.contracts[approved].parties[1], argument, result)
	case v.contracts[v.firstOf(m)].kind/2 == templatePreapproval && v.events[m.first].choice >= 0:
		argument["newExpiresAt"] = expires
		result["transferPreapprovalCid"], result["receiver"], result["provider"] = v.id(approved), owner, owner
		return v.own(m, "TransferPreapproval_Renew", "", argument, result)
	}
	argument["receiver"], argument["provider"], argument["expiresAt"], argument["expectedDso"] = owner, owner, expires,
		v.parties[v.dso]
	result["transferPreapprovalCid"] = v.id(approved)
	return v.rules("AmuletRules_CreateTransferPreapproval", v.contracts[approved].parties[1], argument, result)
}

// roundChoice returns the choice that brings a round to its next state.
func (v *networkView) roundChoice(m *movement) networkChoice {
	e := &v.events[m.first]
	c := &v.contracts[e.contract]
	created := func(n int32) any { return v.id(v.events[m.first+n].contract) }
	if e.choice < 0 {
		return v.rules("AmuletRules_Bootstrap_Rounds", v.dso, record{"amuletPrice": amuletPrice(c.amount),
			"round0Duration": duration(2 * roundMicros), "initialRound": strconv.FormatInt(c.amount, 10)},
			record{"openMiningRoundCid": created(m.count - 1), "initialRound": record{"number": strconv.FormatInt(c.amount,
				10)}})
	}
	switch c.kind / 2 {
	case templateOpenRound:
		return v.rules("AmuletRules_AdvanceOpenMiningRounds", v.dso,
			record{"amuletPrice": amuletPrice(c.amount + 3), "roundToArchiveCid": created(0),
				"middleRoundCid": v.id(contractRules), "latestRoundCid": v.id(contractRules)},
			record{"summarizingRoundCid": created(1), "openRoundCid": created(2)})
	case templateSummarizingRound:
		return v.rules("AmuletRules_MiningRound_StartIssuing", v.dso, record{"miningRoundCid": created(0),
			"summary": record{}},
			record{"issuingRoundCid": created(1), "unclaimedDevelopmentFundCouponCid": nil})
	case templateIssuingRound:
		return v.rules("AmuletRules_MiningRound_Close", v.dso, record{"issuingRoundCid": created(0)},
			record{"closedRoundCid": created(1)})
	}
	return v.rules("AmuletRules_MiningRound_Archive", v.dso, record{"closedRoundCid": created(0)}, record{})
}
