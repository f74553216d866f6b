package access

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/throwaway"
)

// secure is a server whose certificate can be replaced, and that says who its clients say they are.
type secure struct {
	*httptest.Server
	pair    atomic.Pointer[tls.Certificate]
	clients atomic.Pointer[throwaway.Authority] // who signs certificates of clients; nil: none are wanted
	first   atomic.Bool                         // TLS 1.2 at most
}

func newSecure(t *testing.T, pair tls.Certificate) *secure {
	s := &secure{}
	s.use(pair)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := "nobody"
		if len(r.TLS.PeerCertificates) > 0 {
			name = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		_, _ = io.WriteString(w, name)
	}))
	s.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		cfg := &tls.Config{Certificates: []tls.Certificate{*s.pair.Load()}}
		if a := s.clients.Load(); a != nil {
			cfg.ClientAuth, cfg.ClientCAs = tls.RequireAndVerifyClientCert, a.Pool()
		}
		if s.first.Load() {
			cfg.MaxVersion = tls.VersionTLS12
		}
		return cfg, nil
	}}
	s.Config.ErrorLog = discard
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *secure) use(pair tls.Certificate) { s.pair.Store(&pair) }

// caller is a client of a server with the settings of an Access, one connection for each call.
func caller(t *testing.T, a *Access) func(address string) (string, error) {
	c := &http.Client{Transport: a.Transport(&http.Transport{DisableKeepAlives: true})}
	t.Cleanup(c.CloseIdleConnections)
	return func(address string) (string, error) {
		resp, err := c.Get(address)
		if err != nil {
			return "", a.Explain(err)
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		return string(text), err
	}
}

func refusal(t *testing.T, err error) *ConnectionError {
	t.Helper()
	var refused *ConnectionError
	require.ErrorAs(t, err, &refused)
	return refused
}

func TestTheServersCertificate(t *testing.T) {
	t.Parallel()
	ours, theirs := throwaway.NewAuthority(t, "our authority"), throwaway.NewAuthority(t, "their authority")
	trusted := file(t, "ca.pem", "a comment\n"+throwaway.NewAuthority(t, "another").PEM+ours.PEM)
	for name, c := range map[string]struct {
		pair       tls.Certificate
		ca         string
		what, do   string // empty: it is accepted
		configured bool
	}{
		"signed by ours": {ours.Pair("server"), trusted, "", "", false},
		"signed by an unknown one": {theirs.Pair("server"), trusted,
			`the certificate of %s is signed by "CN=their authority", which is not trusted`,
			"put the certificate of that authority into " + trusted + " (--scan-ca-file)", true},
		"the system's don't know it": {ours.Pair("server"), "",
			`the certificate of %s is signed by "CN=our authority", which is not trusted`,
			"give the certificate of that authority with --scan-ca-file", true},
		"for another host": {ours.Pair("server", elsewhere), trusted, "the server's certificate is not for %s",
			"write in --scan-url a name that it is for, or give the server a certificate for this one", true},
		"expired": {ours.Pair("server", expired), trusted, "the certificate of %s, or of one of its authorities, is not valid now",
			"renew it there, and see that this machine's clock is right", false},
		"for something else": {ours.Pair("server", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning} }),
			trusted, "the certificate of %s can't be accepted", "give the server another certificate", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSecure(t, c.pair)
			text, err := caller(t, made(t, Config{Flags: "scan", URL: s.URL + "/api", CAFile: c.ca}))(s.URL)
			if c.what == "" {
				require.NoError(t, err)
				require.Equal(t, "nobody", text)
				return
			}
			refused := refusal(t, err)
			require.Equal(t, strings.ReplaceAll(c.what, "%s", s.URL), refused.What)
			require.Equal(t, c.do, refused.Do)
			require.Equal(t, c.configured, refused.Configured)
			require.ErrorContains(t, refused, "x509: ", "the cause is kept")
		})
	}
}

func TestTheSchemeIsWrong(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	address := strings.Replace(plain.URL, "http://", "https://", 1)
	_, err := caller(t, made(t, Config{URL: address}))(address)
	refused := refusal(t, err)
	require.Equal(t, address+" does not speak TLS", refused.What)
	require.Contains(t, refused.Do, "http:// in --ledger-url")
	require.True(t, refused.Configured)

	// What most servers answer to plain HTTP: a TLS alert. (Go's own answers in HTTP.)
	alert := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, "\x15\x03\x03\x00\x02\x02\x50")
		_ = conn.Close()
	}))
	t.Cleanup(alert.Close)
	_, err = caller(t, made(t, Config{URL: alert.URL}))(alert.URL)
	refused = refusal(t, err)
	require.Equal(t, alert.URL+" speaks TLS", refused.What)
	require.Equal(t, "write https:// in --ledger-url", refused.Do)

	require.Equal(t, io.EOF, made(t, Config{}).Explain(io.EOF), "of others nothing is said")
}

