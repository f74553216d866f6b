package check

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// endpoint is a server that is asked as the daemon asks it.
type endpoint struct {
	flags  string // the prefix of its flags, such as "ledger"
	access access.Config
	url    *url.URL // nil: the flags can't be used

	asked  time.Time
	answer *http.Response // to the first request, without its body; nil: none came
	took   time.Duration
}

// client is what both clients have.
type client interface {
	Version(ctx context.Context) (string, error)
	Access() *access.Access
	Close()
}

func (e *endpoint) flag(name string) string { return "--" + e.flags + "-" + name }

// tokenConfigured reports whether a token is configured.
func (e *endpoint) tokenConfigured() bool {
	return e.access.TokenFile != "" || e.access.OAuth.TokenURL != ""
}

// anonymous returns the settings of a client that sends no token, and leaves out the TLS files that are only for the
// token endpoint.
func (e *endpoint) anonymous(server string) jsonhttp.Config {
	cfg := jsonhttp.Config{URL: server, Access: e.access, Answered: func(answer *http.Response) {
		if e.answer == nil {
			e.answer, e.took = answer, time.Since(e.asked)
		}
	}}
	if u, err := url.Parse(server); err == nil && u.Scheme == "http" && cfg.Access.OAuth.TokenURL != "" {
		cfg.Access.CAFile, cfg.Access.CertFile, cfg.Access.KeyFile = "", "", ""
	}
	cfg.Access.TokenFile, cfg.Access.OAuth = "", access.OAuth{}
	return cfg
}

// reach asks a server for its release with a client that sends no token, and reports how that went: err is that of
// making the client. It returns false if further requests would fail in the same way.
func (c *checker) reach(ctx context.Context, s section, e *endpoint, server string, client client, err error) bool {
	if err != nil {
		reportUnusable(s, "url", err)
		return false
	}
	defer client.Close()
	c.redact = append(c.redact, client.Access().Redact)
	e.url, _ = url.Parse(server) // the client has parsed it
	if access.Exposed(e.url) && (e.tokenConfigured() || e.url.User != nil) {
		s.warn("url", shown(e.url)+" is not encrypted: others on the network can read the token",
			"use https where the server offers it, or see that the network is a private one")
	} else {
		s.ok("url", "%s", shown(e.url))
	}
	if e.url.Scheme == "https" && e.access.CertFile != "" {
		reportOwnCertificate(s, e, client.Access())
	}
	within, cancel := c.step(ctx)
	defer cancel()
	e.asked = time.Now()
	_, err = client.Version(within)
	if e.answer != nil && e.answer.TLS != nil {
		reportCertificate(s, e)
	}
	what, do := explained(err)
	switch {
	case err == nil, errors.Is(err, ledger.ErrNotOffered):
		return true
	case e.answer == nil && timedOut(err):
		s.problem("connection", fmt.Sprintf("%s does not answer within %v", shown(e.url), c.timeout),
			"check host and port in "+e.flag("url")+", the firewalls and network policies in between, and whether the "+
				"server is overloaded or hangs")
		return false
	case e.answer == nil && errors.Is(err, io.EOF) && e.url.Scheme == "http":
		s.problem("connection", shown(e.url)+" takes connections and sends no HTTP",
			"it may speak TLS (write https:// in "+e.flag("url")+"), or be another port, such as that for gRPC")
		return false
	case e.answer == nil:
		s.problem("connection", what, do)
		return false
	}
	switch status := e.answer.StatusCode; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return true
	case e.tokenConfigured() && (status < http.StatusBadGateway || status > http.StatusGatewayTimeout):
		return true // a proxy may answer a request without a token with anything
	}
	s.problem("answer", what, do)
	return false
}

// shown formats a URL without user and password.
func shown(u *url.URL) string {
	bare := *u
	bare.User = nil
	return bare.String()
}

func timedOut(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// explained returns the finding's text and cure for an error of a client.
func explained(err error) (what, do string) {
	var refusal interface{ TooOften() bool }
	connection, isConnection := errors.AsType[*access.ConnectionError](err)
	problem, isProblem := errors.AsType[*ledger.Problem](err)
	switch {
	case err == nil:
		return "", ""
	case isProblem:
		return problem.Error(), problem.Do
	case isConnection:
		return connection.What + ": " + connection.Error(), connection.Do
	case timedOut(err):
		return "no answer came in time: " + err.Error(), "see whether the server is overloaded, and check again"
	case errors.As(err, &refusal) && refusal.TooOften():
		return err.Error(), "wait a while, and check again; the indexer waits too. If it lasts, ask the operator of the " +
			"server how many requests it allows"
	}
	return err.Error(), "see that the URL leads to the right server and port, what stands in between, and what the " +
		"server's log says; then check again"
}

// certificateSoon is the remaining validity below which a certificate gets a warning.
const certificateSoon = 14 * 24 * time.Hour

// reportCertificate reports an accepted certificate.
func reportCertificate(s section, e *endpoint) {
	certificate := e.answer.TLS.PeerCertificates[0]
	text := fmt.Sprintf("%s; %s", tls.VersionName(e.answer.TLS.Version), describe(certificate))
	if e.access.CAFile != "" {
		text += "; trusted by " + e.access.CAFile
	}
	if left := time.Until(certificate.NotAfter); left < certificateSoon {
		s.warn("tls", fmt.Sprintf("%s; it expires in %s", text, span(left)),
			"see that the server's certificate is renewed in time: with an expired one the indexer waits")
		return
	}
	s.ok("tls", "%s", text)
}

// reportOwnCertificate reports how long the client's certificate is valid. Whether the server accepts it comes later,
// if it requests one.
func reportOwnCertificate(s section, e *endpoint, credentials *access.Access) {
	own, err := credentials.TLS().GetClientCertificate(nil)
	if err != nil { // it could just be read
		reportUnusable(s, "certificate", err)
		return
	}
	text := fmt.Sprintf("the client's own, %s: %s", e.access.CertFile, describe(own.Leaf))
	do := "put a new one into " + e.flag("cert-file") + " and " + e.flag("key-file") + "; they are read again for each " +
		"connection, so nothing has to be restarted"
	switch now := time.Now(); {
	case now.After(own.Leaf.NotAfter):
		s.warn("certificate", fmt.Sprintf("%s; it expired %s ago", text, span(now.Sub(own.Leaf.NotAfter))), do)
	case now.Before(own.Leaf.NotBefore):
		s.warn("certificate", text+"; it is not valid yet: this machine's clock says "+now.UTC().Format(time.RFC3339),
			"set this machine's clock, or "+do)
	case own.Leaf.NotAfter.Sub(now) < certificateSoon:
		s.warn("certificate", fmt.Sprintf("%s; it expires in %s", text, span(own.Leaf.NotAfter.Sub(now))), do)
	default:
		s.ok("certificate", "%s", text)
	}
}

// describe describes a certificate: subject, issuer and validity.
func describe(c *x509.Certificate) string {
	return fmt.Sprintf("certificate of %s, signed by %s, valid from %s to %s",
		named(c.Subject.String()), named(c.Issuer.String()), c.NotBefore.UTC().Format(time.DateOnly),
		c.NotAfter.UTC().Format(time.DateOnly))
}

func named(dn string) string {
	if dn == "" {
		return "nobody (it has no subject)"
	}
	return head(dn, 120)
}

// span formats a duration for people.
func span(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return plural(int(d.Seconds()), "second")
	case d < 2*time.Hour:
		return plural(int(d.Minutes()), "minute")
	case d < 48*time.Hour:
		return plural(int(d.Hours()), "hour")
	}
	return plural(int(d.Hours()/24), "day")
}
