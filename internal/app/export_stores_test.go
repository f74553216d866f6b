package app

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"ledgerindexer/internal/features/export/exporttest"
)

// objectStores serves the object store of each test, by its bucket, under one address: variables of the process, which
// tests that run in parallel share, say where an object store is.
type objectStores struct {
	mu       sync.RWMutex
	ofBucket map[string]http.Handler
}

var theStores = objectStores{ofBucket: map[string]http.Handler{}}

// serve serves the stores until end is called.
func (s *objectStores) serve() (end func(), err error) {
	server := httptest.NewServer(s)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": server.URL, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1",
	} {
		if err := os.Setenv(name, value); err != nil {
			server.Close()
			return nil, err
		}
	}
	return server.Close, nil
}

// ServeHTTP passes a request to the store of its bucket.
func (s *objectStores) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bucket, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	s.mu.RLock()
	store := s.ofBucket[bucket]
	s.mu.RUnlock()
	if store == nil {
		http.NotFound(w, r)
		return
	}
	store.ServeHTTP(w, r)
}

// objectStore makes a bucket, which no other test may have, and returns a place in it. around gets each request first.
func objectStore(t *testing.T, bucket string, around func(store http.Handler) http.Handler) (to string) {
	t.Helper()
	store := around(exporttest.Handler(t, bucket))
	theStores.mu.Lock()
	defer theStores.mu.Unlock()
	theStores.ofBucket[bucket] = store
	return "s3://" + bucket + "/x"
}
