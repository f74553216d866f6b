package export

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"ledgerindexer/ledger"
)

// Limits on what an object store answers. Connections that stand still end long before: see stalled.
const (
	// maxAnswer is the largest answer that is no object, in bytes: a page of a list has 1,000 names of up to 1,024
	// characters.
	maxAnswer = 16 << 20
	// maxPages and maxListed are how many pages and names a list may have. An export has some dozen files for each range.
	maxPages, maxListed = 10_000, 2_000_000
	// maxManifest is the largest manifest, or file of metadata, that is read, in bytes; maxObject the largest file, which
	// has as many parts as an object can have; maxEmpty the largest file without a row.
	maxManifest, maxObject, maxEmpty = 16 << 20, 10_000 * partBytes, 1 << 20
	// answerTime is the longest time that an answer may take, and objectTime that of an object.
	answerTime, objectTime = 10 * time.Minute, 6 * time.Hour
)

// endless is the error for an answer of an object store that has no end.
func endless(what string) error {
	return &ledger.Problem{
		What: "the object store answers without end: " + what,
		Do:   "see AWS_ENDPOINT_URL, and ask who runs the store; or export to another bucket or folder",
	}
}

// bounded is a transport that ends answers without end. The client of the store has no limits of its own.
type bounded struct{ next http.RoundTripper }

// RoundTrip sends a request.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body := &boundedBody{ReadCloser: resp.Body, left: maxAnswer, end: time.Now().Add(answerTime)}
	// an object: its reader knows how large it may be
	if r.Method == http.MethodGet && r.URL.RawQuery == "" && resp.StatusCode/100 == 2 {
		body.left, body.end = maxObject, time.Now().Add(objectTime)
	}
	if pages, ok := r.Context().Value(pagesKey{}).(*listPages); ok && resp.StatusCode == http.StatusOK {
		body.err = pages.came(r.URL.RawQuery) // told by the body: the client would try again after an error of its transport
	}
	resp.Body = body
	return resp, nil
}

// boundedBody ends an answer that has too many bytes, or takes too long.
type boundedBody struct {
	io.ReadCloser
	left int64
	end  time.Time
	err  error // which ended it
}

// Read reads within the limits.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.err == nil && time.Now().After(b.end) {
		b.err = endless("an answer comes so slowly that it was given up")
	}
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		b.err = endless("an answer has more bytes than any list or file")
		return 0, b.err
	}
	return n, err
}

type pagesKey struct{}

// listPages are the pages of a list that have come, by what was asked.
type listPages struct {
	mu   sync.Mutex
	seen map[string]bool
}

// ofOneList returns a context for the requests of one list.
func ofOneList(ctx context.Context) context.Context {
	return context.WithValue(ctx, pagesKey{}, &listPages{seen: map[string]bool{}})
}

func (l *listPages) came(asked string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.seen[asked]:
		return endless("its list leads back to a page that came before")
	case len(l.seen) == maxPages:
		return endless(fmt.Sprintf("its list has more than %d pages", maxPages))
	}
	l.seen[asked] = true
	return nil
}

// checkListed checks how many names a list has.
func checkListed(n int) error {
	if n > maxListed {
		return endless(fmt.Sprintf("its list has more than %d names", maxListed))
	}
	return nil
}

// memory holds a file that is small: a manifest, say.
type memory struct {
	held bytes.Buffer
	most int
}

// Write appends to what is held.
func (m *memory) Write(p []byte) (int, error) {
	if m.held.Len()+len(p) > m.most {
		return 0, fmt.Errorf("it has more than %d bytes, and no such file of an export is as large", m.most)
	}
	return m.held.Write(p)
}
