package throwaway

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// Authority signs certificates. Nobody trusts it who was not told to.
type Authority struct {
	Cert *x509.Certificate
	PEM  string // the certificate

	t   testing.TB
	key *ecdsa.PrivateKey
}

// NewAuthority makes an authority of a name.
func NewAuthority(t testing.TB, name string) *Authority {
	t.Helper()
	a := &Authority{t: t}
	a.Cert, a.key = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	a.PEM = pemOf("CERTIFICATE", a.Cert.Raw)
	return a
}

// Issue signs a certificate for servers and clients at 127.0.0.1, unless changes say otherwise, and returns it and its
// key in PEM form. Unless they do it is valid for a year from an hour ago on.
func (a *Authority) Issue(name string, changes ...func(*x509.Certificate)) (cert, key string) {
	a.t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, change := range changes {
		change(template)
	}
	signed, own := a.sign(template)
	der, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		a.t.Fatal(err)
	}
	return pemOf("CERTIFICATE", signed.Raw), pemOf("PRIVATE KEY", der)
}

// Pair is what [Authority.Issue] makes, for a [tls.Config].
func (a *Authority) Pair(name string, changes ...func(*x509.Certificate)) tls.Certificate {
	a.t.Helper()
	cert, key := a.Issue(name, changes...)
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		a.t.Fatal(err)
	}
	return pair
}

// Pool trusts the authority and nobody else.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.Cert)
	return pool
}

var serials atomic.Int64

// sign signs a certificate with a key of its own; the authority's own is signed by itself.
func (a *Authority) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(serials.Add(1))
	if template.NotBefore.IsZero() {
		template.NotBefore = time.Now().Add(-time.Hour)
	}
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(365 * 24 * time.Hour)
	}
	parent, signer := template, own
	if a.Cert != nil {
		parent, signer = a.Cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, own.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, own
}

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