// What may pass, as a server that is not up yet, is no setting of ours.
func TestThereIsNoConnection(t *testing.T) {
	t.Parallel()
	grpc := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, "\x00\x00\x12\x04\x00\x00\x00\x00\x00")
		_ = conn.Close()
	}))
	t.Cleanup(grpc.Close)
	for address, c := range map[string]struct {
		what, do   string
		configured bool
	}{
		"http://127.0.0.1:1": {"nothing listens at http://127.0.0.1:1", "check the port in --scan-url, and that the server runs", false},
		"https://scan.invalid/api": {"the address of the host of https://scan.invalid is not found",
			"check the name in --scan-url, and that this machine's DNS", false},
		grpc.URL: {grpc.URL + " speaks HTTP/2 without being asked, as a port for gRPC does", "write in --scan-url the port for HTTP", true},
	} {
		_, err := caller(t, made(t, Config{Flags: "scan", URL: address}))(address)
		refused := refusal(t, err)
		require.Equal(t, c.what, refused.What)
		require.Contains(t, refused.Do, c.do)
		require.Equal(t, c.configured, refused.Configured)
	}
	away := &net.OpError{Op: "proxyconnect", Net: "tcp", Err: syscall.ECONNREFUSED}
	refused := refusal(t, made(t, Config{Flags: "scan", URL: "https://scan.invalid"}).Explain(away))
	require.Equal(t, "the proxy that the environment names can't be used", refused.What)
	require.Equal(t, "check HTTPS_PROXY and HTTP_PROXY, and whether the host of --scan-url belongs into NO_PROXY", refused.Do)
}

func TestAClientsCertificateIsReadForEachConnection(t *testing.T) {
	t.Parallel()
	ours, theirs := throwaway.NewAuthority(t, "our authority"), throwaway.NewAuthority(t, "their authority")
	s := newSecure(t, ours.Pair("server"))
	s.clients.Store(ours)
	cert, key := ours.Issue("the first")
	certFile, keyFile := file(t, "cert.pem", cert), file(t, "key.pem", key)
	call := caller(t, made(t, Config{URL: s.URL, CAFile: file(t, "ca.pem", ours.PEM), CertFile: certFile, KeyFile: keyFile}))
	name, err := call(s.URL)
	require.NoError(t, err)
	require.Equal(t, "the first", name)

	cert, key = ours.Issue("the second")
	write(t, certFile, cert) // one after the other: for a moment they don't belong together
	_, err = call(s.URL)
	require.ErrorContains(t, err, "--ledger-cert-file "+certFile+" and --ledger-key-file "+keyFile+": tls: private key does not match")
	write(t, keyFile, key)
	name, err = call(s.URL)
	require.NoError(t, err)
	require.Equal(t, "the second", name)

	require.NoError(t, os.Remove(certFile))
	_, err = call(s.URL)
	require.ErrorIs(t, err, os.ErrNotExist)

	s.first.Store(true) // the refusal belongs to the handshake
	cert, key = theirs.Issue("a stranger")
	write(t, certFile, cert)
	write(t, keyFile, key)
	_, err = call(s.URL)
	refused := refusal(t, err)
	require.Equal(t, s.URL+" does not accept the client's certificate in "+certFile, refused.What)
	require.False(t, refused.Configured, "it may be replaced while we run")
}

func TestAServerMayDemandAClientsCertificate(t *testing.T) {
	t.Parallel()
	ours := throwaway.NewAuthority(t, "our authority")
	s := newSecure(t, ours.Pair("server"))
	s.clients.Store(ours)
	a := made(t, Config{URL: s.URL, CAFile: file(t, "ca.pem", ours.PEM)})
	const give = "give one with --ledger-cert-file and --ledger-key-file"
	_, err := caller(t, a)(s.URL)
	require.Equal(t, give, refusal(t, err).Do, "with TLS 1.3 the connection may break before the reason comes")

	s.first.Store(true)
	_, err = caller(t, a)(s.URL)
	refused := refusal(t, err)
	require.Equal(t, s.URL+" wants a client's certificate", refused.What)
	require.Equal(t, give, refused.Do)
	require.True(t, refused.Configured)

	broken := &net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.EPIPE)}
	refused = refusal(t, a.Explain(broken))
	require.Equal(t, s.URL+" asked for a client's certificate, got none, and broke off", refused.What)
	require.False(t, refused.Configured, "it may have been something else")
	require.Equal(t, broken, made(t, Config{}).Explain(broken), "who did not ask did not break off for it")
}

