package sandbox

import (
	"strings"

	"ledgerindexer/internal/features/damllf/build"
)

// compiler has the packages that were built, by their names. Those that others refer to come first.
type compiler map[string]compiled

func (c compiler) add(name string, p build.Package) {
	id, payload := p.Encode()
	c[name] = compiled{id, payload}
}

// of returns the type of a package that was built before.
func (c compiler) of(name, typ string, args ...build.Type) build.Type {
	return build.Con(build.Ref{Package: c[name].id, Name: typ}, args...)
}

func (c compiler) iface(name, typ string) build.Ref { return build.Ref{Package: c[name].id, Name: typ} }

func typeField(name string, t build.Type) build.Field { return build.Field{Name: name, Type: t} }

// generic gives a definition type parameters.
func generic(t build.DataType, params ...string) build.DataType {
	t.Params = params
	return t
}

var decimalType = build.Numeric(10)

// The forms of exercise results. Which one a choice has follows from its name.
const (
	resultNone     = iota // an Optional that is none
	resultContract        // a contract id
	resultDecimal
	resultRecord
	resultMoved // what a choice moved, as the token standard says it
	resultForms
)

func resultForm(name string) int {
	sum := 0
	for _, prefix := range []string{"Amulet_", "LockedAmulet_", "TransferInstruction_"} { // of the templates of amulets
		if strings.HasPrefix(name, prefix) {
			return resultMoved
		}
	}
	for _, c := range []byte(name) {
		sum += int(c)
	}
	return sum % resultMoved
}

// choices appends choices of what is defined in a module, and the types of their arguments and results; Archive comes
// first.
func (c compiler) choices(m *build.Module, of string, metadata build.Type, choices ...choice) []build.Choice {
	list := []build.Choice{{
		Name: "Archive", Consuming: true, Argument: c.of("daml-prim-1", "DA.Internal.Template:Archive"), Result: build.Unit,
	}}
	for _, ch := range choices {
		m.Types = append(m.Types, build.Record(ch.name,
			typeField("actor", build.Party), typeField("amount", build.Optional(decimalType)), typeField("at", build.Timestamp),
			typeField("context", metadata)))
		contract := build.ContractID(build.Local(m.Name + ":" + of))
		result := [...]build.Type{
			resultNone: build.Optional(build.Text), resultContract: contract, resultDecimal: decimalType,
			resultRecord: build.Local(m.Name + ":" + ch.name + "Result"), resultMoved: build.Local(m.Name + ":" + ch.name +
				"Result"),
		}[resultForm(ch.name)]
		switch resultForm(ch.name) {
		case resultRecord:
			m.Types = append(m.Types, build.Record(ch.name+"Result",
				typeField("summary", build.Text), typeField("rounds", build.List(build.Int64)),
				typeField("change", build.Optional(contract))))
		case resultMoved:
			output := m.Name + ":" + ch.name + "Output"
			m.Types = append(m.Types,
				build.Record(ch.name+"Result", typeField("output", build.Local(output)), typeField("meta", metadata)),
				build.Variant(ch.name+"Output",
					typeField("TransferInstructionResult_Pending", build.Local(output+".Pending")),
					typeField("TransferInstructionResult_Completed", build.Local(output+".Completed")),
					typeField("TransferInstructionResult_Failed", build.Unit)),
				build.Record(ch.name+"Output.Pending", typeField("transferInstructionCid", contract)),
				build.Record(ch.name+"Output.Completed", typeField("receiverHoldingCids", build.List(contract))))
		}
		list = append(list, build.Choice{
			Name: ch.name, Consuming: ch.consuming, Argument: build.Local(m.Name + ":" + ch.name), Result: result,
		})
	}
	return list
}

// libraries returns the packages that come with the compiler.
func (c compiler) libraries() {
	tuple := generic(build.Record("Tuple2", typeField("_1", build.Var("a")), typeField("_2", build.Var("b"))), "a", "b")
	for i, name := range []string{"daml-prim-1", "daml-prim-2"} {
		p := build.Package{Name: "daml-prim", Version: "3.4.0", Modules: []build.Module{
			{Name: "DA.Internal.Template", Types: []build.DataType{build.Record("Archive")}},
			{Name: "DA.Types", Types: []build.DataType{tuple}},
		}}
		if i > 0 {
			p.Modules = append(p.Modules, build.Module{Name: "DA.More"})
		}
		c.add(name, p)
	}
	c.add("daml-stdlib-1", build.Package{Name: "daml-stdlib", Version: "3.4.0", Modules: []build.Module{{
		Name: "DA.Set.Types", Types: []build.DataType{
			generic(build.Record("Set", typeField("map", build.GenMap(build.Var("k"), build.Unit))), "k"),
		},
	}}})
	c.add("time-types-1", build.Package{Name: "daml-stdlib-DA-Time-Types", Version: "1.0.0", Modules: []build.Module{{
		Name: "DA.Time.Types", Types: []build.DataType{build.Record("RelTime", typeField("microseconds", build.Int64))},
	}}})
}

