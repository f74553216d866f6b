package ledger

// ExercisedEvent is the exercise of a choice in the LEDGER_EFFECTS shape. A consuming exercise archives its contract.
type ExercisedEvent struct {
	NodeID                int32
	ContractID            string
	TemplateID            string
	PackageName           string
	InterfaceID           *string
	Choice                string
	Argument              JSON
	Result                JSON
	ActingParties         []string
	Consuming             bool
	LastDescendantNodeID  int32
	WitnessParties        []string
	ACSDelta              *bool
	ImplementedInterfaces []string
	Extra                 JSON
}

// Table implements Element.
func (e *ExercisedEvent) Table() string { return "exercised" }

// Contract implements Element.
func (e *ExercisedEvent) Contract() string { return e.ContractID }

// Redact implements Element.
func (e *ExercisedEvent) Redact() { e.Argument, e.Result, e.Extra = nil, nil, nil }

var exercisedVariant = may("ExercisedEvent", func(d *decoder, _ *Update) {
	e := d.exercised.add()
	e.Extra = exercisedMembers.read(d, e)
	d.nodes = append(d.nodes, e.NodeID)
})

var exercisedMembers = membersOf(
	may("offset", func(d *decoder, _ *ExercisedEvent) { d.repeatedUpdateOffset() }),
	must("nodeId", func(d *decoder, e *ExercisedEvent) { e.NodeID = d.nodeID() }),
	must("contractId", func(d *decoder, e *ExercisedEvent) { e.ContractID = d.rareID() }),
	must("templateId", func(d *decoder, e *ExercisedEvent) { e.TemplateID = d.identifier() }),
	may("interfaceId", func(d *decoder, e *ExercisedEvent) { e.InterfaceID = d.optionalIdentifier() }),
	must("choice", func(d *decoder, e *ExercisedEvent) { e.Choice = *d.commonText() }),
	may("choiceArgument", func(d *decoder, e *ExercisedEvent) { e.Argument = d.payload() }),
	must("actingParties", func(d *decoder, e *ExercisedEvent) { e.ActingParties = d.partyList() }),
	must("consuming", func(d *decoder, e *ExercisedEvent) { e.Consuming = d.boolean() }),
	must("witnessParties", func(d *decoder, e *ExercisedEvent) { e.WitnessParties = d.partyList() }),
	must("lastDescendantNodeId", func(d *decoder, e *ExercisedEvent) { e.LastDescendantNodeID = d.nodeID() }),
	may("exerciseResult", func(d *decoder, e *ExercisedEvent) { e.Result = d.payload() }),
	must("packageName", func(d *decoder, e *ExercisedEvent) { e.PackageName = *d.commonText() }),
	may("implementedInterfaces", func(d *decoder, e *ExercisedEvent) { e.ImplementedInterfaces = d.interfaceList() }),
	may("acsDelta", func(d *decoder, e *ExercisedEvent) { e.ACSDelta = d.optionalBool() }), // 3.3 leaves it out
)

type networkExerciseEvent struct {
	*ExercisedEvent
	id       string
	children []string
}

var networkExercisedMembers = membersOf(
	must("event_type", func(d *decoder, _ *networkExerciseEvent) { d.value() }),
	must("event_id", func(d *decoder, e *networkExerciseEvent) { e.id = d.copyText(d.chars()) }),
	must("contract_id", func(d *decoder, e *networkExerciseEvent) { e.ContractID = d.rareID() }),
	must("template_id", func(d *decoder, e *networkExerciseEvent) { e.TemplateID = d.identifier() }),
	must("package_name", func(d *decoder, e *networkExerciseEvent) { e.PackageName = *d.commonText() }),
	must("choice", func(d *decoder, e *networkExerciseEvent) { e.Choice = *d.commonText() }),
	may("choice_argument", func(d *decoder, e *networkExerciseEvent) { e.Argument = d.payload() }),
	must("child_event_ids", func(d *decoder, e *networkExerciseEvent) { e.children = d.idList() }),
	may("exercise_result", func(d *decoder, e *networkExerciseEvent) { e.Result = d.payload() }),
	must("consuming", func(d *decoder, e *networkExerciseEvent) { e.Consuming = d.boolean() }),
	must("acting_parties", func(d *decoder, e *networkExerciseEvent) { e.ActingParties = d.partyList() }),
	may("interface_id", func(d *decoder, e *networkExerciseEvent) { e.InterfaceID = d.optionalIdentifier() }),
)
