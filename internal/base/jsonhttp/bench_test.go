package jsonhttp

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An answer of some MB in chunks, as servers send pages. The server's part is in it.
func BenchmarkDo(b *testing.B) {
	body := append(bytes.Repeat([]byte(`{"name":"`+string(bytes.Repeat([]byte("x"), 40))+`"},`), 100_000), "null"...)
	body = append(append([]byte("["), body...), ']')
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{bytes.NewReader(body)}, make([]byte, 8<<10))
	}))
	defer server.Close()
	c, err := New(Config{URL: server.URL}, Dialect{Flags: "ledger"})
	require.NoError(b, err)
	defer c.Close()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		a, err := c.Do(b.Context(), Request{Operation: "test", Path: "/", MaxBytes: 128 << 20, SilenceTimeout: time.Minute})
		if err != nil || len(a.Body) != len(body) {
			b.Fatal(len(a.Body), err)
		}
		Release(a.Body)
	}
}
