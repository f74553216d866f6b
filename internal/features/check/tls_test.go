package check

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// issued is a certificate of the participant's name for this machine's loopback address, unless changes say otherwise.
func issued(a *throwaway.Authority, changes ...func(*x509.Certificate)) tls.Certificate {
	return a.Pair("participant.test", changes...)
}

// files writes a certificate of the participant's name and its key.
func files(t *testing.T, a *throwaway.Authority, changes ...func(*x509.Certificate)) (certFile, keyFile string) {
	t.Helper()
	cert, key := a.Issue("participant.test", changes...)
	return file(t, "cert.pem", cert), file(t, "key.pem", key)
}

func secured(t *testing.T, config *tls.Config) (url string) {
	t.Helper()
	server := httptest.NewUnstartedServer(sandbox.NewServer(grown(5), sandbox.ServerOptions{}))
	server.TLS = config
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	ours := throwaway.NewAuthority(t, "Our Authority")
	ourFile := file(t, "ca.pem", ours.PEM)
	now := time.Now()
	for name, c := range map[string]struct {
		pair   tls.Certificate
		caFile string
		level  Level
		says   []string
		do     string
	}{
		"trusted":     {issued(ours), ourFile, OK, []string{"TLS 1.3", "CN=participant.test", "CN=Our Authority", now.Add(365 * 24 * time.Hour).UTC().Format(time.DateOnly), ourFile}, ""},
		"not trusted": {issued(ours), "", Problem, []string{"CN=Our Authority", "not trusted"}, "--ledger-ca-file"},
		"for another host": {issued(ours, func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"a.test", "b.test"} }), ourFile,
			Problem, []string{"is not for https://127.0.0.1"}, "--ledger-url"},
		"expired": {issued(ours, func(c *x509.Certificate) { c.NotBefore, c.NotAfter = now.Add(-48*time.Hour), now.Add(-24*time.Hour) }), ourFile,
			Problem, []string{"not valid now", now.Add(-24 * time.Hour).UTC().Format(time.DateOnly), "current time"}, "clock"},
		"soon expired": {issued(ours, func(c *x509.Certificate) { c.NotAfter = now.Add(49 * time.Hour) }), ourFile, Warning, []string{"it expires in 2 days"}, "renewed"},
		"hostile": {issued(ours, func(c *x509.Certificate) { c.Subject.CommonName = "\x1b[2J\n" + strings.Repeat("x", 10_000) }), ourFile,
			OK, []string{"…"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := secured(t, &tls.Config{Certificates: []tls.Certificate{c.pair}})
			ledgerSide, scanSide, report := connecting(t, Config{LedgerURL: url, LedgerAccess: access.Config{CAFile: c.caFile}})
			topic := "tls"
			if c.level == Problem {
				topic = "connection"
			}
			f := find(t, report, GroupLedger, topic)
			require.Equal(t, c.level, f.Level, f.Text)
			for _, text := range c.says {
				require.Contains(t, f.Text, text)
			}
			require.Contains(t, f.Do, c.do)
			require.Less(t, len(f.Text), 1000)
			require.Equal(t, string(c.level)+" ledger/"+topic, ledgerSide[1])
			require.Equal(t, string(c.level)+" scan/"+topic, scanSide[1])
			if c.level == Problem {
				require.Len(t, ledgerSide, 2, "what comes next needs the connection")
				require.NotContains(t, find(t, report, GroupScan, topic).Do, "--ledger")
			} else {
				require.Contains(t, levels(report), "ok scope/reading")
			}
		})
	}
}

