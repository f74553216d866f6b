package sandbox

// choice is a choice of a template. The templates, choices and interfaces of the simulated ledger are listed below.
// through is the interface that defines it, or -1.
type choice struct {
	name      string
	consuming bool
	through   int
}

// A template and the packages that hold it, oldest first: more than one package
// means that it was upgraded.
type template struct {
	packageName    string
	module, entity string
	packages       []string
	interfaces     []int
	keyed          bool
	choices        []choice
}

type interfaceDef struct {
	packageName    string
	module, entity string
	packageID      string
}

// Interfaces and templates of every simulated ledger. Package ids do not depend
// on the seed: packages are the same on every ledger.
const (
	ifaceHolding = iota
	ifaceLockable
	ifaceInstruction
	ifaceTokenHolding // of the token standard
)

const (
	templateAccount = iota
	templateHolding
	templateLockedHolding
	templateOffer
	templateAgreement
	templateEntry

	// The templates of the network's own token; only a movement creates them, and archives them (see movement).
	templateAmulet
	templateLockedAmulet
	templateTransferInstruction

	templateCount // of those that a participant's packages have

	// Templates of contracts that only parties hosted elsewhere have (see Options.Elsewhere).
	templateAllocation = iota - 1
	templateAllocationV2
	templatePreapproval
	templateSetupProposal
	templateOpenRound
	templateSummarizingRound
	templateIssuingRound
	templateClosedRound
	templateInitialPayment
	templatePayment
	templateIdleState
	templateNameRules
	templateNameEntry
	templateTransferCommand
	templateMemberTraffic

	// Coupons, which rewards are minted for (see coupons).
	templateAppReward
	templateRewardV2 // of an app, too
	templateValidatorReward
	templateLiveness // of a validator, too
	templateSVReward
	templateUnclaimedActivity
	templateDevelopmentFund

	allTemplates
)

var interfaces = []interfaceDef{
	{packageName: "bank-api", module: "Bank.Api.HoldingV1", entity: "Holding", packageID: packageID("bank-api-1")},
	{packageName: "bank-api", module: "Bank.Api.LockableV1", entity: "Lockable", packageID: packageID("bank-api-1")},
	{packageName: "trade-api", module: "Trade.Api.InstructionV1", entity: "Instruction",
		packageID: packageID("trade-api-1")},
	{packageName: "splice-api-token-holding-v1", module: "Splice.Api.Token.HoldingV1", entity: "Holding",
		packageID: packageID("splice-api-token-holding-v1-1")},
}

var (
	bankPackages     = []string{packageID("bank-1"), packageID("bank-2")}
	tradePackages    = []string{packageID("trade-1"), packageID("trade-2")}
	registryPackages = []string{packageID("registry-1")}
	amuletPackages   = []string{packageID("splice-amulet-1"), packageID("splice-amulet-2")}
	paymentsPackages = []string{packageID("splice-wallet-payments-1")}
	namesPackages    = []string{packageID("splice-amulet-name-service-1")}
)

// archived returns a template of which the simulated ledger exercises nothing but Archive.
func archived(packageName string, packages []string, module, entity string) template {
	return template{packageName: packageName, module: module, entity: entity, packages: packages,
		choices: []choice{choiceArchive: {"Archive", true, -1}}}
}