func TestAuthoritiesAreFollowed(t *testing.T) {
	t.Parallel()
	before, after := throwaway.NewAuthority(t, "before"), throwaway.NewAuthority(t, "after")
	s := newSecure(t, before.Pair("server"))
	path := file(t, "ca.pem", before.PEM)
	var log logged
	a, err := New(Config{Flags: "ledger", URL: s.URL, CAFile: path}, log.logger())
	require.NoError(t, err)
	call := caller(t, a)
	_, err = call(s.URL)
	require.NoError(t, err)

	s.use(after.Pair("server"))
	_, err = call(s.URL)
	require.Contains(t, refusal(t, err).What, `"CN=after", which is not trusted`)
	write(t, path, after.PEM)
	_, err = call(s.URL)
	require.NoError(t, err)
	s.use(before.Pair("server"))
	_, err = call(s.URL)
	require.Contains(t, refusal(t, err).What, `"CN=before", which is not trusted`, "who is no more in the file is not trusted")

	// A file that is being written takes nothing away.
	s.use(after.Pair("server"))
	write(t, path, "")
	for range 3 {
		_, err = call(s.URL)
		require.NoError(t, err)
	}
	require.Equal(t, 1, strings.Count(log.String(), "level=WARN"), log.String())
	require.Contains(t, log.String(), path+" holds no certificate in PEM form")
}

// The endpoint may be signed by the same authority as the participant, which the system does not know.
func TestTheTokenEndpointIsTrustedBySystemAndFile(t *testing.T) {
	t.Parallel()
	ours, theirs := throwaway.NewAuthority(t, "our authority"), throwaway.NewAuthority(t, "their authority")
	e := newEndpoint(t)
	s := httptest.NewUnstartedServer(e.Config.Handler)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{ours.Pair("endpoint")}}
	s.Config.ErrorLog = discard
	s.StartTLS()
	t.Cleanup(s.Close)
	at := func(c *Config) { c.OAuth.TokenURL = s.URL + "/token" }

	a, _ := e.client(at, func(c *Config) { c.CAFile = file(t, "ca.pem", ours.PEM) })
	require.Equal(t, "token-1", tokenOf(t, a))

	for _, ca := range []string{"", file(t, "ca.pem", theirs.PEM)} {
		a, _ = e.client(at, func(c *Config) { c.CAFile = ca })
		_, err := a.Token(t.Context())
		require.ErrorContains(t, err, "no token from "+s.URL+"/token: the certificate of "+s.URL+` is signed by "CN=our authority", which is not trusted`)
		require.ErrorContains(t, err, "--ledger-ca-file")
	}
}

// The endpoint may stand behind the same TLS as the server.
func TestTheTokenEndpointMayDemandAClientsCertificate(t *testing.T) {
	t.Parallel()
	servers, clients := throwaway.NewAuthority(t, "servers"), throwaway.NewAuthority(t, "clients")
	e := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tell(w, http.StatusOK, map[string]string{"access_token": "of-" + r.TLS.PeerCertificates[0].Subject.CommonName})
	}))
	e.TLS = &tls.Config{Certificates: []tls.Certificate{servers.Pair("token endpoint")}, ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs: clients.Pool()}
	e.Config.ErrorLog = discard
	e.StartTLS()
	t.Cleanup(e.Close)
	cert, key := clients.Issue("indexer")
	for _, server := range []string{"https://participant", "http://participant"} {
		cfg := Config{URL: server, CAFile: file(t, "ca", servers.PEM), CertFile: file(t, "cert", cert), KeyFile: file(t, "key", key),
			OAuth: OAuth{TokenURL: e.URL, ClientID: "indexer", ClientSecretFile: file(t, "secret", secret)}}
		require.Equal(t, "of-indexer", tokenOf(t, made(t, cfg)))

		cfg.CertFile, cfg.KeyFile = "", ""
		a := made(t, cfg)
		_, err := a.Token(t.Context())
		require.ErrorContains(t, err, "client's certificate")
		require.ErrorContains(t, err, "give one with --ledger-cert-file and --ledger-key-file")
		require.ErrorContains(t, err, e.URL)
		require.False(t, a.asked.Load(), "the participant asked for nothing")
	}
}

func TestNothingBelowTLS12(t *testing.T) {
	t.Parallel()
	require.EqualValues(t, tls.VersionTLS12, made(t, Config{}).TLS().MinVersion)
	old := httptest.NewUnstartedServer(http.NotFoundHandler())
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	old.Config.ErrorLog = discard
	old.StartTLS()
	t.Cleanup(old.Close)
	_, err := caller(t, made(t, Config{URL: old.URL}))(old.URL)
	require.ErrorContains(t, err, "protocol version")
	require.False(t, errors.As(err, new(*ConnectionError)))
}
