// Package exporttest has an object store for tests.
package exporttest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
)

// Store starts an object store with a bucket, in memory, until the test ends, and returns its URL. It takes any
// credentials. around, if it is not nil, gets each request first.
func Store(t testing.TB, bucket string, around func(store http.Handler) http.Handler) (url string) {
	t.Helper()
	store := Handler(t, bucket)
	if around != nil {
		store = around(store)
	}
	server := httptest.NewServer(store)
	t.Cleanup(server.Close)
	return server.URL
}

// Handler returns an object store with a bucket, in memory. It takes any credentials.
func Handler(t testing.TB, bucket string) http.Handler {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	return withoutEmptyDelimiter(gofakes3.New(backend).Server())
}

// withoutEmptyDelimiter takes an empty delimiter from a request: this store takes it for one, where others take it for
// none.
func withoutEmptyDelimiter(store http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if query := r.URL.Query(); query.Has("delimiter") && query.Get("delimiter") == "" {
			query.Del("delimiter")
			r.URL.RawQuery = query.Encode()
		}
		store.ServeHTTP(w, r)
	})
}
