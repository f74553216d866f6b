package check

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ledgerindexer/internal/base/access"
)

// endpoint is an HTTP server.
type endpoint struct {
	name        string // for people, such as "the participant's JSON API"
	flags       string // the prefix of its flags, such as "ledger"
	access      access.Config
	url         *url.URL
	credentials *access.Access // without a token
}

func (e endpoint) flag(name string) string { return "--" + e.flags + "-" + name }

// tokenConfigured reports whether a token is configured.
func (e endpoint) tokenConfigured() bool {
	return e.access.TokenFile != "" || e.access.OAuth.TokenURL != ""
}

// certificateSoon is the remaining validity below which a certificate gets a warning.
const certificateSoon = 14 * 24 * time.Hour

// connect probes a path of an endpoint and reports each step. ok is false if no answer came.
func (c *checker) connect(ctx context.Context, s section, e endpoint, path string) (v *probe, ok bool) {
	within, cancel := c.step(ctx)
	defer cancel()
	v = send(within, e.url.JoinPath(path), e.credentials.TLS())
	c.reportURL(s, e)
	if e.url.Scheme == "https" && e.access.CertFile != "" {
		reportOwnCertificate(s, e)
	}
	if v.proxy != nil {
		s.note("proxy", "the environment sets the proxy %s", v.proxy.Host)
	}
	switch v.step {
	case stepName:
		c.reportName(s, e, v)
		return v, false
	case stepConnection:
		c.reportNoConnection(s, e, v)
		return v, false
	case stepProxy:
		s.problem("proxy", fmt.Sprintf("the proxy does not connect to %s: %v", e.url.Host, v.err),
			"check HTTPS_PROXY, HTTP_PROXY and NO_PROXY, and whether "+e.url.Hostname()+" belongs into NO_PROXY")
		return v, false
	case stepTLS, stepAnswer, stepDone:
	}
	via := ""
	if len(v.addresses) > 0 && v.proxy == nil {
		via = fmt.Sprintf(" (%s is %s)", e.url.Hostname(), some(v.addresses))
	}
	s.ok("connection", "%s takes connections%s", v.remote, via)
	if v.tls != nil {
		c.reportCertificate(s, e, v)
	}
	if v.step == stepTLS {
		c.reportNoHandshake(s, e, v)
		return v, false
	}
	if v.err != nil {
		c.reportNoAnswer(ctx, s, e, v)
		return v, false
	}
	return v, true
}

func (c *checker) reportURL(s section, e endpoint) {
	if e.url.Scheme == "http" && !local(e.url.Hostname()) && (e.tokenConfigured() || e.url.User != nil) {
		s.warn("url", shown(e.url)+" is not encrypted: others on the network can read the token",
			"use https where the server offers it, or see that the network is a private one")
		return
	}
	s.ok("url", "%s", shown(e.url))
}

func (c *checker) reportName(s section, e endpoint, v *probe) {
	what := fmt.Sprintf("the host %s has no address", e.url.Hostname())
	do := "check the name in " + e.flag("url") + ", and that this machine's DNS (in a container: its network) knows it"
	var dns *net.DNSError
	if !errors.As(v.err, &dns) || !dns.IsNotFound {
		what = fmt.Sprintf("the name %s can't be resolved: %s", e.url.Hostname(), cause(v.err, c.timeout))
	}
	s.problem("connection", what, do)
}

func (c *checker) reportNoConnection(s section, e endpoint, v *probe) {
	to := hostPort(e.url)
	if v.proxy != nil {
		to = "the proxy " + v.proxy.Host
	}
	switch {
	case errors.Is(v.err, syscall.ECONNREFUSED):
		s.problem("connection", to+" refuses connections: nothing listens there",
			"check the port in "+e.flag("url")+" and that the server runs; one that listens on 127.0.0.1 can't be reached "+
				"from another machine or container")
	case timedOut(v.err):
		s.problem("connection", fmt.Sprintf("%s does not answer within %v: the host is away, or a firewall drops packets", to,
			c.timeout),
			"check host and port in "+e.flag("url")+", and the firewalls and network policies between here and there")
	default:
		s.problem("connection", fmt.Sprintf("no connection to %s: %s", to, cause(v.err, c.timeout)),
			"check host and port in "+e.flag("url"))
	}
}

// reportCertificate reports an accepted certificate.
func (c *checker) reportCertificate(s section, e endpoint, v *probe) {
	certificate := v.tls.PeerCertificates[0]
	text := fmt.Sprintf("%s; %s", tls.VersionName(v.tls.Version), describe(certificate))
	if e.access.CAFile != "" {
		text += "; trusted by " + e.access.CAFile
	}
	if v.wantsClientCert {
		if e.access.CertFile != "" {
			text += "; a client certificate was requested and sent"
		} else {
			text += "; a client certificate was requested, and none is configured"
		}
	}
	if left := time.Until(certificate.NotAfter); left < certificateSoon {
		s.warn("tls", fmt.Sprintf("%s, in %s", text, span(left)), "see that the server's certificate is renewed in time: "+
			"with an expired one the indexer waits")
		return
	}
	s.ok("tls", "%s", text)
}

