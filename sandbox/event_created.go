package sandbox

// representative returns the package id that stands for the contract's in its CreatedEvent: mostly the one it was
// created with, sometimes another version of it.
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

// created adds a created_events row and those of its interface views.
func (t *truth) created(on facts, n int32, offset int64, node int32, s *sight, origin string) Row {
	c := &t.contracts[n]
	r := on.with(c.kind.columns(Row{
		"ledger_offset": number(offset), "node_id": number(node), "origin": origin,
		"contract_id": string(t.contractID(nil, n)), "package_id": c.kind.packageID(),
		"representative_package_id": t.representative(n), "payload": nil, "contract_key": nil,
		"contract_key_hash": nil, "signatories": t.texts(c.parties[:c.signatories]),
		"observers":       t.texts(c.stakeholders()[c.signatories:]),
		"witness_parties": t.texts(s.shown.list()), "created_at": instant(t.view.updates[c.created].effective()),
		"acs_delta": s.acs, "created_event_blob": bytea(nil), "workflow_id": on["workflow_id"],
	}))
	if s.arguments {
		r["payload"] = value(t.appendPayload(nil, n))
		if c.kind.template().keyed {
			r["contract_key"] = value(t.appendKey(nil, n))
		}
	}
	if t.feat.contractKeyHash {
		r["contract_key_hash"] = bytea(t.keyHash(n, s))
	}
	if s.blob {
		r["created_event_blob"] = bytea(t.blob(n))
	}
	t.add("created_events", r)
	if origin == "transaction" {
		t.born[n] = offset
	}
	for _, i := range c.kind.template().interfaces {
		if s.views&(1<<i) != 0 {
			t.interfaceView(on, r, n, i)
		}
	}
	return r
}

func (t *truth) interfaceView(on facts, created Row, n int32, iface int) {
	r := on.with(Row{
		"ledger_offset": created["ledger_offset"], "node_id": created["node_id"], "contract_id": created["contract_id"],
		"interface_id": interfaces[iface].id(), "package_name": interfaces[iface].packageName,
		"module_name": interfaces[iface].module,
		"entity_name": interfaces[iface].entity, "view_value": nil, "status_code": number(0), "status_message": "",
		"status_details": []any{}, "implementation_package_id": nil,
	})
	if t.viewFails(n, iface) {
		r["status_code"], r["status_message"] = number(9), value([]byte(viewFailure))
		r["status_details"] = value(t.appendViewDetails(nil, n))
	} else {
		r["view_value"] = value(t.appendViewValue(nil, n, iface))
		if t.feat.contractKeyHash {
			r["implementation_package_id"] = t.representative(n)
		}
	}
	t.add("interface_views", r)
}

func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, "true"...)
	}
	return append(dst, "false"...)
}
