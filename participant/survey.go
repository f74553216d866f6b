package participant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"github.com/go-json-experiment/json"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// Paths that only a survey of the server asks.
const (
	pathSynchronizers = "/v2/state/connected-synchronizers"
	pathParties       = "/v2/parties"
)

// Presence is whether a server has an operation.
type Presence int

// What is known of an operation. A server that refuses the token's user has the operation.
const (
	Unknown Presence = iota // the probe failed: see Offer.Err
	Present
	Absent  // with an Offer.Err: the server has it, and requests do not come through to it
	Refused // it exists, but not for this user: see Offer.Err
)

// Offer is what is known of one operation.
type Offer struct {
	Path     string // begins with the method where that is not the usual one
	Presence Presence
	// Err is why it is Unknown or Refused (an *Error, in a *ledger.Problem if a proxy refused), or out of reach; else nil.
	Err error
}

// There reports whether the server is known to have the operation. If a proxy refuses it, it counts as absent: some
// gateways refuse every path that they don't know.
func (o Offer) There() bool {
	return o.Presence == Present || o.Presence == Refused && !refusedByProxy(o.Err)
}

// Survey says for each operation whether a server has it.
type Survey struct {
	UpdatesPage, Updates, UpdatesFlats Offer
	SnapshotPage, Snapshot             Offer
	LedgerEnd, PrunedOffsets           Offer
	ContractByID, VettedPackages       Offer
}

// Survey probes all operations that the client uses, concurrently. It is for diagnosis: unlike Discover it continues
// after errors and logs nothing.
func (c *Client) Survey(ctx context.Context) (s Survey) {
	var group sync.WaitGroup
	for path, offer := range map[string]*Offer{
		pathUpdatesPage: &s.UpdatesPage, pathUpdates: &s.Updates, pathUpdatesFlats: &s.UpdatesFlats,
		pathSnapshotPage: &s.SnapshotPage, pathSnapshot: &s.Snapshot,
		pathLedgerEnd: &s.LedgerEnd, pathPrunedOffsets: &s.PrunedOffsets,
		pathContractByID: &s.ContractByID, pathVettingList: &s.VettedPackages,
	} {
		group.Go(func() { *offer = c.offer(ctx, path) })
	}
	group.Wait()
	return s
}

func (c *Client) offer(ctx context.Context, path string) Offer {
	o := Offer{Path: path}
	var there bool
	switch path {
	case pathLedgerEnd, pathPrunedOffsets:
		there, o.Err = c.answers(ctx, jsonhttp.Request{Operation: "survey", Path: path})
	case pathContractByID:
		// No contract has this id.
		there, o.Err = c.answers(ctx, jsonhttp.Request{Operation: "survey", Path: path,
			Body: contractRequest{ContractID: "00", QueryingParties: set(c.scope.Parties)}})
	case pathVettingList:
		there, o.Err = c.answers(ctx, jsonhttp.Request{Operation: "survey", Path: path, Body: map[string]any{"pageSize": 1}})
	default:
		var found string
		found, o.Err = c.findPath(ctx, path, "")
		there, o.Path = found != "", cmp.Or(found, path)
	}
	var e *Error
	switch {
	case errors.As(o.Err, new(*unreachedError)):
		o.Presence = Absent
	case o.Err == nil && there:
		o.Presence = Present
	case o.Err == nil:
		o.Presence = Absent
	case errors.As(o.Err, &e) && e.Status == http.StatusForbidden:
		o.Presence = Refused
		if refusedByProxy(o.Err) {
			o.Err = proxyRefusal.of(o.Err)
		}
	}
	return o
}

// answers reports whether the server has an operation. A server that finds the request invalid has it.
func (c *Client) answers(ctx context.Context, r jsonhttp.Request) (bool, error) {
	_, err := c.do(ctx, r)
	return present(err)
}

