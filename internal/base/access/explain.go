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

// TLSError is a connection that failed because of a certificate or of TLS itself.
type TLSError struct {
	What string // what is wrong
	Do   string // what to do about it
	// Configured means that our own settings may be wrong. It is false if only the server's operator can help, such as for
	// an expired certificate.
	Configured bool
	Err        error
}

func (e *TLSError) Error() string { return e.Err.Error() }
func (e *TLSError) Unwrap() error { return e.Err }

// Explain wraps an error about TLS of a request to the server in a *TLSError. It returns all other errors unchanged.
func (a *Access) Explain(err error) error { return a.explain(err, "url", a.cfg.URL, &a.asked) }

// explain is Explain for any server. asked: the server requested a client certificate, but none is configured.
func (a *Access) explain(err error, flag, address string, asked *atomic.Bool) error {
	var remote *net.OpError
	refused := errors.As(err, &remote) && remote.Op == "remote error" && aboutCertificate(remote.Err.Error())
	switch give := fmt.Sprintf("give one with %s and %s", a.Flag("cert-file"), a.Flag("key-file")); {
	case refused && a.cfg.CertFile == "":
		return &TLSError{What: origin(address) + " wants a client's certificate", Do: give, Configured: true, Err: err}
	case asked.Load() && brokenOff(err):
		return &TLSError{What: origin(address) + " asked for a client's certificate, got none, and broke off", Do: give,
			Err: err}
	case refused:
		return &TLSError{
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
	)
	e := &TLSError{Err: err}
	server, flag := origin(address), a.Flag(flag)
	switch {
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
