package participant

import (
	"context"
	"fmt"

	"ledgerindexer/ledger"
)

// anew notes that from now on another server may answer than before, and may be configured otherwise.
func (c *Client) anew() {
	c.served.forget()
	c.changes.Add(1)
}

// Changes counts how often another server may have begun to answer than before: with each connection that is made, and each
// request that gets no good answer. It grows before anything is returned that the other one answered.
func (c *Client) Changes() int64 { return c.changes.Load() }

// take waits until nobody else finds something out about the server. Who took it gives it back with give.
func (c *Client) take(ctx context.Context) error {
	select {
	case c.finding <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait until it is found out what the participant offers: %w", ctx.Err())
	}
}

func (c *Client) give() { <-c.finding }

// same says whether what was just read came from the participant that was found first. It asks where that is not
// certain: at most once for each connection that is made or request that gets no good answer, so not at all as
// long as all goes well. A server that does not tell (any longer) who it is passes.
//
// Errors: a *ledger.Problem where another participant answers now.
func (c *Client) same(ctx context.Context) error {
	if c.certain() {
		return nil
	}
	if err := c.take(ctx); err != nil {
		return err
	}
	defer c.give()
	switch {
	case c.certain():
		return nil // somebody else asked meanwhile
	case c.first == "":
		c.verified.Store(c.changes.Load()) // there is nothing to compare with
		return nil
	}
	if _, err := c.identity(ctx); err != nil {
		return fmt.Errorf("see whether the participant is still the same: %w", c.explain(ctx, err, asked{}))
	}
	return nil
}

func (c *Client) certain() bool { return c.verified.Load() >= c.changes.Load() }

// identity asks for the participant's id, empty where it can't be known, and compares it with the first one. The
// caller has taken finding.
func (c *Client) identity(ctx context.Context) (string, error) {
	changes := c.changes.Load() // what changes while the answer is on its way is to be looked at again
	id, err := c.text(ctx, "participant-id", pathParticipantID, "participantId")
	if err != nil {
		return "", err
	}
	if id != "" && c.first != "" && id != c.first {
		c.verified.Store(never)
		return "", &ledger.Problem{
			What: fmt.Sprintf("the participant behind %s changed from %s to %s", c.http.URL(), c.redact(c.first), c.redact(id)),
			Do:   "check --ledger-url: a database belongs to one participant; if this is right, use a database of its own",
		}
	}
	c.verified.Store(changes)
	return id, nil
}

// never is what Client.verified holds after another participant answered: every read asks again.
const never = -1

// Peek asks who the participant is and what its ledger end is, and for nothing else: it discovers nothing, so it
// works for a user who may read less than the scope too. The participant's id is empty where the server does not
// say, or not to this user.
//
// Errors: ledger.ErrNotOffered, together with the participant's id, where the server does not tell its ledger end.
func (c *Client) Peek(ctx context.Context) (participantID string, end ledger.Offset, err error) {
	participantID, err = c.text(ctx, "participant-id", pathParticipantID, "participantId")
	if err != nil {
		return "", 0, fmt.Errorf("ask for the participant's id: %w", c.explain(ctx, err, asked{}))
	}
	if end, err = c.ledgerEnd(ctx); err != nil {
		return participantID, 0, fmt.Errorf("ask for the ledger end: %w", c.explain(ctx, err, asked{}))
	}
	return participantID, end, nil
}
