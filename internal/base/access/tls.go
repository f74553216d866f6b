package access

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
)

// authorities holds the trusted certificates of a CA file. The zero value trusts the system's.
type authorities struct {
	flag, path string
	system     bool           // the system's are trusted too
	text       string         // the file's last usable contents
	roots      *x509.CertPool // of text; nil: the system's
}

// load reads the file again and reports whether it has changed. If the file is not usable, the authorities stay as they
// were.
func (a *authorities) load() (changed bool, err error) {
	if a.path == "" {
		return false, nil
	}
	text, err := readFile(a.flag, a.path)
	if err != nil || text == a.text {
		return false, err
	}
	roots := x509.NewCertPool()
	if a.system {
		if pool, err := x509.SystemCertPool(); err == nil {
			roots = pool
		}
	}
	if err := addCertificates(roots, text); err != nil {
		return false, fmt.Errorf("%s: %s %w", a.flag, a.path, err)
	}
	a.text, a.roots = text, roots
	return true, nil
}

func addCertificates(pool *x509.CertPool, text string) error {
	count := 0
	for rest := []byte(text); ; count++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("must hold certificates and nothing else, and has a %s", block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return fmt.Errorf("has an unreadable certificate (number %d): %w", count+1, err)
		}
		pool.AddCert(cert)
	}
	if count == 0 {
		return errors.New("holds no certificate in PEM form")
	}
	return nil
}

func (a *Access) certificate() (*tls.Certificate, error) {
	chain, err := readFile(a.Flag("cert-file"), a.cfg.CertFile)
	if err != nil {
		return nil, err
	}
	key, err := readFile(a.Flag("key-file"), a.cfg.KeyFile)
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair([]byte(chain), []byte(key))
	if err != nil {
		return nil, fmt.Errorf("%s %s and %s %s: %w", a.Flag("cert-file"), a.cfg.CertFile, a.Flag("key-file"), a.cfg.KeyFile,
			err)
	}
	return &cert, nil
}

// present provides the client's certificate for handshakes, read each time, because it may have been renewed. If none
// is configured, it sets asked.
func (a *Access) present(asked *atomic.Bool) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if a.cfg.CertFile == "" {
			asked.Store(true)
			return &tls.Certificate{}, nil // none is sent; the server may not require it
		}
		return a.certificate()
	}
}

// TLS returns the configuration for a connection to the server: TLS 1.2 or later, the authorities as read by New, and
// the client's certificate, which is read again for each handshake.
func (a *Access) TLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: a.authorities.roots,
		GetClientCertificate: a.present(&a.asked)}
}

// Transport is an http.RoundTripper with the TLS settings of an Access.
type Transport struct {
	log *slog.Logger

	mu          sync.Mutex
	authorities authorities
	inUse       *http.Transport
	lastError   string // why the CA file was last not usable; empty: it is usable
}

// Transport adds the TLS settings to base, which belongs to it from then on. When the CA file is replaced, new
// connections use its new contents.
func (a *Access) Transport(base *http.Transport) *Transport {
	base.TLSClientConfig = a.TLS()
	return &Transport{log: a.log, authorities: a.authorities, inUse: base}
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.current().RoundTrip(r)
}

func (t *Transport) current() *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed, err := t.authorities.load()
	switch {
	case changed:
		old := t.inUse
		t.inUse = old.Clone()
		t.inUse.TLSClientConfig.RootCAs = t.authorities.roots
		old.CloseIdleConnections()
	case err != nil && err.Error() != t.lastError: // log once, not with every request
		t.log.Warn("the file of authorities can't be used: those read before are trusted", "error", err)
	}
	t.lastError = ""
	if err != nil {
		t.lastError = err.Error()
	}
	return t.inUse
}

// CloseIdleConnections closes idle connections.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inUse.CloseIdleConnections()
}
