package sandbox

// appendExercised appends an ExercisedEvent as it stands in a transaction.
func (v *view) appendExercised(dst []byte, u *update, index int, e *event, s *sight) []byte {
	ch := e.served.template().choices[e.choice]
	dst = append(dst, `{"offset":`...)
	dst = appendInt(dst, u.offset)
	dst = append(dst, `,"nodeId":`...)
	dst = appendInt(dst, int64(e.node))
	dst = append(dst, `,"contractId":"`...)
	dst = v.contractID(dst, e.contract)
	dst = append(dst, `","templateId":"`...)
	dst = append(dst, e.served.id()...)
	dst = append(dst, `","interfaceId":`...)
	if ch.through < 0 {
		dst = append(dst, "null"...)
	} else {
		dst = appendQuoted(dst, interfaces[ch.through].id())
	}
	dst = append(dst, `,"choice":"`...)
	dst = append(dst, ch.name...)
	dst = append(dst, `","choiceArgument":`...)
	dst = v.appendChoiceArgument(dst, index, e)
	dst = append(dst, `,"actingParties":[`...)
	dst = append(dst, v.quoted[e.actor]...)
	dst = append(dst, `],"consuming":`...)
	dst = appendBool(dst, ch.consuming)
	dst = append(dst, `,"witnessParties":`...)
	dst = v.appendParties(dst, s.shown.list())
	dst = append(dst, `,"lastDescendantNodeId":`...)
	dst = appendInt(dst, int64(e.last))
	dst = append(dst, `,"exerciseResult":`...)
	dst = v.appendExerciseResult(dst, index, e)
	dst = append(dst, `,"packageName":"`...)
	dst = append(dst, e.served.template().packageName...)
	dst = append(dst, `","implementedInterfaces":`...)
	views := s.views
	if !ch.consuming {
		views = 0
	}
	dst = appendInterfaces(dst, e.served, views)
	dst = append(dst, `,"acsDelta":`...)
	dst = appendBool(dst, s.acs)
	return append(dst, '}')
}

func (t *truth) exercised(on facts, i int, u *update, e *event, s *sight) {
	ch := e.served.template().choices[e.choice]
	r := on.with(e.served.columns(Row{
		"ledger_offset": number(u.offset), "node_id": number(e.node), "contract_id": string(t.contractID(nil, e.contract)),
		"package_id":   e.served.packageID(),
		"interface_id": nil, "choice": ch.name, "choice_argument": value(t.appendChoiceArgument(nil, i, e)),
		"exercise_result": value(t.appendExerciseResult(nil, i, e)), "acting_parties": t.texts([]uint16{e.actor}),
		"consuming": ch.consuming, "last_descendant_node_id": number(e.last), "witness_parties": t.texts(s.shown.list()),
		"acs_delta": s.acs, "implemented_interfaces": []any{},
	}))
	if ch.through >= 0 {
		r["interface_id"] = interfaces[ch.through].id()
	}
	if ch.consuming {
		r["implemented_interfaces"] = e.served.interfaceIDs(s.views)
	}
	t.add("exercised_events", r)
}
