package scan

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/internal/base/jsonhttp"
)

// Sizes of what the client asks for, and reads at most.
const (
	// MaxPage is the largest page that servers return, in records.
	MaxPage = 1000

	// maxBody is the largest page that is read, in bytes of JSON. A record is about 2 kB.
	maxBody = 64 << 20
	// smallBody is the largest answer that is read about the service itself, in bytes.
	smallBody = 1 << 20
)

// Config says how to reach the Scan service: its URL is such as https://scan.example.com/api/scan. The service itself
// authenticates nobody, but a proxy before it may.
type Config = jsonhttp.Config

// Client reads from one Scan service. It is safe for concurrent use.
type Client struct {
	access *access.Access
	log    *slog.Logger
	http   *jsonhttp.Client

	maxBody int64
	silence time.Duration

	served  atomic.Bool // it has returned its history, to this client or before
	reached atomic.Bool // it has answered as a Scan service does: a refusal from now on may be a proxy's

	page   *jsonhttp.Size // of pages after an event id
	newest *jsonhttp.Size // of pages of the newest records

	changes atomic.Int64 // counts the events after which another server may answer
}

// New checks the configuration and returns a client; it sends nothing. Its errors never contain secrets.
func New(cfg Config) (*Client, error) {
	c := &Client{
		maxBody: maxBody, silence: jsonhttp.SilenceTimeout,
		page: jsonhttp.NewSize(MaxPage), newest: jsonhttp.NewSize(MaxPage),
	}
	var err error
	c.http, err = jsonhttp.New(cfg, jsonhttp.Dialect{
		Flags: "scan", Base: "a Scan service", OtherMayAnswer: c.otherMayAnswer,
		Refused: func(a jsonhttp.Answer) bool { return a.Status == http.StatusUnauthorized },
	})
	if err != nil {
		return nil, err
	}
	c.access, c.log = c.http.Access(), c.http.Logger()
	return c, nil
}

// Access returns the client's credentials, for diagnosis.
func (c *Client) Access() *access.Access { return c.access }

// HistorySeen notes that an earlier client found the service's history. If something that is not a Scan service then
// answers that it is missing, the error may pass.
func (c *Client) HistorySeen() {
	c.served.Store(true)
	c.reached.Store(true)
}

// otherMayAnswer notes that from now on another server may answer: after a request without a usable answer, with a new
// connection, or when one has ended with a request on it.
func (c *Client) otherMayAnswer() { c.changes.Add(1) }

// Close closes idle connections and cancels a token request in flight.
func (c *Client) Close() { c.http.Close() }
