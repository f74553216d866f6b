package app

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
)

// Whatever request an object store refuses, export and import say so, and go on where they were when they are run
// again.
func TestAnObjectStoreThatRefuses(t *testing.T) {
	t.Parallel()
	brief.Long(t, "exports and imports again and again until they get through")
	var left atomic.Int64 // so many requests until one is refused
	to := objectStore(t, "refuses", func(store http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if left.Add(-1) == 0 {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			store.ServeHTTP(w, r)
		})
	})
	_, _, cfg, _ := smallExport(t)
	cfg.To = to
	through := func(run func() error) (refused int) {
		for n := int64(1); ; n += 13 {
			left.Store(n)
			err := run()
			if err == nil {
				return refused
			}
			requireProblem(t, err, "the object store refuses to", "AWS_ACCESS_KEY_ID")
			refused++
		}
	}
	require.Greater(t, through(func() error { _, err := exported(t, cfg); return err }), 3)
	left.Store(0)
	cfg.Check = true
	none, err := exported(t, cfg)
	require.NoError(t, err)
	require.Empty(t, none)
}
