package sandbox

// appendArchived appends an ArchivedEvent as it stands in a transaction.
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

func (t *truth) archived(on facts, u *update, e *event, s *sight) {
	r := on.with(e.served.columns(Row{
		"ledger_offset": number(u.offset), "node_id": number(e.node), "contract_id": string(t.contractID(nil, e.contract)),
		"package_id": e.served.packageID(),
		"choice":     nil, "acting_parties": nil,
		"witness_parties": t.texts(s.shown.list()), "acs_delta": s.acs, "implemented_interfaces": e.served.interfaceIDs(
			s.views),
	}))
	if t.filter.effects {
		r["choice"], r["acting_parties"] = e.served.template().choices[e.choice].name, t.texts([]uint16{e.actor})
	}
	t.add("archived_events", r)
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
