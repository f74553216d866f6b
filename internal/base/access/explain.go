package access

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
)

// ConnectionError is a connection that failed for a reason that says what to do.
type ConnectionError struct {
	What string // what is wrong
	Do   string // what to do about it
	// Configured means that our own settings may be wrong. It is false if the server's operator can help, such as for an
	// expired certificate, or if it may pass, as where nothing listens yet.
	Configured bool
	Err        error
}

func (e *ConnectionError) Error() string { return e.Err.Error() }
func (e *ConnectionError) Unwrap() error { return e.Err }

// Explain wraps the error of a connection to the server in a *ConnectionError where it knows what to do. It returns all
// other errors unchanged.
func (a *Access) Explain(err error) error { return a.explain(err, "url", a.cfg.URL, &a.asked) }

// explain is Explain for any server. asked: the server requested a client certificate, but none is configured.
func (a *Access) explain(err error, flag, address string, asked *atomic.Bool) error {
	var remote *net.OpError
	refused := errors.As(err, &remote) && remote.Op == "remote error" && aboutCertificate(remote.Err.Error())
	switch give := fmt.Sprintf("give one with %s and %s", a.Flag("cert-file"), a.Flag("key-file")); {
	case refused && a.cfg.CertFile == "":
		return &ConnectionError{What: origin(address) + " wants a client's certificate", Do: give, Configured: true, Err: err}
	case asked.Load() && brokenOff(err):
		return &ConnectionError{What: origin(address) + " asked for a client's certificate, got none, and broke off",
			Do: give, Err: err}
	case refused:
		return &ConnectionError{
			What: fmt.Sprintf("%s does not accept the client's certificate in %s", origin(address), a.cfg.CertFile),
			Do:   "put one there that is valid and signed by an authority which the server trusts", Err: err,
		}
	}
	return a.explainServer(err, flag, address)
}

func (a *Access) explainServer(err error, flag, address string) error {
	var (
		unverified *tls.CertificateVerificationError
		authority  x509.UnknownAuthorityError
		host       x509.HostnameError
		invalid    x509.CertificateInvalidError
		plain      tls.RecordHeaderError
		dns        *net.DNSError
		op         *net.OpError
	)
	e := &ConnectionError{Err: err}
	server, flag := origin(address), a.Flag(flag)
	switch {
	case errors.As(err, &op) && op.Op == "proxyconnect": // before what it wraps
		e.What = "the proxy that the environment names can't be used"
		e.Do = fmt.Sprintf("check HTTPS_PROXY and HTTP_PROXY, and whether the host of %s belongs into NO_PROXY", flag)
	case errors.As(err, &dns) && !dns.IsNotFound:
		e.What = fmt.Sprintf("the address of the host of %s can't be asked for", server)
		e.Do = "check this machine's DNS (in a container: its network)"
	case errors.As(err, &dns):
		e.What = fmt.Sprintf("the address of the host of %s is not found", server)
		e.Do = fmt.Sprintf("check the name in %s, and that this machine's DNS (in a container: its network) knows it", flag)
	case errors.Is(err, syscall.ECONNREFUSED):
		e.What = fmt.Sprintf("nothing listens at %s", server)
		e.Do = fmt.Sprintf("check the port in %s, and that the server runs; one that listens on 127.0.0.1 can't be reached "+
			"from another machine or container", flag)
	case strings.Contains(err.Error(), `malformed HTTP response "\x00\x00`):
		e.What = fmt.Sprintf("%s speaks HTTP/2 without being asked, as a port for gRPC does", server)
		e.Do = fmt.Sprintf("write in %s the port for HTTP (participant: http-ledger-api.port)", flag)
		e.Configured = true
	case errors.As(err, &authority):
		signer := "an authority"
		if errors.As(err, &unverified) && len(unverified.UnverifiedCertificates) > 0 {
			list := unverified.UnverifiedCertificates
			signer = fmt.Sprintf("%q", list[len(list)-1].Issuer)
		}
		e.What = fmt.Sprintf("the certificate of %s is signed by %s, which is not trusted", server, signer)
		e.Do = fmt.Sprintf("give the certificate of that authority with %s", a.Flag("ca-file"))
		if a.cfg.CAFile != "" {
			e.Do = fmt.Sprintf("put the certificate of that authority into %s (%s)", a.cfg.CAFile, a.Flag("ca-file"))
		}
		e.Configured = true
	case errors.As(err, &host):
		e.What = fmt.Sprintf("the server's certificate is not for %s", server)
		e.Do = fmt.Sprintf("write in %s a name that it is for, or give the server a certificate for this one", flag)
		e.Configured = true
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		e.What = fmt.Sprintf("the certificate of %s, or of one of its authorities, is not valid now", server)
		e.Do = "renew it there, and see that this machine's clock is right"
	case errors.As(err, &unverified):
		e.What = fmt.Sprintf("the certificate of %s can't be accepted", server)
		e.Do = "give the server another certificate"
	case errors.As(err, &plain), errors.Is(err, http.ErrSchemeMismatch):
		e.What = fmt.Sprintf("%s does not speak TLS", server)
		e.Do = fmt.Sprintf("write http:// in %s, if nothing else is wrong with it", flag)
		e.Configured = true
	case speaksTLS(err):
		e.What = fmt.Sprintf("%s speaks TLS", server)
		e.Do = fmt.Sprintf("write https:// in %s", flag)
		e.Configured = true
	default:
		return err
	}
	return e
}

// Refusal explains the refusal of a token and of a fresh one: what happened, and what the operator is to do. do is
// empty if the next try may use another token. token describes the refused one ([DescribeToken]).
func (a *Access) Refusal(server, token string) (what, do string) {
	if a.Configured() {
		// The next try may find a newer token.
		what = server + " refused the token of " + a.Origin()
		if token != "" {
			what += ", which " + token
		}
		return what + "; another one is used with the next try", ""
	}
	if u, err := url.Parse(a.cfg.URL); err == nil && u.User != nil {
		return fmt.Sprintf("%s, or a proxy before it, refused the user and password in %s", server, a.Flag("url")),
			"correct them, or give a token with " + a.Flag("token-file")
	}
	return server + " wants a token and none is configured", fmt.Sprintf(
		"give the file that holds it with %s, or have tokens fetched with %s", a.Flag("token-file"),
		a.Flag("oauth-token-url"))
}

// origin returns the scheme and host of a URL.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "the server"
	}
	return u.Scheme + "://" + u.Host
}

// aboutCertificate reports whether a TLS alert of the server is about the client's certificate. It matches the text: Go
// has no type for a received alert.
func aboutCertificate(alert string) bool {
	for _, words := range []string{"certificate required", "bad certificate", "unsupported certificate",
		"revoked certificate",
		"expired certificate", "unknown certificate", "access denied", "handshake failure"} {
		if strings.Contains(alert, words) {
			return true
		}
	}
	return false
}

// brokenOff reports whether a connection broke off. With TLS 1.3 this may be how a missing client certificate is
// refused: the client completes its handshake first, and the end of the connection may overtake the refusal. It is only
// a hint.
func brokenOff(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// speaksTLS reports whether a plain HTTP request was answered with TLS: an alert, which net/http quotes.
func speaksTLS(err error) bool {
	return strings.Contains(err.Error(), `malformed HTTP response "\x15\x03`)
}
