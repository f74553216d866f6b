package build

import "google.golang.org/protobuf/encoding/protowire"

// message is a message that is being written.
type message struct {
	b     []byte
	style Style
}

func (e *encoder) message() *message {
	m := &message{style: e.p.Style}
	if m.style.Unknown {
		m.b = protowire.AppendTag(m.b, 900, protowire.Fixed32Type)
		m.b = protowire.AppendFixed32(m.b, 1)
		m.b = protowire.AppendTag(m.b, 901, protowire.Fixed64Type)
		m.b = protowire.AppendFixed64(m.b, 1)
	}
	return m
}

// done returns what was written.
func (m *message) done() []byte {
	if m.style.Unknown {
		m.member(902, 1)
		m.bytes(903, []byte("no message"))
	}
	return m.b
}

// bytes writes a field of a message or a text.
func (m *message) bytes(num protowire.Number, value []byte) {
	m.b = protowire.AppendTag(m.b, num, protowire.BytesType)
	m.b = protowire.AppendBytes(m.b, value)
}

// all writes a repeated field.
func (m *message) all(num protowire.Number, values [][]byte) {
	for _, v := range values {
		m.bytes(num, v)
	}
}

// number writes a field of a number. As a server would, it leaves out 0.
func (m *message) number(num protowire.Number, n int) {
	if n != 0 {
		m.member(num, uint64(n))
	}
}

// member writes a number that is a member of a oneof, where 0 stands, too.
func (m *message) member(num protowire.Number, n uint64) {
	m.b = protowire.AppendTag(m.b, num, protowire.VarintType)
	m.b = protowire.AppendVarint(m.b, n)
}

// numbers writes a repeated number.
func (m *message) numbers(num protowire.Number, numbers []int) {
	var packed []byte
	for _, n := range numbers {
		if m.style.Unpacked {
			m.member(num, uint64(n))
		}
		packed = protowire.AppendVarint(packed, uint64(n))
	}
	if !m.style.Unpacked && len(packed) > 0 {
		m.bytes(num, packed)
	}
}
