package participant

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// RawRequest is a request as its caller wrote it.
type RawRequest struct {
	Method string // empty: POST with a body, GET without
	Path   string // below the server's URL
	Query  url.Values
	Body   map[string]jsontext.Value // the members of a JSON object; nil: none
}

// readByPost are the operations that take a POST and change nothing, and what is below them.
var readByPost = []string{"/v2/updates", "/v2/state", "/v2/contracts", "/v2/events", pathVettingList}

// Check reports whether the request can only read: it may be sent several times.
func (r RawRequest) Check() error {
	clean := path.Clean("/" + r.Path)
	below := func(prefix string) bool { return strings.HasPrefix(clean+"/", prefix+"/") }
	if r.method() != http.MethodGet && !slices.ContainsFunc(readByPost, below) {
		return fmt.Errorf("%s %s may change something; by POST only %s and what is below them are read",
			r.method(), ledger.Quoted(r.Path), strings.Join(readByPost, ", "))
	}
	return nil
}

func (r RawRequest) method() string {
	switch {
	case r.Method != "":
		return r.Method
	case r.Body != nil:
		return http.MethodPost
	}
	return http.MethodGet
}

// Get sends a request and returns the answer, without secrets.
//
// Errors: that of Check; ledger.ErrNotFound where the server does not know what was asked for; a *ledger.Problem where
// it does not offer the operation, refuses the request, or does not let the token's user; an *Error, which may be tried
// again, for the rest.
func (c *Client) Get(ctx context.Context, r RawRequest) (ledger.JSON, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	sent := jsonhttp.Request{Operation: "raw", Method: r.method(), Path: r.Path, Query: r.Query, MaxBytes: c.wholeBody}
	if r.Body != nil {
		text, err := json.Marshal(r.Body, json.Deterministic(true))
		if err != nil {
			return nil, err
		}
		sent.Body = jsontext.Value(text)
	}
	a, err := c.do(ctx, sent)
	if err != nil {
		err = c.explain(ctx, err, purpose{about: aboutRequest})
		return nil, fmt.Errorf("%s %s: %w", sent.Method, ledger.Quoted(r.Path), err)
	}
	answer := ledger.JSON(a.Body)
	if text := string(answer); c.redact(text) != text {
		answer = ledger.JSON(c.redact(text))
	}
	if !answer.IsValid(jsontext.AllowDuplicateNames(true)) {
		return nil, c.decodeError("raw", a, errors.New("the answer is not JSON"))
	}
	return answer, nil
}

// After returns the request for the page that follows an answer. It follows the member nextPageToken of an answer, or
// streamContinuationToken of the last of its elements; ok is false where there is neither.
func (r RawRequest) After(answer ledger.JSON) (next RawRequest, ok bool) {
	member, token := "pageToken", ""
	var page struct {
		Token string `json:"nextPageToken"`
	}
	var list []struct {
		Token string `json:"streamContinuationToken"`
	}
	switch {
	case json.Unmarshal(answer, &page, sloppy...) == nil:
		token = page.Token
	case json.Unmarshal(answer, &list, sloppy...) == nil && len(list) > 0:
		member, token = "streamContinuationToken", list[len(list)-1].Token
	}
	if token == "" {
		return r, false
	}
	return r.with(member, token), true
}

// with returns the request with a member of its body, or of its query where it has no body.
func (r RawRequest) with(member, value string) RawRequest {
	if r.Body == nil {
		r.Query = maps.Clone(r.Query)
		if r.Query == nil {
			r.Query = url.Values{}
		}
		r.Query.Set(member, value)
		return r
	}
	r.Body = maps.Clone(r.Body)
	r.Body[member], _ = jsontext.AppendQuote(nil, value) // an error is text that is not UTF-8, which JSON has not
	return r
}
