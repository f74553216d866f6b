package bench

import (
	"bytes"
	"strconv"
)

// copies is a data set again and again, each time with other offsets, update ids and contract ids, so that a ledger can be
// longer than what there is room for. Its offsets have as many digits in the first copy as in the last one.
type copies struct {
	data *dataset
	n    int
	span int64 // of offsets, from one copy to the next

	places []place // what changes, in the order of the text
	from   []int   // for each element, its first one
}

// place is where something stands that is another in each copy.
type place struct {
	at     int   // in the text
	offset int64 // the offset that stands there; 0: it is an id
}

// idDigits is how many digits of an id tell the copy. They are the first ones that an id of its kind does not share with
// others, and random in the data set.
const idDigits = 8

const updateIDPrefix = "1220" // of every update id

// The words that stand before what changes, and how many digits of an id after it are those of its kind.
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
	c := &copies{data: data, n: n, span: data.end() - data.offset(0) + 1}
	for i := range data.len() {
		c.from = append(c.from, len(c.places))
		text := data.slice(i, i+1)
		start := int(data.ends[i]) - len(text)
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
				p := place{at: start + at + len(w.word) + w.skip}
				if !w.isID {
					digits := text[at+len(w.word):]
					end := bytes.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
					p.offset, _ = strconv.ParseInt(string(digits[:end]), 10, 64) // digits: it is a number
				}
				c.places = append(c.places, p)
			}
			at++
		}
	}
	c.from = append(c.from, len(c.places))
	return c
}

func (c *copies) len() int   { return c.n * c.data.len() }
func (c *copies) end() int64 { return c.data.end() + int64(c.n-1)*c.span }

func (c *copies) offset(i int) int64 {
	return c.data.offset(i%c.data.len()) + int64(i/c.data.len())*c.span
}

func (c *copies) after(offset int64) int {
	number := min(max((offset-c.data.offset(0))/c.span, 0), int64(c.n-1))
	return int(number)*c.data.len() + c.data.after(offset-number*c.span)
}

// slice writes the elements out, which may be of several copies.
func (c *copies) slice(i, j int) []byte {
	var out []byte
	for i < j {
		number, at := i/c.data.len(), i%c.data.len()
		upTo := min(c.data.len(), at+j-i)
		if out != nil {
			out = append(out, ',')
		}
		start := len(out)
		text := c.data.slice(at, upTo)
		out = append(out, text...)
		c.change(out[start:], number, at, upTo, int(c.data.ends[upTo-1])-len(text))
		i += upTo - at
	}
	return out
}

// change makes elements of the data set, which begin at an offset of its text, those of a copy.
func (c *copies) change(text []byte, number, from, to, begin int) {
	var digits [20]byte
	for _, p := range c.places[c.from[from]:c.from[to]] {
		at := p.at - begin
		if p.offset > 0 {
			copy(text[at:], strconv.AppendInt(digits[:0], p.offset+int64(number)*c.span, 10))
			continue
		}
		mix(text[at:at+idDigits], number)
	}
}

// mix makes the digits of an id those of a copy, and back.
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

// find gives the place of an update by its id.
func (c *copies) find(key, value string) (i int, ok bool) {
	for number := range c.n {
		id := []byte(value)
		if len(id) >= len(updateIDPrefix)+idDigits {
			mix(id[len(updateIDPrefix):len(updateIDPrefix)+idDigits], number)
		}
		if i, ok := c.data.find(key, string(id)); ok {
			return number*c.data.len() + i, true
		}
	}
	return 0, false
}