var templates = []template{
	templateAccount: {
		packageName: "bank", module: "Bank.Account", entity: "Account", packages: bankPackages, keyed: true,
		choices: []choice{{"Archive", true, -1}, {"Account_Close", true, -1}, {"Account_Statement", false, -1}},
	},
	templateHolding: {
		packageName: "bank", module: "Bank.Cash", entity: "Holding", packages: bankPackages,
		interfaces: []int{ifaceHolding, ifaceTokenHolding},
		choices: []choice{{"Archive", true, -1}, {"Holding_Transfer", true, ifaceHolding}, {"Holding_Split", true, -1},
			{"Holding_Check", false, ifaceHolding}},
	},
	templateLockedHolding: {
		packageName: "bank", module: "Bank.Cash", entity: "LockedHolding", packages: bankPackages,
		interfaces: []int{ifaceHolding, ifaceLockable, ifaceTokenHolding},
		choices: []choice{{"Archive", true, -1}, {"Lockable_Unlock", true, ifaceLockable},
			{"LockedHolding_Expire", true, -1}, {"Lockable_Remaining", false, ifaceLockable}},
	},
	templateOffer: {
		packageName: "trade", module: "Trade.Offer", entity: "Offer", packages: tradePackages,
		interfaces: []int{ifaceInstruction},
		choices: []choice{{"Archive", true, -1}, {"Instruction_Accept", true, ifaceInstruction},
			{"Offer_Withdraw", true, -1}, {"Offer_Quote", false, -1}},
	},
	templateAgreement: {
		packageName: "trade", module: "Trade.Deal", entity: "Agreement", packages: tradePackages,
		choices: []choice{{"Archive", true, -1}, {"Agreement_Settle", true, -1}, {"Agreement_Review", false, -1}},
	},
	templateEntry: {
		packageName: "registry", module: "Registry.Entry", entity: "Entry", packages: registryPackages, keyed: true,
		choices: []choice{{"Archive", true, -1}, {"Entry_Replace", true, -1}, {"Entry_Read", false, -1}},
	},
	templateAmulet: {
		packageName: "splice-amulet", module: "Splice.Amulet", entity: "Amulet", packages: amuletPackages,
		interfaces: []int{ifaceTokenHolding},
		choices: []choice{choiceArchive: {"Archive", true, -1}, choiceTransfer: {"Amulet_Transfer", true, -1},
			choiceExpire: {"Amulet_Expire", true, -1}},
	},
	templateLockedAmulet: {
		packageName: "splice-amulet", module: "Splice.Amulet", entity: "LockedAmulet", packages: amuletPackages,
		interfaces: []int{ifaceTokenHolding},
		choices: []choice{choiceArchive: {"Archive", true, -1}, choiceUnlock: {"LockedAmulet_Unlock", true, -1},
			choiceExpire: {"LockedAmulet_ExpireAmulet", true, -1}},
	},
	templateTransferInstruction: {
		packageName: "splice-amulet", module: "Splice.AmuletTransferInstruction", entity: "AmuletTransferInstruction",
		packages: amuletPackages,
		choices: []choice{
			choiceArchive: {"Archive", true, -1}, choiceAccept: {"TransferInstruction_Accept", true, -1},
			choiceWithdraw: {"TransferInstruction_Withdraw", true, -1}, choiceReject: {"TransferInstruction_Reject", true, -1},
		},
	},

	templateAllocation:   archived("splice-amulet", amuletPackages, "Splice.AmuletAllocation", "AmuletAllocation"),
	templateAllocationV2: archived("splice-amulet", amuletPackages, "Splice.AmuletAllocationV2", "AmuletAllocationV2"),
	templatePreapproval:  archived("splice-amulet", amuletPackages, "Splice.AmuletRules", "TransferPreapproval"),
	templateSetupProposal: archived("splice-amulet", amuletPackages, "Splice.AmuletRules",
		"ExternalPartySetupProposal"),
	templateOpenRound:        archived("splice-amulet", amuletPackages, "Splice.Round", "OpenMiningRound"),
	templateSummarizingRound: archived("splice-amulet", amuletPackages, "Splice.Round", "SummarizingMiningRound"),
	templateIssuingRound:     archived("splice-amulet", amuletPackages, "Splice.Round", "IssuingMiningRound"),
	templateClosedRound:      archived("splice-amulet", amuletPackages, "Splice.Round", "ClosedMiningRound"),
	templateInitialPayment: archived("splice-wallet-payments", paymentsPackages, "Splice.Wallet.Subscriptions",
		"SubscriptionInitialPayment"),
	templatePayment: archived("splice-wallet-payments", paymentsPackages, "Splice.Wallet.Subscriptions",
		"SubscriptionPayment"),
	templateIdleState: archived("splice-wallet-payments", paymentsPackages, "Splice.Wallet.Subscriptions",
		"SubscriptionIdleState"),
	templateNameRules: archived("splice-amulet-name-service", namesPackages, "Splice.Ans", "AnsRules"),
	templateNameEntry: archived("splice-amulet-name-service", namesPackages, "Splice.Ans", "AnsEntry"),
	templateTransferCommand: archived("splice-amulet", amuletPackages, "Splice.ExternalPartyAmuletRules",
		"TransferCommand"),
	templateMemberTraffic: archived("splice-amulet", amuletPackages, "Splice.DecentralizedSynchronizer", "MemberTraffic"),

	templateAppReward:       archived("splice-amulet", amuletPackages, "Splice.Amulet", "AppRewardCoupon"),
	templateRewardV2:        archived("splice-amulet", amuletPackages, "Splice.Amulet", "RewardCouponV2"),
	templateValidatorReward: archived("splice-amulet", amuletPackages, "Splice.Amulet", "ValidatorRewardCoupon"),
	templateLiveness: archived("splice-amulet", amuletPackages, "Splice.ValidatorLicense",
		"ValidatorLivenessActivityRecord"),
	templateSVReward:          archived("splice-amulet", amuletPackages, "Splice.Amulet", "SvRewardCoupon"),
	templateUnclaimedActivity: archived("splice-amulet", amuletPackages, "Splice.Amulet", "UnclaimedActivityRecord"),
	templateDevelopmentFund:   archived("splice-amulet", amuletPackages, "Splice.Amulet", "DevelopmentFundCoupon"),
}