// Types that several packages define for themselves.
var (
	metadataRecord   = build.Record("Metadata", typeField("values", build.TextMap(build.Text)))
	instrumentRecord = build.Record("InstrumentId", typeField("admin", build.Party), typeField("id", build.Text))
)

// apiPackage is the name that packageID takes of the package of an interface.
const (
	bankAPI  = "bank-api-1"
	tradeAPI = "trade-api-1"
	tokenAPI = "splice-api-token-holding-v1-1"
)

func (c compiler) interfaces() {
	holding := build.Module{Name: "Bank.Api.HoldingV1", Types: []build.DataType{
		metadataRecord, instrumentRecord,
		build.Record("Lock", typeField("holders", build.List(build.Party)),
			typeField("expiresAt", build.Optional(build.Timestamp))),
		build.Record("HoldingView",
			typeField("owner", build.Party), typeField("instrument", build.Local("Bank.Api.HoldingV1:InstrumentId")),
			typeField("amount", decimalType),
			typeField("lock", build.Optional(build.Local("Bank.Api.HoldingV1:Lock"))),
			typeField("meta", build.Local("Bank.Api.HoldingV1:Metadata"))),
	}}
	holding.Interfaces = []build.Interface{{
		Name: "Holding", View: build.Local("Bank.Api.HoldingV1:HoldingView"),
		Choices: c.choices(&holding, "Holding", build.Local("Bank.Api.HoldingV1:Metadata"),
			choice{name: "Holding_Transfer", consuming: true}, choice{name: "Holding_Check"}),
	}}
	metadata := build.Local("Bank.Api.HoldingV1:Metadata")
	lockable := build.Module{Name: "Bank.Api.LockableV1", Types: []build.DataType{
		build.Record("LockableView", typeField("owner", build.Party), typeField("expiresAt", build.Optional(build.Timestamp)),
			typeField("meta", metadata)),
	}}
	lockable.Interfaces = []build.Interface{{
		Name: "Lockable", View: build.Local("Bank.Api.LockableV1:LockableView"),
		Choices: c.choices(&lockable, "Lockable", metadata, choice{name: "Lockable_Unlock", consuming: true},
			choice{name: "Lockable_Remaining"}),
	}}
	c.add(bankAPI, build.Package{Name: "bank-api", Version: "1.0.0", Modules: []build.Module{holding, lockable}})

	const trade = "Trade.Api.InstructionV1:"
	instruction := build.Module{Name: "Trade.Api.InstructionV1", Types: []build.DataType{
		metadataRecord,
		build.Variant("Status", typeField("Pending", build.Unit), typeField("Failed", build.Local(trade+"Status.Failed"))),
		build.Record("Status.Failed", typeField("reason", build.Text)),
		build.Record("InstructionView", typeField("owner", build.Party), typeField("status", build.Local(trade+"Status")),
			typeField("reason", build.Text), typeField("meta", build.Local(trade+"Metadata"))),
	}}
	instruction.Interfaces = []build.Interface{{
		Name: "Instruction", View: build.Local(trade + "InstructionView"),
		Choices: c.choices(&instruction, "Instruction", build.Local(trade+"Metadata"), choice{name: "Instruction_Accept",
			consuming: true}),
	}}
	c.add(tradeAPI, build.Package{Name: "trade-api", Version: "1.0.0", Modules: []build.Module{instruction}})

	const token = "Splice.Api.Token.HoldingV1:"
	tokens := build.Module{Name: "Splice.Api.Token.HoldingV1", Types: []build.DataType{
		metadataRecord, instrumentRecord,
		build.Record("Lock", typeField("holders", build.List(build.Party)),
			typeField("expiresAt", build.Optional(build.Timestamp)),
			typeField("expiresAfter", build.Optional(c.of("time-types-1", "DA.Time.Types:RelTime"))),
			typeField("context", build.Optional(build.Text))),
		build.Record("HoldingView", typeField("owner", build.Party),
			typeField("instrumentId", build.Local(token+"InstrumentId")),
			typeField("amount", decimalType), typeField("lock", build.Optional(build.Local(token+"Lock"))),
			typeField("meta", build.Local(token+"Metadata"))),
	}}
	tokens.Interfaces = []build.Interface{{
		Name: "Holding", View: build.Local(token + "HoldingView"), Choices: c.choices(&tokens, "Holding",
			build.Local(token+"Metadata")),
	}}
	c.add(tokenAPI, build.Package{Name: "splice-api-token-holding-v1", Version: "1.0.0", Modules: []build.Module{tokens}})
}

