package ledger

import (
	"errors"
	"fmt"
	"strconv"
)

// Problem is an error that retrying can't cure: an operator must act. The commands end with exit code 3 and print both
// sentences.
type Problem struct {
	What string // what happened, to what
	Do   string // what to do about it
	Err  error  // the cause; may be nil
}

func (p *Problem) Error() string {
	if p.Err == nil {
		return p.What
	}
	return fmt.Sprintf("%s: %v", p.What, p.Err)
}

func (p *Problem) Unwrap() error { return p.Err }

// Bug is the error for a request that this program should never have sent. Neither retrying nor an operator can cure
// it. The commands end with exit code 1 and ask for a report.
type Bug struct {
	What string // what happened
	Err  error  // the cause; may be nil
}

func (b *Bug) Error() string {
	if b.Err == nil {
		return b.What
	}
	return fmt.Sprintf("%s: %v", b.What, b.Err)
}

func (b *Bug) Unwrap() error { return b.Err }

// DecodeError is the error for JSON of a server that can't be understood. It stops the stream: nothing of its page is
// stored.
type DecodeError struct {
	Element int    // index in the response's list, from 0; -1 for the response as a whole
	Offset  Offset // of the element, if it could be read; else 0
	EventID string // of a history record, if it could be read; else empty
	// UpdateID is that of an update of a network, if it could be read; else empty.
	UpdateID string
	// path of the field below the element, such as "Transaction.events[2].CreatedEvent.contractId"; may be empty
	Field string
	Err   error
}

// The most bytes of a DecodeError that are shown: a server can send a name or a text of any length.
const (
	shownField  = 500
	shownReason = 1000
)

func (e *DecodeError) Error() string {
	where := "response"
	if e.Element >= 0 {
		where = fmt.Sprintf("element %d", e.Element)
	}
	if e.Offset > 0 {
		where += fmt.Sprintf(" at offset %d", e.Offset)
	}
	if e.EventID != "" {
		where += " with event id " + Quoted(e.EventID)
	}
	if e.UpdateID != "" {
		where += " with update id " + Quoted(e.UpdateID)
	}
	if e.Field != "" {
		where += ", " + shortenTo(e.Field, shownField)
	}
	return where + ": " + shortenTo(e.Err.Error(), shownReason)
}

func (e *DecodeError) Unwrap() error { return e.Err }

// Quoted quotes what a server sent, such as an id, for an error: shortened if it is long, and without control
// characters, so that it is one line.
func Quoted(text string) string { return strconv.Quote(shortenTo(text, 200)) }

// ErrNotOffered is returned for an operation that the server does not have.
var ErrNotOffered = errors.New("the server does not offer this operation")

// ErrPruned is returned for data that the participant has pruned.
var ErrPruned = errors.New("what was asked for is pruned")

// ErrByteLimit is returned for an answer that exceeds the caller's byte limit. The request may be repeated with a
// higher one.
var ErrByteLimit = errors.New("the answer exceeds the request's byte limit")

// ErrNotFound is returned if the server does not know an id, or does not show what it identifies to the parties that
// asked.
var ErrNotFound = errors.New("not found")
