package scan

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// The paths by which a service says who it is and what it has.
const (
	pathVersion     = "/version"
	pathNetwork     = "/v0/dso-party-id"
	pathBackfilling = "/v0/backfilling/status"
)

// Describe requests the service's release, its network, and whether its history is complete. What the server does not
// offer is left empty; a service that does not return its backfilling status counts as complete.
//
// Errors: those of TransactionsAfter, except those about the history.
func (c *Client) Describe(ctx context.Context) (ledger.TransactionsService, error) {
	var s ledger.TransactionsService
	var err error
	if s.Release, err = member[string](ctx, c, jsonhttp.Request{Operation: "version", Path: pathVersion},
		"version"); err != nil && !errors.Is(err, ledger.ErrNotOffered) {
		return ledger.TransactionsService{}, fmt.Errorf("ask for the service's release: %w", err)
	}
	if s.NetworkID, err = member[string](ctx, c, jsonhttp.Request{Operation: "dso-party-id", Path: pathNetwork},
		"dso_party_id"); err != nil && !errors.Is(err, ledger.ErrNotOffered) {
		return ledger.TransactionsService{}, fmt.Errorf("ask for the network's party: %w", err)
	}
	complete, err := member[bool](ctx, c, jsonhttp.Request{Operation: "backfilling-status", Path: pathBackfilling},
		"complete")
	if err != nil && !errors.Is(err, ledger.ErrNotOffered) {
		return ledger.TransactionsService{}, fmt.Errorf("ask whether the history is complete: %w", err)
	}
	s.Backfilling = err == nil && !complete
	return s, nil
}

// Version returns the release of the service. The error is ledger.ErrNotOffered where the server does not return it.
// Other errors are those of Describe.
func (c *Client) Version(ctx context.Context) (string, error) {
	return member[string](ctx, c, jsonhttp.Request{Operation: "version", Path: pathVersion}, "version")
}

// member reads one member of the object that a path returns. An answer without it is not from a Scan service.
func member[T string | bool](ctx context.Context, c *Client, r jsonhttp.Request, name string) (T, error) {
	var value, none T
	q := purpose{method: "GET", path: r.Path}
	r.MaxBytes = smallBody
	a, err := c.do(ctx, r)
	if err != nil {
		return none, c.explain(err, q)
	}
	unusable := func(why string) error {
		e := &Error{Failure: jsonhttp.Unusable(r.Operation, errors.New(why))}
		e.Body = access.Excerpt(c.access.Redact(string(a.Body)))
		return c.explain(c.misread(r.Operation, a, e), q)
	}
	const another = "the answer is not the one of this operation"
	var object map[string]jsontext.Value
	if err := json.Unmarshal(a.Body, &object); err != nil {
		return none, unusable(another)
	}
	raw := object[name]
	if raw == nil || raw.Kind() == 'n' || string(raw) == `""` {
		return none, unusable("the answer holds no " + name)
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		return none, unusable(another)
	}
	if c.access.Repeats(fmt.Sprint(value)) {
		return none, &Error{Failure: jsonhttp.Unusable(r.Operation, errSecret)}
	}
	c.reached.Store(true)
	return value, nil // not redacted: it is data, which may contain a password by chance
}
