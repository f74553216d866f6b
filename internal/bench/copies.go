package bench

import (
	"bytes"
	"strconv"
)

// copies repeats a data set with other offsets, update ids and contract ids, so that a ledger can be larger than the data
// set. Offsets have the same number of digits in all copies.
type copies struct {
	data *dataset
	n    int
	span int64 // of offsets, from one copy to the next

	edits []edit // what changes, in the order of the text
	from  []int  // for each element, the index of its first edit
}

// edit is a part of an element that differs in each copy.
type edit struct {
	at     int   // in the element
	offset int64 // the offset at this position; 0: an id
}

// idDigits is how many digits of an id identify the copy. They are the first ones after the prefix of ids of its kind, and
// random in the data set.
const idDigits = 8

const updateIDPrefix = "1220" // of every update id

// The words before what changes, and the length of the prefix of an id after them.
var changing = []struct {
	word string
	skip int
	isID bool
}{
	{word: `"offset":`},
	{word: `"updateId":"`, skip: len(updateIDPrefix), isID: true},
	{word: `"contractId":"`, skip: len("00"), isID: true},
}

func newCopies(data *dataset, n int) *copies {
	c := &copies{data: data, n: n, span: data.End() - data.Offset(0) + 1}
	for i := range data.Len() {
		c.from = append(c.from, len(c.edits))
		text := data.Element(i)
		for at := 0; at < len(text); {
			quote := bytes.IndexByte(text[at:], '"')
			if quote < 0 {
				break
			}
			at += quote
			for _, w := range changing {
				if !bytes.HasPrefix(text[at:], []byte(w.word)) {
					continue
				}
				p := edit{at: at + len(w.word) + w.skip}
				if !w.isID {
					digits := text[at+len(w.word):]
					end := bytes.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
					p.offset, _ = strconv.ParseInt(string(digits[:end]), 10, 64) // can't fail for digits
				}
				c.edits = append(c.edits, p)
			}
			at++
		}
	}
	c.from = append(c.from, len(c.edits))
	return c
}

// Len implements sandbox.Elements, as the methods below do.
func (c *copies) Len() int   { return c.n * c.data.Len() }
func (c *copies) End() int64 { return c.data.End() + int64(c.n-1)*c.span }

func (c *copies) Offset(i int) int64 {
	return c.data.Offset(i%c.data.Len()) + int64(i/c.data.Len())*c.span
}

func (c *copies) After(offset int64) int {
	number := min(max((offset-c.data.Offset(0))/c.span, 0), int64(c.n-1))
	return int(number)*c.data.Len() + c.data.After(offset-number*c.span)
}

// Element returns an element of the data set with the offsets and ids of its copy.
func (c *copies) Element(i int) []byte {
	number, at := i/c.data.Len(), i%c.data.Len()
	text := bytes.Clone(c.data.Element(at))
	var digits [20]byte
	for _, p := range c.edits[c.from[at]:c.from[at+1]] {
		if p.offset > 0 {
			copy(text[p.at:], strconv.AppendInt(digits[:0], p.offset+int64(number)*c.span, 10))
			continue
		}
		mix(text[p.at:p.at+idDigits], number)
	}
	return text
}

// mix changes the digits of an id to those of a copy, and back.
func mix(digits []byte, number int) {
	for i := range digits {
		digits[i] = hex(unhex(digits[i]) ^ byte(number>>(4*i)&0xf))
	}
}

func hex(n byte) byte { return "0123456789abcdef"[n&0xf] }

func unhex(digit byte) byte {
	if digit >= 'a' {
		return digit - 'a' + 10
	}
	return digit - '0'
}

// Named returns the index of the update with an id.
func (c *copies) Named(updateID string) (i int, ok bool) {
	for number := range c.n {
		id := []byte(updateID)
		if len(id) >= len(updateIDPrefix)+idDigits {
			mix(id[len(updateIDPrefix):len(updateIDPrefix)+idDigits], number)
		}
		if i, ok := c.data.Named(string(id)); ok {
			return number*c.data.Len() + i, true
		}
	}
	return 0, false
}
