package access

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"io"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	_ "ledgerindexer/internal/tools/hermetic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// discard is the log of a server whose clients misbehave on purpose.
var discard = log.New(io.Discard, "", 0)

// file writes a file of the test's own and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	write(t, path, text)
	return path
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// made is an Access that ends with the test.
func made(t *testing.T, cfg Config) *Access {
	t.Helper()
	if cfg.Flags == "" {
		cfg.Flags = "ledger"
	}
	a, err := New(cfg, nil)
	require.NoError(t, err)
	t.Cleanup(a.Close)
	return a
}

// logged is a logger and what it was told.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logged) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// jwt is a token with these claims and no signature worth the name.
func jwt(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"RS256"}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("not a signature"))
}

func expired(c *x509.Certificate) {
	c.NotBefore, c.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
}

func elsewhere(c *x509.Certificate) {
	c.IPAddresses, c.DNSNames = nil, []string{"participant.example.com"}
}
