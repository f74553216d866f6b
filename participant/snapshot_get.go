package participant

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// getSnapshotPage is the operation of pathSnapshotPage in releases 3.5.0 to 3.5.9: a GET with a body. They answer 405
// to the POST that came with 3.5.10, and servers without pages 404.
const getSnapshotPage = http.MethodGet + " " + pathSnapshotPage

// snapshotPage returns the request for a page by one of the two operations.
func snapshotPage(operation, path string, body snapshotPageRequest) jsonhttp.Request {
	r := jsonhttp.Request{Operation: operation, Path: pathSnapshotPage, Body: body}
	if path == getSnapshotPage {
		r.Method = http.MethodGet
	}
	return r
}

// unreachedError is an operation that the server has, and that requests do not come through to.
type unreachedError struct{ err error }

func (e *unreachedError) Error() string {
	return "the server has pages by GET with a body (as releases before 3.5.10), and what stands between does not let " +
		"that through: " +
		e.err.Error()
}

func (e *unreachedError) Unwrap() error { return e.err }

// hasGetSnapshotPage requests the empty page at offset 0 by GET. Proxies may drop a GET's body or refuse it in ways of
// their own, so that the operation counts as there only if the server understood the request. Else the error is an
// *unreachedError: lists do as well. Where GET was used before, a failure that may pass is an error as it is.
func (c *Client) hasGetSnapshotPage(ctx context.Context, before string) (bool, error) {
	a, err := c.do(ctx, snapshotPage("discover", getSnapshotPage, c.firstSnapshotPage()))
	if err == nil {
		defer jsonhttp.Release(a.Body)
		switch page, err := ledger.DecodeContractPage(a.Body); {
		case err != nil:
			return false, &unreachedError{err}
		case page.ActiveAt != 0:
			return false, &unreachedError{fmt.Errorf("the answer is of offset %d and not of 0", page.ActiveAt)}
		}
		return true, nil
	}
	there, failed := present(err)
	e, ok := errors.AsType[*Error](err)
	switch {
	case ok && e.Code != "": // the server's own word
		return there, failed
	case ctx.Err() != nil, failed != nil && before == getSnapshotPage:
		return false, err
	}
	return false, &unreachedError{err}
}

func (c *Client) firstSnapshotPage() snapshotPageRequest {
	return snapshotPageRequest{ActiveAt: 0, MaxPageSize: 1, EventFormat: c.format.Event}
}

// bodyDropped reports whether a request came to the server without its body.
func bodyDropped(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.unreadable() && strings.Contains(e.Body, "exhausted input")
}
