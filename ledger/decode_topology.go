package ledger

// topologyEvents converts the events of a topology transaction. The server numbers none: their index serves as node
// id.
func (r *reader) topologyEvents(update *Update, events []wireTopologyEvent) error {
	update.Topology = sized[TopologyEvent](len(events))
	for i := range events {
		event, unknown, err := r.topologyEvent(int32(i), &events[i])
		if err != nil {
			return below(index("events", i), err)
		}
		update.Topology = append(update.Topology, event)
		if unknown != nil {
			update.Unknown = append(update.Unknown, *unknown)
		}
	}
	return nil
}

func (r *reader) topologyEvent(node int32, w *wireTopologyEvent) (TopologyEvent, *UnknownElement, error) {
	if w.Event == nil {
		return TopologyEvent{}, nil, below("event", errMissing)
	}
	v := w.Event
	unknown, err := variant(v.Unknown, v.Added != nil, v.Changed != nil, v.Revoked != nil, v.Onboarding != nil)
	if err != nil {
		return TopologyEvent{}, nil, below("event", err)
	}
	event := TopologyEvent{NodeID: node}
	var box *wireBox[wireAuthorization]
	var name string
	switch {
	case v.Added != nil:
		event.Kind, name, box = TopologyAdded, "ParticipantAuthorizationAdded", v.Added
	case v.Changed != nil:
		event.Kind, name, box = TopologyChanged, "ParticipantAuthorizationChanged", v.Changed
	case v.Revoked != nil:
		event.Kind, name, box = TopologyRevoked, "ParticipantAuthorizationRevoked", v.Revoked
	case v.Onboarding != nil:
		event.Kind, name, box = TopologyOnboarding, "ParticipantAuthorizationOnboarding", v.Onboarding
	default:
		element, err := newUnknown(unknown, v.Unknown)
		if err != nil {
			return event, nil, below("event", err)
		}
		element.NodeID = &node
		event.Kind = TopologyUnknown
		event.Extra = withEnvelope(nil, w.Unknown, "event", unknown, nil)
		return event, &element, nil
	}
	if box.Value == nil {
		return event, nil, below("event."+name+".value", errMissing)
	}
	o := object{reader: r}
	event.PartyID = o.requiredText("partyId", box.Value.PartyID)
	event.ParticipantID = o.requiredText("participantId", box.Value.ParticipantID)
	event.Permission = o.optionalText("participantPermission", box.Value.Permission)
	if event.Permission == nil && event.Kind != TopologyRevoked {
		o.fail("participantPermission", errMissing)
	}
	event.Extra = withEnvelope(o.unknown(box.Value.Unknown), w.Unknown, "event", name, box.Unknown)
	return event, nil, below("event."+name+".value", o.err)
}
