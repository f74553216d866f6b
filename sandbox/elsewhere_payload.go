package sandbox

import "strconv"

// record is a value of a data type, or a variant.
type record = map[string]any

// payloadElsewhere returns the payload of a contract that only parties hosted elsewhere have.
func (v *view) payloadElsewhere(number int32) record {
	c := &v.contracts[number]
	owner := v.parties[c.parties[1]]
	created := v.updates[c.created].effective()
	locked := string(v.contractID(nil, number-1)) // made right before it
	switch c.kind / 2 {
	case templateAllocation:
		return record{"lockedAmulet": locked, "allocation": v.allocation(c), "expiresAt": nil}
	case templateAllocationV2:
		return record{
			"lockedAmulet": locked, "settlement": v.settlementV2(c), "allocation": v.allocationV2(c),
			"expiresAt": instant(created + day), "numIterations": "0",
			"createdAt": instant(created),
		}
	case templatePreapproval:
		return record{
			"dso": v.parties[v.dso], "receiver": owner, "provider": owner, "validFrom": instant(created),
			"lastRenewedAt": instant(created), "expiresAt": instant(created + 90*day),
		}
	case templateSetupProposal:
		return record{"dso": v.parties[v.dso], "user": owner, "validator": owner, "createdAt": instant(created),
			"preapprovalExpiresAt": instant(created + 90*day)}
	case templateOpenRound, templateSummarizingRound, templateIssuingRound, templateClosedRound:
		return v.roundElsewhere(c)
	case templateTransferCommand:
		return record{
			"dso": v.parties[v.dso], "sender": owner, "receiver": v.parties[c.parties[2]], "delegate": v.parties[c.parties[2]],
			"amount":    figure(c.amount),
			"expiresAt": instant(created + day), "nonce": "0", "description": nil,
		}
	case templateMemberTraffic:
		return record{
			"dso": v.parties[v.dso], "memberId": "PAR::" + v.participant, "synchronizerId": v.synchronizers[0],
			"migrationId":    strconv.Itoa(firstMigration),
			"totalPurchased": strconv.FormatInt(c.amount/1000, 10), "numPurchases": "1", "amuletSpent": figure(c.amount),
			"usdSpent": figure(c.amount / 200),
		}
	case templateInitialPayment, templatePayment:
		r := v.subscription(number)
		r["targetAmount"], r["lockedAmulet"], r["round"] = figure(c.amount), locked,
			record{"number": strconv.FormatInt(v.round(c), 10)}
		if c.kind/2 == templatePayment {
			r["subscription"], r["thisPaymentDueAt"] = string(v.contractID(nil, contractRules)), instant(created+day)
		}
		return r
	case templateIdleState:
		r := v.subscription(number)
		r["subscription"], r["nextPaymentDueAt"] = string(v.contractID(nil, contractRules)), instant(created+90*day)
		return r
	case templateNameEntry:
		return record{
			"dso": v.parties[v.dso], "user": owner, "name": "name-" + strconv.Itoa(int(number)) + ".unverified.cns", "url": "",
			"description": "", "expiresAt": instant(created + 90*day),
		}
	default:
		return v.coupon(c)
	}
}

// roundElsewhere returns the payload of a mining round.
func (v *view) roundElsewhere(c *contract) record {
	created := v.updates[c.created].effective()
	var r record
	switch c.kind / 2 {
	case templateOpenRound:
		r = v.roundPayload(c)
		r["issuingFor"], r["transferConfigUsd"] = duration(c.amount*roundMicros),
			record{"holdingFee": record{"rate": figure(unit / 100)}}
	case templateSummarizingRound:
		return v.roundPayload(c)
	default:
		r = record{
			"dso": v.parties[v.dso], "round": record{"number": strconv.FormatInt(c.amount, 10)},
			"issuancePerValidatorRewardCoupon":   figure(unit / 5),
			"issuancePerFeaturedAppRewardCoupon": figure(100 * unit), "issuancePerUnfeaturedAppRewardCoupon": figure(unit / 2),
			"issuancePerSvRewardCoupon": figure(unit / 3), "optIssuancePerValidatorFaucetCoupon": figure(570 * unit),
		}
	}
	if c.kind/2 != templateClosedRound {
		r["opensAt"], r["targetClosesAt"] = instant(opensAt(created)), instant(opensAt(created)+2*roundMicros)
	}
	return r
}

// coupons are the templates of coupons: whom they name as the one who is rewarded, and as what a transfer takes them.
var coupons = [allTemplates]struct{ rewarded, input string }{
	templateAppReward:         {"provider", "InputAppRewardCoupon"},
	templateRewardV2:          {"provider", "InputRewardCouponV2"},
	templateValidatorReward:   {"user", "InputValidatorRewardCoupon"},
	templateLiveness:          {"validator", "InputValidatorLivenessActivityRecord"},
	templateSVReward:          {"sv", "InputSvRewardCoupon"},
	templateUnclaimedActivity: {"beneficiary", "InputUnclaimedActivityRecord"},
	templateDevelopmentFund:   {"beneficiary", "InputDevelopmentFundCoupon"},
}

