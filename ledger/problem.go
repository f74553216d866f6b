package ledger

import (
	"errors"
	"fmt"
)

// Problem is an error that trying again can't cure: an operator must act. The commands end with exit code 3 and
// print both sentences.
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

// Bug is a request that this program should never have made: trying again would only repeat it, and no operator can
// cure it. The commands end with exit code 1 and ask for a report.
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

// DecodeError says what could not be understood in the server's JSON. It stops the stream: nothing of the page
// it was found in is stored.
type DecodeError struct {
	Element int    // index in the response's list, from 0; -1 where the response as a whole is meant
	Offset  Offset // of the element, where it could be read; else 0
	EventID string // of a history record, where it could be read; else empty
	Field   string // path of the field below the element, such as "Transaction.events[2].CreatedEvent.contractId"; may be empty
	Err     error
}

func (e *DecodeError) Error() string {
	where := "response"
	if e.Element >= 0 {
		where = fmt.Sprintf("element %d", e.Element)
	}
	if e.Offset > 0 {
		where += fmt.Sprintf(" at offset %d", e.Offset)
	}
	if e.EventID != "" {
		where += fmt.Sprintf(" with event id %q", shortenTo(e.EventID, 200))
	}
	if e.Field != "" {
		where += ", " + e.Field
	}
	return where + ": " + e.Err.Error()
}

func (e *DecodeError) Unwrap() error { return e.Err }

// ErrNotOffered is returned for an operation that the server does not have.
var ErrNotOffered = errors.New("the server does not offer this operation")

// ErrPruned is returned for what the participant has pruned.
var ErrPruned = errors.New("what was asked for is pruned")

// ErrByteLimit is returned for an answer that is larger than who asked for it has room for. Nothing is wrong with it.
var ErrByteLimit = errors.New("the answer is larger than there is room for")

// ErrNotFound is returned where the server does not know what was asked for by its id, or does not show it to the
// parties that asked.
var ErrNotFound = errors.New("not found")
