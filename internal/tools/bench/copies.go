package bench

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"
)

// copies repeats a data set with other offsets, update ids and contract ids, so that a ledger can be larger than the
// data set. Offsets have the same number of digits in all copies. Its records of a transaction history have other event
// ids.
type copies struct {
	data  *dataset
	n     int
	span  int64 // of offsets, from one copy to the next
	later later

	edits []edit // what changes, in the order of the text
	from  []int  // for each element, the index of its first edit
}

// later is by how much each copy is later than the one before. The zero value changes no times and no rounds.
type later struct {
	Time   time.Duration // whole seconds
	Rounds int64
}

// edit is a part of an element that differs in each copy.
type edit struct {
	at, end int // in the element
	kind    editKind
	value   int64 // an offset, a round, or a time in seconds since 1970
}

type editKind int

const (
	editID editKind = iota
	editNumber
	editRound
	editTime
)

// idDigits is how many digits of an id identify the copy. They are the first ones after the prefix of ids of its kind,
// and random in the data set.
const idDigits = 8

const updateIDPrefix = "1220" // of every update id

// secondsLayout is a time's text up to its seconds.
const secondsLayout = "2006-01-02T15:04:05"

// The words before what changes, and the length of the prefix of an id after them.
var changing = []struct {
	word string
	skip int
	kind editKind
}{
	{word: `"offset":`, kind: editNumber},
	{word: `"updateId":"`, skip: len(updateIDPrefix)},
	{word: `"contractId":"`, skip: len("00")},
	{word: `"event_id":"`, skip: len("#" + updateIDPrefix)},
	{word: `"round":`, kind: editRound},
	{word: `"recordTime":"`, kind: editTime},
	{word: `"effectiveAt":"`, kind: editTime},
	{word: `"createdAt":"`, kind: editTime},
	{word: `"date":"`, kind: editTime},
}

func newCopies(data *dataset, n int, l later) *copies {
	c := &copies{data: data, n: n, span: data.End() - data.Offset(0) + 1, later: l}
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
				if e, ok := l.editAt(text, at+len(w.word)+w.skip, w.kind); ok {
					c.edits = append(c.edits, e)
				}
			}
			at++
		}
	}
	c.from = append(c.from, len(c.edits))
	return c
}

// editAt returns what changes at a place of an element; ok is false where nothing does.
func (l later) editAt(text []byte, at int, kind editKind) (e edit, ok bool) {
	e = edit{at: at, end: at, kind: kind}
	switch kind {
	case editID:
		e.end = at + idDigits
		return e, true
	case editNumber, editRound:
		for e.end < len(text) && '0' <= text[e.end] && text[e.end] <= '9' {
			e.end++
		}
		var err error
		e.value, err = strconv.ParseInt(string(text[at:e.end]), 10, 64)
		return e, err == nil && (kind == editNumber || l.Rounds > 0)
	default:
		e.end = min(at+len(secondsLayout), len(text))
		found, err := time.Parse(secondsLayout, string(text[at:e.end]))
		e.value = found.Unix()
		return e, err == nil && l.Time > 0
	}
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

// Element returns an element of the data set with the offsets, ids, times and rounds of its copy.
func (c *copies) Element(i int) []byte {
	number, at := i/c.data.Len(), i%c.data.Len()
	text := c.data.Element(at)
	edited, done := make([]byte, 0, len(text)+idDigits), 0
	for _, e := range c.edits[c.from[at]:c.from[at+1]] {
		edited = append(edited, text[done:e.at]...)
		done = e.end
		switch e.kind {
		case editID:
			edited = append(edited, text[e.at:e.end]...)
			mix(edited[len(edited)-idDigits:], number)
		case editNumber:
			edited = strconv.AppendInt(edited, e.value+int64(number)*c.span, 10)
		case editRound:
			edited = strconv.AppendInt(edited, e.value+int64(number)*c.later.Rounds, 10)
		case editTime:
			edited = time.Unix(e.value, 0).UTC().Add(time.Duration(number)*c.later.Time).AppendFormat(edited, secondsLayout)
		}
	}
	return append(edited, text[done:]...)
}

// last returns the latest time of a data set, and its last round.
func (c *copies) last() (at time.Time, round int64) {
	for _, e := range c.edits {
		switch e.kind {
		case editTime:
			at = slices.MaxFunc([]time.Time{at, time.Unix(e.value, 0)}, time.Time.Compare)
		case editRound:
			round = max(round, e.value)
		}
	}
	return at, round
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

// Named returns the index of the update, or of the record, with an id.
func (c *copies) Named(id string) (i int, ok bool) {
	at := len(updateIDPrefix)
	if strings.HasPrefix(id, "#") { // of a record
		at++
	}
	for number := range c.n {
		original := []byte(id)
		if len(original) >= at+idDigits {
			mix(original[at:at+idDigits], number)
		}
		if i, ok := c.data.Named(string(original)); ok && i < 0 {
			return i, true
		} else if ok {
			return number*c.data.Len() + i, true
		}
	}
	return 0, false
}
