package scan

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ledgerindexer/internal/access"
	"ledgerindexer/internal/jsonhttp"
	"ledgerindexer/ledger"
)

const (
	pathVersion     = "/version"
	pathNetwork     = "/v0/dso-party-id"
	pathBackfilling = "/v0/backfilling/status"
)

// Describe asks who the service is, and whether its history is complete. What the server does not offer is left empty,
// and a service that does not say that it is still backfilling is not.
//
// Errors: as of TransactionsAfter, but for those that are about the history.
func (c *Client) Describe(ctx context.Context) (ledger.HistoryService, error) {
	var s ledger.HistoryService
	var err error
	if s.Release, err = tell[string](ctx, c, "version", pathVersion, "version"); err != nil && !errors.Is(err, ledger.ErrNotOffered) {
		return ledger.HistoryService{}, fmt.Errorf("ask for the service's release: %w", err)
	}
	if s.NetworkID, err = tell[string](ctx, c, "dso-party-id", pathNetwork, "dso_party_id"); err != nil && !errors.Is(err, ledger.ErrNotOffered) {
		return ledger.HistoryService{}, fmt.Errorf("ask for the network's party: %w", err)
	}
	complete, err := tell[bool](ctx, c, "backfilling-status", pathBackfilling, "complete")
	if err != nil && !errors.Is(err, ledger.ErrNotOffered) {
		return ledger.HistoryService{}, fmt.Errorf("ask whether the history is complete: %w", err)
	}
	s.Backfilling = err == nil && !complete
	return s, nil
}

// Version is the release of the service. It returns ledger.ErrNotOffered where the server does not tell. Other errors
// are those of Describe.
func (c *Client) Version(ctx context.Context) (string, error) {
	return tell[string](ctx, c, "version", pathVersion, "version")
}

// tell reads one member of the object that a path answers. An answer without it is no answer of such a service.
func tell[T string | bool](ctx context.Context, c *Client, operation, path, member string) (T, error) {
	var value, none T
	q := asked{method: "GET", path: path}
	a, err := c.do(ctx, request{operation: operation, path: path, most: smallBody})
	if err != nil {
		return none, c.explain(err, q)
	}
	unusable := func(why string) error {
		e := &Error{Failure: jsonhttp.Unusable(operation, errors.New(why))}
		e.Body = access.Excerpt(c.access.Redact(string(a.Body)))
		return c.explain(c.misread(operation, a, e), q)
	}
	const another = "the answer is not what this operation serves"
	var told map[string]jsontext.Value
	if err := json.Unmarshal(a.Body, &told); err != nil {
		return none, unusable(another)
	}
	raw := told[member]
	if raw == nil || raw.Kind() == 'n' || string(raw) == `""` {
		return none, unusable("the answer holds no " + member)
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		return none, unusable(another)
	}
	if c.access.Repeats(fmt.Sprint(value)) {
		return none, &Error{Failure: jsonhttp.Unusable(operation, errSecret)}
	}
	c.met.Store(true)
	return value, nil // not redacted: it is data, and a password may be part of it by chance
}
