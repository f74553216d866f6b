package sandbox

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

// moved adds a reassignments row for one half.
func (t *truth) moved(on facts, n int32, offset int64, node int32, s *sight, assigned bool) {
	m := &t.reassignments[n]
	r := on.with(t.contracts[m.contract].kind.columns(Row{
		"ledger_offset": number(offset), "node_id": number(node), "kind": "assigned",
		"contract_id":            string(t.contractID(nil, m.contract)),
		"reassignment_id":        string(t.reassignmentID(nil, n)),
		"source_synchronizer_id": t.synchronizers[m.source], "target_synchronizer_id": t.synchronizers[m.target],
		"submitter": "", "reassignment_counter": number(m.counter), "assignment_exclusivity": nil,
		"witness_parties": t.texts(s.shown.list()),
	}))
	if m.submitter >= 0 {
		r["submitter"] = t.parties[m.submitter]
	}
	if !assigned {
		r["kind"] = "unassigned"
		if m.exclusive {
			r["assignment_exclusivity"] = instant(t.exclusivity(m))
		}
	}
	t.add("reassignments", r)
}