// newer returns fields that the later version of a package adds.
func newer(version int, fields ...build.Field) []build.Field {
	if version == 0 {
		return nil
	}
	return fields
}

func (c compiler) bank() {
	metadata := c.of(bankAPI, "Bank.Api.HoldingV1:Metadata")
	instrument := c.of(bankAPI, "Bank.Api.HoldingV1:InstrumentId")
	holdingAPI, lockableAPI := c.iface(bankAPI, "Bank.Api.HoldingV1:Holding"),
		c.iface(bankAPI, "Bank.Api.LockableV1:Lockable")
	token := c.iface(tokenAPI, "Splice.Api.Token.HoldingV1:Holding")
	versions := []string{"1.9.0", "1.10.0"}
	for i, name := range []string{"bank-1", "bank-2"} {
		account := build.Module{Name: "Bank.Account", Types: []build.DataType{
			build.Enum("Status", "Open", "Frozen", "Closing"),
			build.Record("Mandate", typeField("holder", build.Party), typeField("note", build.Text)),
			build.Record("Account", append([]build.Field{
				typeField("owner", build.Party), typeField("number", build.Text),
				typeField("status", build.Local("Bank.Account:Status")),
				typeField("opened", build.Date), typeField("limit", build.Optional(decimalType)),
				typeField("nickname", build.Optional(build.Text)),
				typeField("mandates", build.List(build.Local("Bank.Account:Mandate"))), typeField("meta", metadata),
			}, newer(i, typeField("closesAt", build.Optional(build.Timestamp)))...)...),
		}}
		key := c.of("daml-prim-1", "DA.Types:Tuple2", build.Party, build.Text)
		account.Templates = []build.Template{{
			Name: "Account", Key: &key,
			Choices: c.choices(&account, "Account", metadata, choice{name: "Account_Close", consuming: true},
				choice{name: "Account_Statement"}),
		}}

		cash := build.Module{Name: "Bank.Cash", Types: []build.DataType{
			build.Record("Round", typeField("number", build.Int64)),
			build.Record("RatePerRound", typeField("rate", decimalType)),
			build.Record("Amount", typeField("initialAmount", decimalType),
				typeField("createdAt", build.Local("Bank.Cash:Round")),
				typeField("ratePerRound", build.Local("Bank.Cash:RatePerRound"))),
			build.Variant("Source", typeField("Minted", build.Unit), typeField("Received", build.Party)),
			build.Record("Balance", typeField("owner", build.Party), typeField("instrument", instrument),
				typeField("amount", build.Local("Bank.Cash:Amount")),
				typeField("meta", metadata), typeField("source", build.Local("Bank.Cash:Source")),
				typeField("memo", build.Optional(build.Text))),
			build.Record("Lock", typeField("holders", build.List(build.Party)), typeField("expiresAt", build.Timestamp),
				typeField("context", build.Optional(build.Text))),
			build.Record("Holding", typeField("holding", build.Local("Bank.Cash:Balance")), typeField("observer", build.Party)),
			build.Record("LockedHolding", typeField("holding", build.Local("Bank.Cash:Balance")),
				typeField("lock", build.Local("Bank.Cash:Lock"))),
		}}
		cash.Templates = []build.Template{
			{
				Name: "Holding", Implements: []build.Ref{holdingAPI, token},
				Choices: c.choices(&cash, "Holding", metadata, choice{name: "Holding_Split", consuming: true}),
			}, {
				Name: "LockedHolding", Implements: []build.Ref{holdingAPI, lockableAPI, token},
				Choices: c.choices(&cash, "LockedHolding", metadata, choice{name: "LockedHolding_Expire", consuming: true}),
			},
		}
		p := build.Package{Name: "bank", Version: versions[i], Modules: []build.Module{account, cash}}
		if i > 0 {
			p.Upgrades = c["bank-1"].id
		}
		c.add(name, p)
	}
	c.add("bank-3", build.Package{Name: "bank", Version: "2.0.0", Upgrades: c["bank-2"].id, Modules: []build.Module{{
		Name: "Bank.Account",
		Types: []build.DataType{build.Record("Account", typeField("owner", build.Party),
			typeField("number", build.Int64))},
		Templates: []build.Template{{Name: "Account", Choices: c.choices(&build.Module{}, "", metadata)}},
	}}})
}

