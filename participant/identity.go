package participant

import (
	"context"
	"fmt"

	"ledgerindexer/ledger"
)

// connectionChanged notes that from now on another server may answer, so that its participant id has to be checked.
func (c *Client) connectionChanged() {
	c.served.restart()
	c.changes.Add(1)
}

// Changes counts the events after which another server may answer: each new connection, each end of one with a request
// on it, and each request without a usable answer. It grows before the other server's first answer is returned.
func (c *Client) Changes() int64 { return c.changes.Load() }

// lockDiscovery waits until no other discovery is running. The caller must release it.
func (c *Client) lockDiscovery(ctx context.Context) error {
	if err := c.discovery.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("wait for the discovery of the participant: %w", err)
	}
	return nil
}

// checkIdentity checks that the last answer came from the participant that was found first. It asks for the id only
// after a new connection, the end of one with a request on it, or a request without a usable answer. A server that does
// not (or no longer) return its id passes.
//
// Errors: a *ledger.Problem where another participant answers now.
func (c *Client) checkIdentity(ctx context.Context) error {
	if c.identityChecked() {
		return nil
	}
	if err := c.lockDiscovery(ctx); err != nil {
		return err
	}
	defer c.discovery.Release(1)
	switch {
	case c.identityChecked():
		return nil // checked by another goroutine meanwhile
	case c.firstID == "":
		c.verified.Store(c.changes.Load()) // there is nothing to compare with
		return nil
	}
	if _, err := c.identity(ctx); err != nil {
		return fmt.Errorf("check the participant's identity: %w", c.explain(ctx, err, purpose{}))
	}
	return nil
}

func (c *Client) identityChecked() bool { return c.verified.Load() >= c.changes.Load() }

// identity requests the participant's id and compares it with the first one. The id is empty if the server does not
// return it. The caller holds the discovery lock.
func (c *Client) identity(ctx context.Context) (string, error) {
	changes := c.changes.Load() // before the request: a change during it needs another check
	id, err := c.text(ctx, "participant-id", pathParticipantID, "participantId")
	if err != nil {
		return "", err
	}
	if id != "" && c.firstID != "" && id != c.firstID {
		c.verified.Store(never)
		return "", &ledger.Problem{
			What: fmt.Sprintf("the participant behind %s changed from %s to %s", c.http.URL(), c.redact(c.firstID),
				c.redact(id)),
			Do: "check --ledger-url: if another participant is right, use a database or a pair of schemas (--tables-schema, " +
				"--views-schema) of its own",
		}
	}
	c.verified.Store(changes)
	return id, nil
}

// never is the value of Client.verified after another participant answered: every read checks again.
const never = -1

// Peek requests only the participant's id and its ledger end. It does not discover, so it also works for a user who may
// not read the whole scope. The id is empty if the server does not return it to this user.
//
// Errors: ledger.ErrNotOffered, together with the participant's id, if the server does not return its ledger end.
func (c *Client) Peek(ctx context.Context) (participantID string, end ledger.Offset, err error) {
	participantID, err = c.text(ctx, "participant-id", pathParticipantID, "participantId")
	if err != nil {
		return "", 0, fmt.Errorf("ask for the participant's id: %w", c.explain(ctx, err, purpose{}))
	}
	if end, err = c.ledgerEnd(ctx); err != nil {
		return participantID, 0, fmt.Errorf("ask for the ledger end: %w", c.explain(ctx, err, purpose{}))
	}
	return participantID, end, nil
}
