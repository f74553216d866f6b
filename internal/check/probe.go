package check

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// step is how far a visit got.
type step int

const (
	stepName       step = iota // the host's addresses are asked for
	stepConnection             // a connection to one of them
	stepProxy                  // a proxy on the way makes one
	stepTLS                    // the handshake
	stepAnswer                 // the request is sent, and answered
	stepDone
)

// visitedBody is how much of an answer is read.
const visitedBody = 64 << 10

// visit is one GET request without a token, and how far it got. A connection is made for it alone, in the way that
// the clients make theirs.
type visit struct {
	url   *url.URL
	proxy *url.URL // that is used; nil: none

	step      step // that err is of
	err       error
	took      time.Duration
	addresses []string // of the host, where its name was asked for
	remote    string   // the address that took the connection

	tls             *tls.ConnectionState // nil: none, or the handshake failed
	wantsClientCert bool                 // the server asked for a client certificate

	status int
	header http.Header
	body   string // the beginning
	asked  time.Time
}

// pay visits a URL. The configuration is the visit's own.
func pay(ctx context.Context, u *url.URL, config *tls.Config) *visit {
	v := &visit{url: u}
	w := &watcher{visit: v}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: w.watched(config), DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, w.trace()), http.MethodGet, shown(u), nil)
	if err != nil {
		v.err = err
		return v
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "ledgerindexer")
	if v.proxy, err = http.ProxyFromEnvironment(request); err != nil {
		v.step, v.err = stepProxy, errors.New("the proxy that the environment names can't be used")
		return v
	}
	v.asked = time.Now()
	response, err := transport.RoundTrip(request)
	v.took = time.Since(v.asked)
	w.mu.Lock() // hooks of attempts that lost may still come
	w.over = true
	w.mu.Unlock()
	if err != nil {
		v.err = err
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			v.err = context.DeadlineExceeded
		}
		return v
	}
	defer func() { _ = response.Body.Close() }() // only read from; nothing is lost by an error here
	text, err := io.ReadAll(io.LimitReader(response.Body, visitedBody))
	if err != nil && len(text) == 0 {
		v.err = err
		return v
	}
	v.step, v.status, v.header, v.body = stepDone, response.StatusCode, response.Header, string(text)
	return v
}

// watcher notes how far a visit gets.
type watcher struct {
	mu    sync.Mutex
	over  bool
	visit *visit
}

func (w *watcher) note(fn func(v *visit)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		fn(w.visit)
	}
}

func (w *watcher) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		DNSDone: func(info httptrace.DNSDoneInfo) {
			w.note(func(v *visit) {
				for _, a := range info.Addrs {
					v.addresses = append(v.addresses, a.String())
				}
				slices.Sort(v.addresses)
			})
		},
		ConnectStart: func(string, string) { w.note(func(v *visit) { v.step = max(v.step, stepConnection) }) },
		ConnectDone: func(_, address string, err error) {
			w.note(func(v *visit) {
				if err != nil {
					return
				}
				v.remote, v.step = address, stepAnswer
				if v.proxy != nil && v.url.Scheme == "https" {
					v.step = stepProxy
				}
			})
		},
		TLSHandshakeStart: func() { w.note(func(v *visit) { v.step = stepTLS }) },
		TLSHandshakeDone: func(state tls.ConnectionState, err error) {
			w.note(func(v *visit) {
				if err == nil {
					v.tls, v.step = &state, stepAnswer
				}
			})
		},
	}
}

// watched notes whether the server asks for a client's certificate.
func (w *watcher) watched(config *tls.Config) *tls.Config {
	give := config.GetClientCertificate
	config.GetClientCertificate = func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		w.note(func(v *visit) { v.wantsClientCert = true })
		return give(info)
	}
	return config
}

// speaksTLS says whether a server shakes hands, whoever it is.
func speaksTLS(ctx context.Context, u *url.URL) bool {
	dialer := tls.Dialer{Config: &tls.Config{
		InsecureSkipVerify: true, // nothing is sent: it is only seen whether this is TLS
	}}
	conn, err := dialer.DialContext(ctx, "tcp", hostPort(u))
	if err != nil {
		// A server that wants a client certificate says so in an alert, which is TLS too.
		return strings.Contains(err.Error(), "remote error: tls:")
	}
	_ = conn.Close()
	return true
}

func timedOut(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// isHTML says whether an answer is a web page.
func (v *visit) isHTML() bool {
	return strings.Contains(strings.ToLower(v.header.Get("Content-Type")), "html") ||
		strings.HasPrefix(strings.ToLower(strings.TrimSpace(v.body)), "<!doctype html") || strings.HasPrefix(strings.TrimSpace(v.body), "<html")
}