// trade has a template, Agreement, whose payload has a value of every type.
func (c compiler) trade() {
	metadata := c.of(tradeAPI, "Trade.Api.InstructionV1:Metadata")
	pair := func(a, b build.Type) build.Type { return c.of("daml-prim-1", "DA.Types:Tuple2", a, b) }
	versions := map[string]string{"trade-1": "1.0.0", "trade-2": "1.1.0", "trade-2-fork": "1.1.0"}
	for i, name := range []string{"trade-1", "trade-2", "trade-2-fork"} {
		offer := build.Module{Name: "Trade.Offer", Types: []build.DataType{
			instrumentRecord,
			build.Record("Offer", typeField("sender", build.Party), typeField("receiver", build.Party),
				typeField("instrument", build.Local("Trade.Offer:InstrumentId")),
				typeField("amount", decimalType), typeField("requestedAt", build.Timestamp),
				typeField("executeBefore", build.Timestamp),
				typeField("inputs", build.List(build.ContractID(build.Local("Trade.Offer:Offer")))), typeField("meta", metadata)),
		}}
		offer.Templates = []build.Template{{
			Name: "Offer", Implements: []build.Ref{c.iface(tradeAPI, "Trade.Api.InstructionV1:Instruction")},
			Choices: c.choices(&offer, "Offer", metadata, choice{name: "Offer_Withdraw", consuming: true},
				choice{name: "Offer_Quote"}),
		}}
		dayCounts := []string{"Act360", "Act365", "Thirty360"}
		terms := []build.Field{typeField("Fixed", build.Local("Trade.Deal:Terms.Fixed"))}
		var more []build.Field
		if i > 0 {
			dayCounts = append(dayCounts, "ActAct")
			terms = append(terms, typeField("Floating", build.Text))
			more = append(more, typeField("legs", build.Optional(build.Local("Trade.Deal:Leg"))))
		}
		if name == "trade-2-fork" {
			more = append(more, typeField("venue", build.Optional(build.Text)))
		}
		deal := build.Module{Name: "Trade.Deal", Types: []build.DataType{
			build.Enum("DayCount", dayCounts...), build.Variant("Terms", terms...),
			build.Record("Terms.Fixed", typeField("coupon", decimalType), typeField("unit", build.Unit)),
			build.Record("Payment", typeField("due", build.Date), typeField("amount", decimalType)),
			build.Record("Leg", typeField("rate", build.Numeric(2)),
				typeField("next", build.Optional(build.Local("Trade.Deal:Leg")))),
			build.Record("Agreement", append([]build.Field{
				typeField("parties", pair(build.Party, build.Party)), typeField("serial", build.Int64),
				typeField("signed", build.Bool),
				typeField("tradeDate", build.Date), typeField("settlesAt", build.Timestamp), typeField("notional", decimalType),
				typeField("rate", build.Optional(decimalType)), typeField("dayCount", build.Local("Trade.Deal:DayCount")),
				typeField("master", build.ContractID(build.Local("Trade.Deal:Agreement"))),
				typeField("terms", build.Local("Trade.Deal:Terms")),
				typeField("schedule", build.GenMap(build.Int64, build.Local("Trade.Deal:Payment"))),
				typeField("labels", build.TextMap(build.Text)),
				typeField("nested", build.Optional(build.Optional(build.Int64))), typeField("lots", build.Numeric(0)),
				typeField("clauses", build.List(build.Text)),
			}, more...)...),
		}}
		deal.Templates = []build.Template{{
			Name: "Agreement",
			Choices: c.choices(&deal, "Agreement", metadata, choice{name: "Agreement_Settle", consuming: true},
				choice{name: "Agreement_Review"}),
		}}
		p := build.Package{Name: "trade", Version: versions[name], Modules: []build.Module{offer, deal}}
		if i > 0 {
			p.Upgrades = c["trade-1"].id
		}
		c.add(name, p)
	}
}

