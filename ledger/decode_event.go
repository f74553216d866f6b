package ledger

// repeatedOffset is the update's offset as an event repeats it.
type repeatedOffset struct {
	offset Offset
	at     int // position in the text
}

// repeatedUpdateOffset reads the offset of an event, which repeats that of its update. It is compared when the update
// was read, because the update's own offset may follow its events. Servers may omit it, or send 0.
func (d *decoder) repeatedUpdateOffset() {
	repeated := repeatedOffset{offset: Offset(d.int64()), at: d.begun}
	switch {
	case repeated.offset == 0:
	case d.repeated[0].offset == 0:
		d.repeated[0] = repeated
	case d.repeated[1].offset == 0 && repeated.offset != d.repeated[0].offset:
		d.repeated[1] = repeated
	}
}

func (d *decoder) events(u *Update, variants *known[Update]) {
	for next := d.begin(); next && !d.refused; next = d.more() {
		begun := d.here()
		if raw := variants.variant(d, u); raw != nil && !d.refused {
			u.Unknown = append(u.Unknown, d.unknownEvent(begun, raw))
		}
	}
}