func TestClientCertificates(t *testing.T) {
	t.Parallel()
	ours, theirs := throwaway.NewAuthority(t, "Our Authority"), throwaway.NewAuthority(t, "Their Authority")
	ca := access.Config{CAFile: file(t, "ca.pem", ours.PEM)}
	good, bad := ca, ca
	good.CertFile, good.KeyFile = files(t, ours)
	bad.CertFile, bad.KeyFile = files(t, theirs)
	for name, c := range map[string]struct {
		access access.Config
		level  string
		text   string
	}{
		"given":      {good, "ok ledger/tls", "TLS 1."},
		"missing":    {ca, "problem ledger/connection", "client's certificate"},
		"of another": {bad, "problem ledger/connection", "does not accept the client's certificate"},
	} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			t.Run(name+", "+tls.VersionName(version), func(t *testing.T) {
				t.Parallel()
				url := secured(t, &tls.Config{
					Certificates: []tls.Certificate{issued(ours)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ours.Pool(), MinVersion: version, MaxVersion: version,
				})
				report := look(t, Config{LedgerURL: url, LedgerAccess: c.access})
				require.Contains(t, of(report, GroupLedger), c.level)
				_, topic, _ := strings.Cut(c.level, "/")
				require.Contains(t, find(t, report, GroupLedger, topic).Text, c.text)
			})
		}
	}
}

// The client's own certificate is looked at before the server refuses it.
func TestTheClientsOwnCertificate(t *testing.T) {
	t.Parallel()
	ours := throwaway.NewAuthority(t, "Our Authority")
	now := time.Now()
	for name, c := range map[string]struct {
		change func(*x509.Certificate)
		level  Level
		says   string
	}{
		"valid":         {func(*x509.Certificate) {}, OK, "certificate of CN=participant.test, signed by CN=Our Authority"},
		"expired":       {func(c *x509.Certificate) { c.NotBefore, c.NotAfter = now.Add(-99*time.Hour), now.Add(-73*time.Hour) }, Warning, "it expired 3 days ago"},
		"soon expired":  {func(c *x509.Certificate) { c.NotAfter = now.Add(49 * time.Hour) }, Warning, "it expires in 2 days"},
		"not valid yet": {func(c *x509.Certificate) { c.NotBefore = now.Add(48 * time.Hour) }, Warning, "it is not valid yet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := access.Config{CAFile: file(t, "ca.pem", ours.PEM)}
			config.CertFile, config.KeyFile = files(t, ours, c.change)
			url := secured(t, &tls.Config{Certificates: []tls.Certificate{issued(ours)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ours.Pool()})
			ledgerSide, scanSide, report := connecting(t, Config{LedgerURL: url, LedgerAccess: config})
			require.Equal(t, string(c.level)+" ledger/certificate", ledgerSide[1])
			require.Equal(t, string(c.level)+" scan/certificate", scanSide[1])
			f := find(t, report, GroupLedger, "certificate")
			require.Contains(t, f.Text, config.CertFile)
			require.Contains(t, f.Text, c.says)
			if c.level == Warning {
				require.Contains(t, f.Do, "--ledger-cert-file")
				require.Contains(t, find(t, report, GroupScan, "certificate").Do, "--scan-cert-file")
			}
		})
	}
}

func TestFilesOfTLS(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]access.Config{
		"no such file":      {CAFile: "/nowhere/ca.pem"},
		"no certificate":    {CAFile: file(t, "ca.pem", "hunter2")},
		"a key alone":       {KeyFile: file(t, "key.pem", "hunter2")},
		"neither is usable": {CertFile: file(t, "cert.pem", "hunter2"), KeyFile: file(t, "key.pem", "hunter2")},
	} {
		ledgerSide, scanSide, report := connecting(t, Config{LedgerURL: "https://127.0.0.1:1", LedgerAccess: c})
		require.Equal(t, []string{"problem ledger/url"}, ledgerSide, name)
		require.Equal(t, []string{"problem scan/url"}, scanSide, name)
		require.Empty(t, of(report, GroupToken), "it was said once")
		require.Contains(t, find(t, report, GroupScan, "url").Text, "--scan-")
		requireNoSecret(t, report, "hunter2")
	}
}

// The text is the same for every run of a report: it holds no addresses of memory, and maps are in order.
func TestReportsAreStable(t *testing.T) {
	t.Parallel()
	cfg := Config{LedgerURL: simulated(t, grown(5), sandbox.ServerOptions{}), Scope: scopeOf("b", "a", "c", "d")}
	var first, second bytes.Buffer
	require.NoError(t, look(t, cfg).Print(&first))
	require.NoError(t, look(t, cfg).Print(&second))
	require.Equal(t, first.String(), second.String())
}
