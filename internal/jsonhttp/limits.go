package jsonhttp

import (
	"errors"
	"fmt"
	"io"
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
)

// meter counts what stands in JSON that passes by, before room is made for any of it: values, by the commas and the
// brackets that open. It judges no syntax (what is no JSON is found by who decodes it) and no nesting, which the decoders
// bound, and they can say where.
type meter struct {
	r    io.Reader
	most int64 // values

	values   int64
	inText   bool
	escaped  bool // the next character is part of an escape
	exceeded error
}

func newMeter(r io.Reader, mostBytes int64) *meter {
	return &meter{r: r, most: max(fewestValues, mostBytes/bytesPerValue)}
}

func (m *meter) Read(p []byte) (int, error) {
	if m.exceeded != nil {
		return 0, m.exceeded
	}
	n, err := m.r.Read(p)
	m.count(p[:n])
	if m.values > m.most {
		m.exceeded = fmt.Errorf("%w: more than the %d values that are read of it", ErrTooLarge, m.most)
		return n, m.exceeded
	}
	return n, err
}

func (m *meter) count(text []byte) {
	for i := 0; i < len(text); i++ {
		if m.inText {
			if i = m.text(text, i); m.inText {
				return
			}
			continue
		}
		switch text[i] {
		case '"':
			m.inText = true
		case ',', '[', '{':
			m.values++
		}
	}
}

// text goes on inside a text to the quote that ends it, or to the end of what came.
func (m *meter) text(text []byte, i int) int {
	for ; i < len(text); i++ {
		switch {
		case m.escaped:
			m.escaped = false
		case text[i] == '\\':
			m.escaped = true
		case text[i] == '"':
			m.inText = false
			return i
		}
	}
	return i
}