// reportOwnCertificate reports how long the client's certificate is valid. Whether the server accepts it comes later,
// if it requests one.
func reportOwnCertificate(s section, e endpoint) {
	own, err := e.credentials.TLS().GetClientCertificate(nil)
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

// reportTLS reports an error of TLS, and returns whether it is one.
func (c *checker) reportTLS(s section, e endpoint, v *probe) bool {
	var wrong *access.TLSError
	if !errors.As(e.credentials.Explain(v.err), &wrong) {
		return false
	}
	s.problem("tls", wrong.What+c.details(e, wrong), wrong.Do)
	return true
}

// details describes a refused certificate: what the decision depends on.
func (c *checker) details(e endpoint, wrong *access.TLSError) string {
	var verify *tls.CertificateVerificationError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	if !errors.As(wrong, &verify) || len(verify.UnverifiedCertificates) == 0 {
		return ""
	}
	leaf := verify.UnverifiedCertificates[0]
	text := ": it is a " + describe(leaf)
	switch {
	case errors.As(wrong, &host):
		text += ", for " + some(namesOf(leaf))
	case errors.As(wrong, &invalid) && invalid.Cert != nil:
		if invalid.Cert != leaf {
			text += "; the other is a " + describe(invalid.Cert)
		}
		text += "; this machine's clock says " + time.Now().UTC().Format(time.RFC3339)
	case leaf.Subject.String() == leaf.Issuer.String():
		text += " (self-signed: it is its own authority)"
	}
	return text
}

func namesOf(c *x509.Certificate) []string {
	list := append([]string{}, c.DNSNames...)
	for _, ip := range c.IPAddresses {
		list = append(list, ip.String())
	}
	if len(list) == 0 {
		return []string{"nobody: it names no host, and its common name does not count"}
	}
	return list
}

func (c *checker) reportNoHandshake(s section, e endpoint, v *probe) {
	switch {
	case c.reportTLS(s, e, v):
	case timedOut(v.err):
		s.problem("tls", fmt.Sprintf("%s accepts the connection and sends nothing for %v", hostPort(e.url), c.timeout),
			"check the port in "+e.flag("url")+": the server there may expect another protocol than TLS")
	default:
		s.problem("tls", fmt.Sprintf("the TLS handshake with %s failed: %s", hostPort(e.url), cause(v.err, c.timeout)),
			"check the port in "+e.flag("url")+": does the server speak TLS there, and versions 1.2 or 1.3?")
	}
}

// reportNoAnswer reports a connection without an answer.
func (c *checker) reportNoAnswer(ctx context.Context, s section, e endpoint, v *probe) {
	text := v.err.Error()
	switch {
	case c.reportTLS(s, e, v): // with TLS 1.3 the server checks a client certificate after the handshake
	case timedOut(v.err):
		s.problem("answer", fmt.Sprintf("%s accepts the connection and does not answer within %v", hostPort(e.url),
			c.timeout),
			"check the port in "+e.flag("url")+"; if it is right, see whether the server is overloaded or hangs")
	case strings.Contains(text, `malformed HTTP response "\x00\x00`):
		s.problem("answer", hostPort(e.url)+" speaks HTTP/2 without being asked, as a gRPC port does",
			"use the port of "+e.name+", not the one for gRPC (participant: http-ledger-api.port)")
	case e.url.Scheme == "http" && v.proxy == nil && c.speaksTLS(ctx, e.url):
		c.reportTLSExpected(s, e)
	default:
		s.problem("answer", fmt.Sprintf("%s accepts the connection and sends no HTTP answer: %s", hostPort(e.url),
			cause(v.err, c.timeout)),
			"check the port in "+e.flag("url")+": is it that of "+e.name+"?")
	}
}

// reportDetour reports an answer that is certainly not the server's own, and returns whether it is one.
func (c *checker) reportDetour(s section, e endpoint, v *probe) bool {
	switch {
	// the text of several servers
	case v.status == http.StatusBadRequest && e.url.Scheme == "http" && strings.Contains(v.body, "HTTPS"):
		c.reportTLSExpected(s, e)
	case v.status >= 300 && v.status < 400:
		reportRedirect(s, e, v)
	case v.status == http.StatusBadGateway, v.status == http.StatusServiceUnavailable,
		v.status == http.StatusGatewayTimeout:
		s.problem("answer", fmt.Sprintf("the answer is %s: %q", statusText(v.status), head(v.body, 120)),
			"see whether the server behind it runs and is ready; the answer may be that of a proxy before it")
	default:
		return false
	}
	return true
}

func reportRedirect(s section, e endpoint, v *probe) {
	location := v.header.Get("Location")
	to, err := v.url.Parse(location)
	if err != nil || location == "" {
		s.problem("answer", fmt.Sprintf("the answer is %s, without a location", statusText(v.status)), "check "+e.flag("url"))
		return
	}
	to.RawQuery, to.Fragment, to.User = "", "", nil // they may contain secrets
	do := "set " + e.flag("url") + " to the server itself: redirects are not followed, because a POST would lose its " +
		"body and the token would go elsewhere"
	if to.Scheme != e.url.Scheme && to.Hostname() == e.url.Hostname() {
		do = "use " + to.Scheme + ":// in " + e.flag("url")
	}
	s.problem("answer", fmt.Sprintf("the answer is %s to %s", statusText(v.status), head(to.String(), 200)), do)
}

func statusText(status int) string {
	return strings.TrimSpace(strconv.Itoa(status) + " " + http.StatusText(status))
}

func (c *checker) reportTLSExpected(s section, e endpoint) {
	secure := *e.url
	secure.Scheme = "https"
	s.problem("tls", hostPort(e.url)+" speaks TLS, and the URL says http", "use "+shown(&secure))
}

func (c *checker) speaksTLS(ctx context.Context, u *url.URL) bool {
	within, cancel := c.step(ctx)
	defer cancel()
	return speaksTLS(within, u)
}

// cause returns the text of an error without what net/http and the context add.
func cause(err error, timeout time.Duration) string {
	var op *net.OpError
	switch {
	case timedOut(err):
		return fmt.Sprintf("nothing came within %v", timeout)
	case errors.As(err, &op) && op.Err != nil:
		return op.Err.Error()
	}
	return err.Error()
}
