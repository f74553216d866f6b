package sandbox

func (v *view) appendEvent(dst []byte, u *update, index int, e *event, s *sight, f *updateFilter,
	feat *features) []byte {
	switch {
	case e.choice < 0:
		dst = append(dst, `{"CreatedEvent":`...)
		dst = v.appendCreated(dst, e.contract, u.offset, e.node, s, feat)
	case f.effects:
		dst = append(dst, `{"ExercisedEvent":`...)
		dst = v.appendExercised(dst, u, index, e, s)
	default:
		dst = append(dst, `{"ArchivedEvent":`...)
		dst = v.appendArchived(dst, u, e, s)
	}
	return append(dst, '}')
}

// representative returns the package id that stands for the contract's: mostly the one
// it was created with, sometimes another version of it.
func (v *view) representative(number int32) string {
	k := v.contracts[number].kind
	if other := k ^ 1; other.exists() && mix(v.seed+uint64(number))%16 == 0 {
		return other.packageID()
	}
	return k.packageID()
}

// appendCreated appends a CreatedEvent as it stands in a transaction, an
// assignment or a snapshot.
func (v *view) appendCreated(dst []byte, number int32, offset int64, node int32, s *sight, feat *features) []byte {
	c := &v.contracts[number]
	t := c.kind.template()
	dst = append(dst, `{"offset":`...)
	dst = appendInt(dst, offset)
	dst = append(dst, `,"nodeId":`...)
	dst = appendInt(dst, int64(node))
	dst = append(dst, `,"contractId":"`...)
	dst = v.contractID(dst, number)
	dst = append(dst, `","templateId":"`...)
	dst = append(dst, c.kind.id()...)
	dst = append(dst, `","contractKey":`...)
	if t.keyed && s.arguments {
		dst = v.appendKey(dst, number)
	} else {
		dst = append(dst, "null"...)
	}
	if feat.contractKeyHash {
		dst = append(dst, `,"contractKeyHash":`...)
		dst = appendBase64(dst, v.keyHash(number, s))
	}
	dst = append(dst, `,"createArgument":`...)
	if s.arguments {
		dst = v.appendPayload(dst, number)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"createdEventBlob":`...)
	if s.blob {
		dst = appendBase64(dst, v.blob(number))
	} else {
		dst = append(dst, `""`...)
	}
	dst = append(dst, `,"interfaceViews":[`...)
	first := true
	for _, i := range t.interfaces {
		if s.views&(1<<i) == 0 {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = v.appendView(dst, number, i, feat)
	}
	dst = append(dst, `],"witnessParties":`...)
	dst = v.appendParties(dst, s.shown.list())
	dst = append(dst, `,"signatories":`...)
	dst = v.appendParties(dst, c.parties[:c.signatories])
	dst = append(dst, `,"observers":`...)
	dst = v.appendParties(dst, c.stakeholders()[c.signatories:])
	dst = append(dst, `,"createdAt":"`...)
	dst = appendInstant(dst, v.updates[c.created].effective())
	dst = append(dst, `","packageName":"`...)
	dst = append(dst, t.packageName...)
	dst = append(dst, `","representativePackageId":"`...)
	if s.lookup {
		dst = append(dst, c.kind.packageID()...)
	} else {
		dst = append(dst, v.representative(number)...)
	}
	dst = append(dst, `","acsDelta":`...)
	dst = appendBool(dst, s.acs)
	return append(dst, '}')
}

func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, "true"...)
	}
	return append(dst, "false"...)
}

// keyHash is empty for a contract without a key, and where the key is not shown.
func (v *view) keyHash(number int32, s *sight) []byte {
	if !s.arguments || !v.contracts[number].kind.template().keyed {
		return nil
	}
	r := derive(v.seed, domainKeyHash, uint64(number))
	return r.bytes(nil, 32)
}

