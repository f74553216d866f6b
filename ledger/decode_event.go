package ledger

// events converts the events of a transaction.
func (r *reader) events(update *Update, events []wireEvent) error {
	var created, archived, exercised int
	for i := range events {
		switch {
		case events[i].Created != nil:
			created++
		case events[i].Archived != nil:
			archived++
		case events[i].Exercised != nil:
			exercised++
		}
	}
	update.Created = sized[CreatedEvent](created)
	update.Archived = sized[ArchivedEvent](archived)
	update.Exercised = sized[ExercisedEvent](exercised)
	nodes := make([]int32, 0, len(events))
	for i := range events {
		w := &events[i]
		unknown, err := variant(w.Unknown, w.Created != nil, w.Archived != nil, w.Exercised != nil)
		if err != nil {
			return below(index("events", i), err)
		}
		switch {
		case w.Created != nil:
			event, err := r.created(w.Created, OriginTransaction, update.Offset)
			if err != nil {
				return below(index("events", i)+".CreatedEvent", err)
			}
			nodes = append(nodes, event.NodeID)
			update.Created = append(update.Created, event)
		case w.Archived != nil:
			event, err := r.archived(w.Archived, update.Offset)
			if err != nil {
				return below(index("events", i)+".ArchivedEvent", err)
			}
			nodes = append(nodes, event.NodeID)
			update.Archived = append(update.Archived, event)
		case w.Exercised != nil:
			event, err := r.exercised(w.Exercised, update.Offset)
			if err != nil {
				return below(index("events", i)+".ExercisedEvent", err)
			}
			nodes = append(nodes, event.NodeID)
			update.Exercised = append(update.Exercised, event)
		default:
			event, err := unknownEvent(unknown, w.Unknown)
			if err != nil {
				return below(index("events", i), err)
			}
			update.Unknown = append(update.Unknown, event)
		}
	}
	return below("events", checkDistinct(nodes))
}

// sized is an empty slice with room for n, nil where n is zero.
func sized[T any](n int) []T {
	if n == 0 {
		return nil
	}
	return make([]T, 0, n)
}

// created converts a creation. In an update its offset is that of the update; a snapshot's entries bring their own,
// and update is zero.
func (r *reader) created(w *wireCreated, origin Origin, update Offset) (CreatedEvent, error) {
	o := object{reader: r}
	if origin == OriginSnapshot {
		update = o.updateOffset("offset", w.Offset)
	} else {
		o.sameOffset("offset", w.Offset, update)
	}
	event := CreatedEvent{
		Offset:                  update,
		NodeID:                  o.nodeID("nodeId", w.NodeID),
		Origin:                  origin,
		ContractID:              o.unique("contractId", w.ContractID),
		TemplateID:              o.identifier("templateId", w.TemplateID),
		PackageName:             o.shared("packageName", w.PackageName),
		RepresentativePackageID: o.optionalShared("representativePackageId", w.RepresentativePackageID), // 3.3 leaves it out
		Argument:                o.payload(w.CreateArgument),
		ContractKey:             o.payload(w.ContractKey),
		ContractKeyHash:         o.bytes("contractKeyHash", w.ContractKeyHash),
		Signatories:             o.requiredTexts("signatories", w.Signatories),
		Observers:               o.texts("observers", w.Observers),
		WitnessParties:          o.requiredTexts("witnessParties", w.WitnessParties),
		CreatedAt:               o.time("createdAt", w.CreatedAt),
		ACSDelta:                o.optionalBool("acsDelta", w.ACSDelta), // 3.3 leaves it out
		Blob:                    o.bytes("createdEventBlob", w.CreatedEventBlob),
		Extra:                   o.unknown(w.Unknown),
	}
	if w.InterfaceViews != nil {
		event.InterfaceViews = make([]InterfaceView, len(w.InterfaceViews))
	}
	for i := range w.InterfaceViews {
		view, err := r.view(&w.InterfaceViews[i])
		if err != nil {
			o.fail(index("interfaceViews", i), err)
			break
		}
		event.InterfaceViews[i] = view
	}
	return event, o.err
}

func (r *reader) view(w *wireView) (InterfaceView, error) {
	o := object{reader: r}
	view := InterfaceView{
		InterfaceID:             o.identifier("interfaceId", w.InterfaceID),
		Value:                   o.payload(w.ViewValue),
		ImplementationPackageID: o.optionalShared("implementationPackageId", w.ImplementationPackageID),
		Extra:                   o.unknown(w.Unknown),
	}
	if w.ViewStatus == nil {
		o.fail("viewStatus", errMissing)
		return view, o.err
	}
	code := o.int32("viewStatus.code", w.ViewStatus.Code)
	message := o.requiredText("viewStatus.message", w.ViewStatus.Message)
	view.StatusCode, view.StatusMessage = &code, message
	view.StatusDetails = o.array("viewStatus.details", w.ViewStatus.Details)
	view.Extra = appendMember(view.Extra, extraStatus, w.ViewStatus.Unknown)
	return view, o.err
}

func (r *reader) archived(w *wireArchived, update Offset) (ArchivedEvent, error) {
	o := object{reader: r}
	o.sameOffset("offset", w.Offset, update)
	event := ArchivedEvent{
		NodeID:                o.nodeID("nodeId", w.NodeID),
		ContractID:            o.unique("contractId", w.ContractID),
		TemplateID:            o.identifier("templateId", w.TemplateID),
		PackageName:           o.shared("packageName", w.PackageName),
		WitnessParties:        o.requiredTexts("witnessParties", w.WitnessParties),
		ImplementedInterfaces: o.interfaces("implementedInterfaces", w.ImplementedInterfaces),
		Extra:                 o.unknown(w.Unknown),
	}
	return event, o.err
}

func (r *reader) exercised(w *wireExercised, update Offset) (ExercisedEvent, error) {
	o := object{reader: r}
	o.sameOffset("offset", w.Offset, update)
	event := ExercisedEvent{
		NodeID:                o.nodeID("nodeId", w.NodeID),
		ContractID:            o.unique("contractId", w.ContractID),
		TemplateID:            o.identifier("templateId", w.TemplateID),
		PackageName:           o.shared("packageName", w.PackageName),
		InterfaceID:           o.optionalIdentifier("interfaceId", w.InterfaceID),
		Choice:                o.shared("choice", w.Choice),
		Argument:              o.payload(w.ChoiceArgument),
		Result:                o.payload(w.ExerciseResult),
		ActingParties:         o.requiredTexts("actingParties", w.ActingParties),
		Consuming:             o.boolean("consuming", w.Consuming),
		LastDescendantNodeID:  o.nodeID("lastDescendantNodeId", w.LastDescendantNodeID),
		WitnessParties:        o.requiredTexts("witnessParties", w.WitnessParties),
		ACSDelta:              o.optionalBool("acsDelta", w.ACSDelta), // 3.3 leaves it out
		ImplementedInterfaces: o.interfaces("implementedInterfaces", w.ImplementedInterfaces),
		Extra:                 o.unknown(w.Unknown),
	}
	return event, o.err
}
