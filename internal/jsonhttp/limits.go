package jsonhttp

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

// What a server may send, whatever it sends. A request adds the most bytes that are read of its answer (Request.Most);
// an error that names one of these limits stands in the answer's own error.
const (
	// Silence is how long nothing may come before an answer, or within it, unless something else is said. Servers give up
	// after 20 s or so by themselves, and their word about why is worth waiting for.
	Silence = 40 * time.Second
	// Longest is how long an answer may take from the request to its last byte, unless something else is said. A page as
	// large as any that is read comes in that time at 230 kB/s, and smaller ones are asked for where it does not; a
	// server that sends a byte now and then would otherwise be listened to for ever.
	Longest = 10 * time.Minute
	// SameBytes is how long the same bytes, which are no JSON, must come at every try before trying again is given up.
	SameBytes = 10 * time.Minute

	// mostHeader is the largest header of an answer, in bytes: all that comes before its body, answers that only announce
	// another one (1xx) among it. Servers send some hundred.
	mostHeader = 256 << 10
	// errorBody is how much is read of an answer that is to be shown, in bytes: more than is shown, because a secret that
	// is cut in two is not found.
	errorBody = 64 << 10
	// longestError is up to how many bytes the error of a connection is left as it is.
	longestError = 1000
	// trustedLength is up to which size room is made for an answer on the word of its Content-Length.
	trustedLength = 64 << 20
	// leastRoom is the room that is made for an answer of unknown length, in bytes; where it is full it is doubled.
	leastRoom = 64 << 10
	// mostKept is the largest room that is kept for answers to come.
	mostKept = 32 << 20
	// readAhead is how much is read of a connection at a time, in bytes: servers send chunks of some kB.
	readAhead = 64 << 10

	// bytesPerValue bounds how many values an answer may hold: one for each so many bytes of the most that is read of it,
	// and fewestValues at least. Hostile answers have 2 bytes a value, and take a hundred times their size in memory when
	// they are decoded. Real ones have 22 and more, separators included, so large pages may have to be asked for in smaller
	// pieces; a single update can't have as many, as long as messages of the network have 10 MB.
	bytesPerValue = 64
	fewestValues  = 100_000
)

// What is wrong with an answer that can't be used.
var (
	ErrSilent   = errors.New("the server went silent")
	ErrSlow     = errors.New("the server sends too slowly")
	ErrTooLarge = errors.New("the answer is too large")
	ErrCutOff   = errors.New("the answer was cut off") // it says nothing about what was asked
	ErrNotJSON  = errors.New("the answer is no JSON")  // nor does this; the error is a *NotJSONError
)

// meter watches how many values stand in JSON that comes, before it is decoded.
type meter struct {
	most   int64 // values
	atMost int64 // that came: characters within texts that look like them are counted too, which is ten times as fast
	seen   int   // bytes
	exact  counter
}

func newMeter(mostBytes int64) *meter {
	return &meter{most: max(fewestValues, mostBytes/bytesPerValue)}
}

// check looks at what has come since it was called before; body is all that came.
func (m *meter) check(body []byte) error {
	for _, sign := range []string{",", "[", "{"} {
		m.atMost += int64(bytes.Count(body[m.seen:], []byte(sign)))
	}
	if m.seen = len(body); m.atMost <= m.most {
		return nil
	}
	if m.exact.count(body[m.exact.bytes:]); m.exact.values <= m.most {
		return nil
	}
	return fmt.Errorf("%w: more than the %d values that are read of it", ErrTooLarge, m.most)
}

// counter counts what stands in JSON: values, by the commas and the brackets that open. It judges no syntax (what is no
// JSON is found by who decodes it) and no nesting, which the decoders bound, and they can say where.
type counter struct {
	values  int64
	bytes   int
	inText  bool
	escaped bool // the next character is part of an escape
}

func (c *counter) count(text []byte) {
	c.bytes += len(text)
	for i := 0; i < len(text); i++ {
		if c.inText {
			if i = c.text(text, i); c.inText {
				return
			}
			continue
		}
		switch text[i] {
		case '"':
			c.inText = true
		case ',', '[', '{':
			c.values++
		}
	}
}

// text goes on inside a text to the quote that ends it, or to the end of what came.
func (c *counter) text(text []byte, i int) int {
	for ; i < len(text); i++ {
		switch {
		case c.escaped:
			c.escaped = false
		case text[i] == '\\':
			c.escaped = true
		case text[i] == '"':
			c.inText = false
			return i
		}
	}
	return i
}
