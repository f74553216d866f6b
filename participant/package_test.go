package participant

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/internal/features/damllf/build"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

// bytesOf answers with content as servers send it.
func bytesOf(content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Write(content)
	}
}

// manyCommas would be too many values, if it were JSON.
var manyCommas = []byte(strings.Repeat(",", 9<<20))

func TestPackage(t *testing.T) {
	t.Parallel()
	for name, content := range map[string][]byte{"no bytes": {}, "some bytes": []byte("\x00\xff{"), "many bytes": manyCommas} {
		id := build.ID(content)
		f := newFake(t, map[string]http.HandlerFunc{pathPackages + id: bytesOf(content)})
		got, err := newClient(t, f, Server{}, anyParty).Package(t.Context(), id)
		require.NoError(t, err, name)
		require.Equal(t, string(content), string(got))
	}
}

func TestPackagesOfTheSandbox(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 1})
	c := discovered(t, simulated(t, l, sandbox.ServerOptions{}).URL, anyParty)
	read, missing := 0, 0
	for _, p := range l.Vetting()[0].Packages {
		content, err := c.Package(t.Context(), p.PackageID)
		if err == nil {
			require.Equal(t, p.PackageID, build.ID(content))
			read++
			continue
		}
		require.ErrorIs(t, err, ledger.ErrNotFound)
		missing++
	}
	require.Greater(t, read, 5)
	require.Equal(t, 1, missing, "the one that was vetted and not uploaded")
}

func TestPackagesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	id := build.ID([]byte("p"))
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		check   func(t *testing.T, err error)
	}{
		"other bytes": {bytesOf([]byte("q")), func(t *testing.T, err error) {
			_ = retryable(t, err)
			require.ErrorContains(t, err, "its 1 bytes have the hash "+build.ID([]byte("q")))
		}},
		"a page": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>")
		}, func(t *testing.T, err error) {
			require.ErrorIs(t, retryable(t, err), jsonhttp.ErrNotJSON)
			require.ErrorContains(t, err, `content type "text/html" instead of application/octet-stream`)
		}},
		"cut off": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "9")
			bytesOf([]byte("p"))(w, r)
		}, func(t *testing.T, err error) { require.ErrorIs(t, retryable(t, err), jsonhttp.ErrCutOff) }},
		"too large": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100000000")
			bytesOf(nil)(w, r)
		}, func(t *testing.T, err error) {
			require.Contains(t, problem(t, err), "types of this package are not known")
		}},
		"not there": {cantonError(404, "PACKAGE_NOT_FOUND", "no", ``), func(t *testing.T, err error) {
			require.ErrorIs(t, err, ledger.ErrNotFound)
		}},
		"not there, by another code": {cantonError(404, "SOMETHING", "no", ``), func(t *testing.T, err error) {
			require.ErrorIs(t, err, ledger.ErrNotFound)
		}},
		"not offered": {unknownPath, func(t *testing.T, err error) { require.ErrorIs(t, err, ledger.ErrNotOffered) }},
		"away":        {plain(503, "away"), func(t *testing.T, err error) { require.Equal(t, 503, retryable(t, err).Status) }},
		"no token":    {cantonError(401, "NA", "no", ``), func(t *testing.T, err error) { require.Error(t, err) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, map[string]http.HandlerFunc{pathPackages + id: test.handler})
			got, err := newClient(t, f, with35, anyParty).Package(t.Context(), id)
			require.Nil(t, got)
			require.ErrorContains(t, err, "read package "+id)
			test.check(t, err)
		})
	}
}

func TestPackageIDsAreChecked(t *testing.T) {
	t.Parallel()
	f := newFake(t, nil)
	c := newClient(t, f, Server{}, anyParty)
	for _, id := range []string{"", "../state/ledger-end", strings.Repeat("A", 64), strings.Repeat("0", 63), "#" + strings.Repeat("0", 63)} {
		_, err := c.Package(t.Context(), id)
		require.ErrorContains(t, err, "64 hexadecimal digits")
	}
	require.Empty(t, f.requests())
}