// coupon returns the payload of a coupon. What most are worth follows from the issuance of their round, and not from
// what they say.
func (v *view) coupon(c *contract) record {
	template := c.kind / 2
	r := record{"dso": v.parties[v.dso], coupons[template].rewarded: v.parties[c.parties[1]]}
	expires := instant(v.updates[c.created].effective() + day)
	switch template {
	case templateUnclaimedActivity, templateDevelopmentFund:
		r["amount"], r["expiresAt"], r["reason"] = figure(c.amount), expires, "a reason"
		if template == templateDevelopmentFund {
			r["fundManager"] = v.parties[v.dso]
		}
		return r
	case templateAppReward:
		r["featured"], r["amount"], r["beneficiary"] = true, figure(c.amount/2), nil
	case templateRewardV2:
		r["amount"], r["expiresAt"], r["beneficiary"] = figure(c.amount), expires, nil
	case templateValidatorReward:
		r["amount"] = figure(c.amount / 2)
	case templateSVReward:
		r["beneficiary"], r["weight"] = r["sv"], "10"
	}
	r["round"] = record{"number": strconv.FormatInt(v.round(c), 10)}
	return r
}

const day int64 = 86_400_000_000 // microseconds

// opensAt returns when a round opens that is created at a time.
func opensAt(created int64) int64 { return created + roundMicros }

func duration(micros int64) record { return record{"microseconds": strconv.FormatInt(micros, 10)} }

// roundPayload returns what an open round says, and still when it is summarized.
func (v *view) roundPayload(c *contract) record {
	return record{
		"dso": v.parties[v.dso], "round": record{"number": strconv.FormatInt(c.amount, 10)},
		"amuletPrice":    amuletPrice(c.amount),
		"issuanceConfig": record{"amuletToIssuePerYear": figure(40_000_000 * unit)}, "tickDuration": duration(roundMicros),
		"trafficPrice": nil, "rewardConfig": nil,
	}
}

// amuletPrice returns the price in a round.
func amuletPrice(round int64) string { return figure(unit/200 + round*unit/100_000) }

func (v *view) instrument() record { return record{"admin": v.parties[v.dso], "id": amuletName} }

func noMeta() record { return record{"values": record{}} }

// accountOf returns a party's account in version 2 of the token standard.
func (v *view) accountOf(party uint16) record {
	return record{"owner": v.parties[party], "provider": nil, "id": ""}
}

// allocation returns what an allocation of version 1 specifies. The receiver executes it.
func (v *view) allocation(c *contract) record {
	at := v.updates[c.created].effective()
	return record{
		"settlement": record{
			"executor": v.parties[c.parties[2]], "settlementRef": record{"id": "trade", "cid": nil}, "requestedAt": instant(at),
			"allocateBefore": instant(at + day),
			"settleBefore":   instant(at + 2*day), "meta": noMeta(),
		},
		"transferLegId": "leg", "transferLeg": record{
			"sender": v.parties[c.parties[1]], "receiver": v.parties[c.parties[2]], "amount": figure(c.amount),
			"instrumentId": v.instrument(), "meta": noMeta(),
		},
	}
}

func (v *view) settlementV2(c *contract) record {
	return record{"executors": []string{v.parties[c.parties[2]]}, "id": "trade", "cid": nil, "meta": noMeta()}
}

func (v *view) allocationV2(c *contract) record {
	return record{
		"admin": v.parties[v.dso], "authorizer": v.accountOf(c.parties[1]), "transferLegSides": []any{record{
			"transferLegId": "leg", "side": "SenderSide", "otherside": v.accountOf(c.parties[2]), "amount": figure(c.amount),
			"instrumentId": amuletName, "meta": noMeta(),
		}},
		"settlementDeadline": nil, "nextIterationFunding": nil, "committed": true, "meta": noMeta(),
	}
}

// subscription returns what all contracts of a subscription say: to a name, of the DSO, or to what somebody else
// provides.
func (v *view) subscription(number int32) record {
	c := &v.contracts[number]
	dso := v.parties[v.dso]
	receiver := dso
	if c.observers > 0 {
		receiver = v.parties[c.parties[2]]
	}
	return record{
		"subscriptionData": record{"sender": v.parties[c.parties[1]], "receiver": receiver, "provider": receiver, "dso": dso,
			"description": "a subscription"},
		"payData": record{
			"paymentAmount": record{"amount": figure(unit), "unit": "USDUnit"}, "paymentInterval": duration(90 * day),
			"paymentDuration": duration(30 * day),
		},
		"reference": string(v.contractID(nil, contractRules)),
	}
}