func (c compiler) registry() {
	entry := build.Module{Name: "Registry.Entry", Types: []build.DataType{
		metadataRecord,
		build.Record("Entry", typeField("registrar", build.Party), typeField("name", build.Text),
			typeField("value", build.Optional(build.Text)),
			typeField("previous", build.Optional(build.ContractID(build.Local("Registry.Entry:Entry")))),
			typeField("note", build.Text),
			typeField("tags", build.List(build.Text)), typeField("attributes", build.TextMap(build.Text)),
			typeField("meta", build.Local("Registry.Entry:Metadata"))),
	}}
	key := c.of("daml-prim-1", "DA.Types:Tuple2", build.Party, build.Text)
	entry.Templates = []build.Template{{
		Name: "Entry", Key: &key,
		Choices: c.choices(&entry, "Entry", build.Local("Registry.Entry:Metadata"), choice{name: "Entry_Replace",
			consuming: true}, choice{name: "Entry_Read"}),
	}}
	c.add("registry-1", build.Package{Name: "registry", Version: "1.0.0", Modules: []build.Module{entry}})
}

func (c compiler) amulet() {
	token := c.iface(tokenAPI, "Splice.Api.Token.HoldingV1:Holding")
	metadata := c.of(tokenAPI, "Splice.Api.Token.HoldingV1:Metadata")
	instrument := c.of(tokenAPI, "Splice.Api.Token.HoldingV1:InstrumentId")
	versions := []string{"0.1.15", "0.1.16"}
	for i, name := range []string{"splice-amulet-1", "splice-amulet-2"} {
		amulet := build.Module{Name: "Splice.Amulet", Types: []build.DataType{
			build.Record("Round", typeField("number", build.Int64)),
			build.Record("RatePerRound", typeField("rate", decimalType)),
			build.Record("ExpiringAmount", typeField("initialAmount", decimalType),
				typeField("createdAt", build.Local("Splice.Amulet:Round")),
				typeField("ratePerRound", build.Local("Splice.Amulet:RatePerRound"))),
			build.Record("TimeLock", typeField("holders", build.List(build.Party)), typeField("expiresAt", build.Timestamp),
				typeField("optContext", build.Optional(build.Text))),
			build.Record("Amulet", typeField("dso", build.Party), typeField("owner", build.Party),
				typeField("amount", build.Local("Splice.Amulet:ExpiringAmount"))),
			build.Record("LockedAmulet", typeField("amulet", build.Local("Splice.Amulet:Amulet")),
				typeField("lock", build.Local("Splice.Amulet:TimeLock"))),
		}}
		amulet.Templates = []build.Template{
			{
				Name: "Amulet", Implements: []build.Ref{token},
				Choices: c.choices(&amulet, "Amulet", metadata, choice{name: "Amulet_Transfer", consuming: true},
					choice{name: "Amulet_Expire", consuming: true}),
			}, {
				Name: "LockedAmulet", Implements: []build.Ref{token},
				Choices: c.choices(&amulet, "LockedAmulet", metadata,
					choice{name: "LockedAmulet_Unlock", consuming: true}, choice{name: "LockedAmulet_ExpireAmulet", consuming: true}),
			},
		}
		instruction := build.Module{Name: "Splice.AmuletTransferInstruction", Types: []build.DataType{
			build.Record("Transfer", typeField("sender", build.Party), typeField("receiver", build.Party),
				typeField("amount", decimalType),
				typeField("instrumentId", instrument), typeField("requestedAt", build.Timestamp),
				typeField("executeBefore", build.Timestamp),
				typeField("inputHoldingCids", build.List(build.ContractID(build.Local("Splice.Amulet:Amulet")))),
				typeField("meta", metadata)),
			build.Record("AmuletTransferInstruction",
				typeField("lockedAmulet", build.ContractID(build.Local("Splice.Amulet:LockedAmulet"))),
				typeField("transfer", build.Local("Splice.AmuletTransferInstruction:Transfer"))),
		}}
		instruction.Templates = []build.Template{{
			Name: "AmuletTransferInstruction",
			Choices: c.choices(&instruction, "AmuletTransferInstruction", metadata, choice{name: "TransferInstruction_Accept",
				consuming: true},
				choice{name: "TransferInstruction_Withdraw", consuming: true}, choice{name: "TransferInstruction_Reject",
					consuming: true}),
		}}
		p := build.Package{Name: "splice-amulet", Version: versions[i], Modules: []build.Module{amulet, instruction}}
		if i > 0 {
			p.Upgrades = c["splice-amulet-1"].id
		}
		c.add(name, p)
	}
}

// others are packages that no ledger uses.
func (c compiler) others() {
	for name, version := range map[string]string{"audit-api": "1.0.0", "audit": "1.0.0", "orphan": "0.9.0"} {
		c.add(name+"-1", build.Package{Name: name, Version: version, Modules: []build.Module{{
			Name: "Main", Types: []build.DataType{build.Record("Report", typeField("text", build.Text))},
		}}})
	}
}
