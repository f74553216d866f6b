package jsonhttp

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

// Limits on answers. A request adds the largest body that is read (Request.MaxBytes).
const (
	// SilenceTimeout is the default of Request.SilenceTimeout. Servers give up after about 20 s and then say why, so it is
	// longer than that.
	SilenceTimeout = 40 * time.Second
	// leastProgress is how many bytes have to come within Request.SilenceTimeout, unless they are the last: 400 bytes a
	// second. What comes byte by byte is as good as nothing, and nobody would see that it is.
	leastProgress = 16 << 10
	// AnswerTimeout is the default of Request.AnswerTimeout. The largest page that is read takes this long at 230 kB/s;
	// over slower connections smaller pages are requested.
	AnswerTimeout = 10 * time.Minute

	// maxHeader is the largest header of an answer, in bytes, including those of informational answers (1xx). Servers send
	// some hundred.
	maxHeader = 256 << 10
	// errorBody is how much is read of an answer that is only quoted, in bytes. It is more than is quoted, because a
	// secret that is cut in two would not be found.
	errorBody = 64 << 10
	// maxErrorText is the longest error of a connection, in bytes, that is not shortened.
	maxErrorText = 1000
	// maxTrustedLength is the largest Content-Length for which memory is allocated in advance, in bytes.
	maxTrustedLength = 64 << 20
	// minBuffer is the initial buffer of an answer of unknown length, in bytes; it doubles when it is full.
	minBuffer = 64 << 10
	// maxPooled is the largest buffer that is kept for later answers, in bytes.
	maxPooled = 32 << 20
	// readAhead is the read buffer of a connection, in bytes: servers send chunks of some kB.
	readAhead = 64 << 10

	// bytesPerValue limits the number of values in an answer: one per bytesPerValue bytes of Request.MaxBytes, and at
	// least minValues. Hostile answers have 2 bytes per value and take a hundred times their size in memory when decoded.
	// Real ones have 22 or more, separators included, so large pages may have to be requested in smaller pieces. A single
	// update can't exceed the limit as long as the network's messages have at most 10 MB.
	bytesPerValue = 64
	minValues     = 100_000
)

// Reasons why an answer can't be used.
var (
	ErrSilent   = errors.New("the server went silent")
	ErrSlow     = errors.New("the server sends too slowly")
	ErrTooLarge = errors.New("the answer is too large")
	ErrCutOff   = errors.New("the answer was cut off") // says nothing about the request
	ErrNotJSON  = errors.New("the answer is not JSON") // says nothing about the request; the error is a *NotJSONError
)

// valueLimit limits the number of values in JSON while it is received, before it is decoded.
type valueLimit struct {
	limit      int64 // values
	upperBound int64 // values so far, by a count that includes characters within strings and is ten times as fast
	seen       int   // bytes
	exact      counter
}

// CheckValues checks that JSON which came in another way than as an answer has no more values than an answer of at most
// maxBytes may have. The error is ErrTooLarge.
func CheckValues(text []byte, maxBytes int64) error {
	values := newValueLimit(maxBytes)
	if int64(len(text)) <= values.limit {
		return nil
	}
	return values.check(text)
}

func newValueLimit(maxBytes int64) *valueLimit {
	return &valueLimit{limit: max(minValues, maxBytes/bytesPerValue)}
}

// check counts what was received since the last call; body is everything received.
func (m *valueLimit) check(body []byte) error {
	for _, sign := range []string{",", "[", "{"} {
		m.upperBound += int64(bytes.Count(body[m.seen:], []byte(sign)))
	}
	if m.seen = len(body); m.upperBound <= m.limit {
		return nil
	}
	if m.exact.count(body[m.exact.bytes:]); m.exact.values <= m.limit {
		return nil
	}
	return fmt.Errorf("%w: it has more than %d values", ErrTooLarge, m.limit)
}

// counter counts the values in JSON by its commas and opening brackets. It checks neither syntax nor nesting: decoders
// do, and can say where.
type counter struct {
	values  int64
	bytes   int
	inText  bool
	escaped bool // the next byte is part of an escape
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

// text skips the rest of a string: to the quote that ends it, or to the end of the received bytes.
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