func (v *view) blob(number int32) []byte {
	r := derive(v.seed, domainBlob, uint64(number))
	return r.bytes(nil, 240+r.intn(120))
}

func (v *view) appendArchived(dst []byte, u *update, e *event, s *sight) []byte {
	dst = append(dst, `{"offset":`...)
	dst = appendInt(dst, u.offset)
	dst = append(dst, `,"nodeId":`...)
	dst = appendInt(dst, int64(e.node))
	dst = append(dst, `,"contractId":"`...)
	dst = v.contractID(dst, e.contract)
	dst = append(dst, `","templateId":"`...)
	dst = append(dst, e.served.id()...)
	dst = append(dst, `","witnessParties":`...)
	dst = v.appendParties(dst, s.shown.list())
	dst = append(dst, `,"packageName":"`...)
	dst = append(dst, e.served.template().packageName...)
	dst = append(dst, `","implementedInterfaces":`...)
	dst = appendInterfaces(dst, e.served, s.views)
	return append(dst, '}')
}

// appendInterfaces appends the ids of the interfaces of a template whose views were
// asked for.
func appendInterfaces(dst []byte, k kind, views uint8) []byte {
	dst = append(dst, '[')
	first := true
	for _, i := range k.template().interfaces {
		if views&(1<<i) != 0 {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = appendQuoted(dst, interfaces[i].id())
		}
	}
	return append(dst, ']')
}

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

// appendAssigned appends an assigned event, as updates and snapshots have it.
func (v *view) appendAssigned(dst []byte, number int32, offset int64, node int32, s *sight, feat *features) []byte {
	r := &v.reassignments[number]
	dst = append(dst, '{')
	dst = v.appendMove(dst, number, r)
	dst = append(dst, `,"createdEvent":`...)
	dst = v.appendCreated(dst, r.contract, offset, node, s, feat)
	return append(dst, '}')
}

// appendMove appends what both halves of a reassignment have.
func (v *view) appendMove(dst []byte, number int32, r *reassignment) []byte {
	dst = append(dst, `"source":"`...)
	dst = append(dst, v.synchronizers[r.source]...)
	dst = append(dst, `","target":"`...)
	dst = append(dst, v.synchronizers[r.target]...)
	dst = append(dst, `","reassignmentId":"`...)
	dst = v.reassignmentID(dst, number)
	dst = append(dst, `","submitter":`...)
	if r.submitter < 0 {
		dst = append(dst, `""`...)
	} else {
		dst = append(dst, v.quoted[r.submitter]...)
	}
	dst = append(dst, `,"reassignmentCounter":`...)
	return appendInt(dst, int64(r.counter))
}

// exclusivity returns the assignment exclusivity of a reassignment that has one.
func (v *view) exclusivity(r *reassignment) int64 { return v.updates[r.unassigned].record + 60_000_000 }

func (v *view) appendUnassigned(dst []byte, number int32, s *sight) []byte {
	r := &v.reassignments[number]
	c := &v.contracts[r.contract]
	dst = append(dst, '{')
	dst = v.appendMove(dst, number, r)
	dst = append(dst, `,"contractId":"`...)
	dst = v.contractID(dst, r.contract)
	dst = append(dst, `","templateId":"`...)
	dst = append(dst, c.kind.id()...)
	dst = append(dst, `","assignmentExclusivity":`...)
	if r.exclusive {
		dst = append(dst, '"')
		dst = appendInstant(dst, v.exclusivity(r))
		dst = append(dst, '"')
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"witnessParties":`...)
	dst = v.appendParties(dst, s.shown.list())
	dst = append(dst, `,"packageName":"`...)
	dst = append(dst, c.kind.template().packageName...)
	dst = append(dst, `","offset":`...)
	dst = appendInt(dst, v.updates[r.unassigned].offset)
	dst = append(dst, `,"nodeId":`...)
	dst = appendInt(dst, int64(r.unassignedNode))
	return append(dst, '}')
}