// Choices of the templates of amulets.
const (
	choiceArchive = 0

	choiceTransfer = 1
	choiceUnlock   = 1
	choiceExpire   = 2

	choiceAccept   = 1
	choiceWithdraw = 2
	choiceReject   = 3
)

// kind is a template as one of its packages has it: template*2 + package.
type kind uint8

const kindCount = 2 * allTemplates

func kindOf(template, version int) kind { return kind(template*2 + version) }

func (k kind) template() *template { return &templates[k/2] }
func (k kind) version() int        { return int(k % 2) }
func (k kind) exists() bool        { return k.version() < len(k.template().packages) }
func (k kind) packageID() string   { return k.template().packages[k.version()] }
func (k kind) id() string          { return kindIDs[k] }
func (k kind) isAmulet() bool      { return k/2 >= templateAmulet }
func (k kind) holdsAmulet() bool   { return k/2 == templateAmulet || k/2 == templateLockedAmulet }
func (i interfaceDef) id() string  { return i.packageID + ":" + i.module + ":" + i.entity }

// kindIDs holds the served form of the template id of every kind that exists.
var kindIDs = func() (ids [kindCount]string) {
	for k := range kind(kindCount) {
		if k.exists() {
			t := k.template()
			ids[k] = k.packageID() + ":" + t.module + ":" + t.entity
		}
	}
	return ids
}()

// implements reports whether the template has the interface.
func (t *template) implements(iface int) bool {
	for _, i := range t.interfaces {
		if i == iface {
			return true
		}
	}
	return false
}

// TemplateNames returns the templates of every simulated participant in the form that
// filters take: "#package-name:Module:Entity".
func TemplateNames() []string {
	names := make([]string, templateCount)
	for i, t := range templates[:templateCount] {
		names[i] = "#" + t.packageName + ":" + t.module + ":" + t.entity
	}
	return names
}

// InterfaceNames returns the interfaces of every simulated ledger in the form that
// filters take: "#package-name:Module:Entity".
func InterfaceNames() []string {
	names := make([]string, len(interfaces))
	for i, d := range interfaces {
		names[i] = "#" + d.packageName + ":" + d.module + ":" + d.entity
	}
	return names
}
