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

	"ledgerindexer/internal/base/access"
)

// step is how far a probe got.
type step int

const (
	stepName       step = iota // resolving the host's name
	stepConnection             // connecting to one of its addresses
	stepProxy                  // connecting through a proxy
	stepTLS                    // the handshake
	stepAnswer                 // sending the request and waiting for the answer
	stepDone
)

// probedBody is how much of an answer is read, in bytes.
const probedBody = 64 << 10

// probe is one GET request without a token over a connection of its own, and how far it got. It connects as the clients
// do.
type probe struct {
	url   *url.URL
	proxy *url.URL // nil: none

	step      step // at which err happened
	err       error
	took      time.Duration
	addresses []string // of the host, if its name was resolved
	remote    string   // the address that accepted the connection

	tls             *tls.ConnectionState // nil: none, or the handshake failed
	wantsClientCert bool                 // the server requested a client certificate

	status int
	header http.Header
	body   string // the beginning
	asked  time.Time
}

// send probes a URL. It changes config.
func send(ctx context.Context, u *url.URL, config *tls.Config) *probe {
	v := &probe{url: u}
	w := &watcher{probe: v}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: w.watched(config),
		DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, w.trace()), http.MethodGet, shown(u), nil)
	if err != nil {
		v.err = err
		return v
	}
	request.Header.Set("Accept", "application/json, text/plain;q=0.5") // /readyz is text, and 406 for JSON alone
	request.Header.Set("User-Agent", "ledgerindexer")
	if v.proxy, err = http.ProxyFromEnvironment(request); err != nil || v.proxy != nil && access.CutOff(v.proxy) {
		v.proxy, v.step, v.err = nil, stepProxy, errors.New("the environment names it in a way that can't be used; "+
			access.Escaped)
		return v
	}
	v.asked = time.Now()
	response, err := transport.RoundTrip(request)
	v.took = time.Since(v.asked)
	w.mu.Lock() // hooks of slower connection attempts may still be called
	w.over = true
	w.mu.Unlock()
	if err != nil {
		v.err = err
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			v.err = context.DeadlineExceeded
		}
		return v
	}
	defer func() { _ = response.Body.Close() }() // only read from, so an error loses nothing
	text, err := io.ReadAll(io.LimitReader(response.Body, probedBody))
	if err != nil && len(text) == 0 {
		v.err = err
		return v
	}
	v.step, v.status, v.header, v.body = stepDone, response.StatusCode, response.Header, string(text)
	return v
}

// watcher notes how far a probe gets.
type watcher struct {
	mu    sync.Mutex
	over  bool
	probe *probe
}

func (w *watcher) note(fn func(v *probe)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		fn(w.probe)
	}
}

func (w *watcher) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		DNSDone: func(info httptrace.DNSDoneInfo) {
			w.note(func(v *probe) {
				for _, a := range info.Addrs {
					v.addresses = append(v.addresses, a.String())
				}
				slices.Sort(v.addresses)
			})
		},
		ConnectStart: func(string, string) { w.note(func(v *probe) { v.step = max(v.step, stepConnection) }) },
		ConnectDone: func(_, address string, err error) {
			w.note(func(v *probe) {
				if err != nil {
					return
				}
				v.remote, v.step = address, stepAnswer
				if v.proxy != nil && v.url.Scheme == "https" {
					v.step = stepProxy
				}
			})
		},
		TLSHandshakeStart: func() { w.note(func(v *probe) { v.step = stepTLS }) },
		TLSHandshakeDone: func(state tls.ConnectionState, err error) {
			w.note(func(v *probe) {
				if err == nil {
					v.tls, v.step = &state, stepAnswer
				}
			})
		},
	}
}

// watched makes config note whether the server requests a client certificate.
func (w *watcher) watched(config *tls.Config) *tls.Config {
	give := config.GetClientCertificate
	config.GetClientCertificate = func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		w.note(func(v *probe) { v.wantsClientCert = true })
		return give(info)
	}
	return config
}

// speaksTLS reports whether a server completes a TLS handshake, with any certificate.
func speaksTLS(ctx context.Context, u *url.URL) bool {
	dialer := tls.Dialer{Config: &tls.Config{
		InsecureSkipVerify: true, // nothing is sent: this only detects TLS
	}}
	conn, err := dialer.DialContext(ctx, "tcp", hostPort(u))
	if err != nil {
		// A server that requires a client certificate sends an alert, which is TLS too.
		return strings.Contains(err.Error(), "remote error: tls:")
	}
	_ = conn.Close()
	return true
}

func timedOut(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

func (v *probe) isHTML() bool {
	return strings.Contains(strings.ToLower(v.header.Get("Content-Type")), "html") ||
		strings.HasPrefix(strings.ToLower(strings.TrimSpace(v.body)), "<!doctype html") ||
		strings.HasPrefix(strings.TrimSpace(v.body), "<html")
}