// ListTokens reports whether the entries of a list of the contracts active at an offset have continuation tokens. It
// asks for one entry; known is false where there is none. The errors are those of ReadSnapshot.
func (c *Client) ListTokens(ctx context.Context, at ledger.Offset) (has, known bool, err error) {
	if at == 0 {
		return false, false, nil // nothing is active
	}
	page, err := c.snapshotEntries(ctx, at, "", url.Values{"limit": {"1"}}, c.maxBody)
	switch {
	case err != nil:
		err = c.explain(ctx, err, purpose{about: aboutSnapshot, need: c.scopeRight(), offset: at})
		return false, false, fmt.Errorf("list what is active at offset %d: %w", at, err)
	case len(page.Entries) == 0:
		return false, false, nil
	}
	return page.Entries[0].Token != "", true, nil
}

// Version returns the release of the participant, or "" if the server does not return it. It needs only a valid token.
func (c *Client) Version(ctx context.Context) (string, error) {
	version, err := c.text(ctx, "version", pathVersion, "version")
	if err != nil {
		return "", fmt.Errorf("ask for the version: %w", c.explain(ctx, err, purpose{}))
	}
	return version, nil
}

// Synchronizers lists the ids of the synchronizers that the participant is connected to now. It needs only a valid
// token.
//
// Errors: ledger.ErrNotOffered where the server does not have the operation.
func (c *Client) Synchronizers(ctx context.Context) (ids []string, err error) {
	const operation = "connected-synchronizers"
	var answer struct {
		Connected []struct {
			ID string `json:"synchronizerId"`
		} `json:"connectedSynchronizers"`
	}
	if err := c.ask(ctx, jsonhttp.Request{Operation: operation, Path: pathSynchronizers, MaxBytes: tinyBody},
		&answer); err != nil {
		return nil, fmt.Errorf("ask for the connected synchronizers: %w", err)
	}
	for _, s := range answer.Connected {
		ids = append(ids, s.ID)
	}
	return ids, nil
}

// Hosted returns for each party whether the participant hosts it; parties that it does not know are not in the map. It
// needs the right to read as each of them. A party of another identity provider than the user's counts as not hosted.
//
// Errors: ledger.ErrNotOffered where the server does not have the operation.
func (c *Client) Hosted(ctx context.Context, parties []string) (map[string]bool, error) {
	hosted := map[string]bool{}
	for rest := set(parties); len(rest) > 0; {
		n := fitting(rest)
		r := jsonhttp.Request{Operation: "parties", Path: pathParties + "/" + segment(rest[0]),
			Query: url.Values{"parties": rest[1:n]}, MaxBytes: tinyBody}
		rest = rest[n:]
		var answer struct {
			Details []struct {
				Party string `json:"party"`
				Local bool   `json:"isLocal"`
			} `json:"partyDetails"`
		}
		if err := c.ask(ctx, r, &answer); err != nil {
			return nil, fmt.Errorf("ask for parties: %w", err)
		}
		for _, d := range answer.Details {
			hosted[d.Party] = d.Local
		}
	}
	return hosted, nil
}

// fitting returns how many of the parties, at least one, fit into a URL of 2,048 bytes: servers refuse longer ones.
func fitting(parties []string) (n int) {
	const maxLength = 1600
	for length := 0; n < len(parties); n++ {
		if length += len("&parties=") + len(url.QueryEscape(parties[n])); length > maxLength && n > 0 {
			break
		}
	}
	return n
}

// ask reads a small answer into a struct.
func (c *Client) ask(ctx context.Context, r jsonhttp.Request, into any) error {
	a, err := c.do(ctx, r)
	if lacksPath(err) {
		return fmt.Errorf("%w: %w", ledger.ErrNotOffered, err)
	}
	if err != nil {
		return c.explain(ctx, err, purpose{})
	}
	if err := json.Unmarshal(a.Body, into); err != nil {
		return c.misread(r.Operation, a, err)
	}
	return nil
}

// misread is decodeError for small answers. Its error quotes the beginning of the answer, which explains more than a
// member's name.
func (c *Client) misread(operation string, a jsonhttp.Answer, err error) error {
	var unusable *Error
	if err = c.decodeError(operation, a, err); errors.As(err, &unusable) {
		return err
	}
	return fmt.Errorf("%s: the answer is not the one of this operation; it begins %q", operation, c.clean(string(a.Body)))
}
