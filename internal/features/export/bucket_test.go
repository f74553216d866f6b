package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/features/export/exporttest"
	"ledgerindexer/ledger"
)

// fault answers a request in the place of the object store, and reports whether it did.
type fault func(w http.ResponseWriter, r *http.Request, store http.Handler) bool

// answer is what a store says that does not do what it is asked for.
func answer(status int, code string) fault {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>so it is</Message></Error>", code)
		return true
	}
}

// objectStore is an object store with a bucket, behind what makes its faults.
func objectStore(t *testing.T) (open func(name string) *bucket, faults *atomic.Pointer[fault]) {
	t.Helper()
	faults = new(atomic.Pointer[fault])
	url := exporttest.Store(t, "there", func(store http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if f := faults.Load(); f == nil || !(*f)(w, r, store) {
				store.ServeHTTP(w, r)
			}
		})
	})
	environ := map[string]string{"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
	return func(name string) *bucket {
		b, err := openBucket(name, func(key string) string { return environ[key] })
		require.NoError(t, err)
		return b
	}, faults
}

func text(content string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, content)
		return err
	}
}

func contentOf(t *testing.T, place Place, name string) string {
	t.Helper()
	var content bytes.Buffer
	require.NoError(t, place.Read(t.Context(), name, &content))
	return content.String()
}

// large is more than two parts of an object.
var large = func() string {
	content := make([]byte, 2*partBytes+1000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content) // it does not fail
	return string(content)
}()

// A folder and a bucket answer alike.
func TestPlaces(t *testing.T) {
	t.Parallel()
	folder, err := openFolder(t.TempDir(), true)
	require.NoError(t, err)
	open, _ := objectStore(t)
	open("s3://there").mustWrite(t, "elsewhere.json", "of others")
	for name, place := range map[string]Place{"folder": folder, "bucket": open("s3://there/exports/ledger/"), "bucket without a prefix": open("s3://there")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, place.AbortUploads(t.Context()))
			require.NoError(t, place.Write(t.Context(), "manifests/1.json", text("first")))
			require.NoError(t, place.Write(t.Context(), "updates/1.parquet", text(large)))
			require.NoError(t, place.Write(t.Context(), "manifests/1.json", text("second")))
			require.Equal(t, "second", contentOf(t, place, "manifests/1.json"))
			require.True(t, large == contentOf(t, place, "updates/1.parquet"))

			for _, written := range []string{"some", large} {
				for _, reason := range []error{errors.New("no more"), io.EOF, io.ErrUnexpectedEOF} {
					err = place.Write(t.Context(), "updates/1.parquet", func(w io.Writer) error {
						require.NoError(t, text(written)(w))
						return fmt.Errorf("row 7: %w", reason)
					})
					require.ErrorIs(t, err, reason)
					require.ErrorContains(t, err, "row 7")
					err = place.Write(t.Context(), "updates/2.parquet", func(w io.Writer) error {
						require.NoError(t, text(written)(w))
						return reason
					})
					require.ErrorIs(t, err, reason)
				}
			}
			require.ErrorIs(t, place.Read(t.Context(), "updates/2.parquet", io.Discard), fs.ErrNotExist)
			full := errors.New("no room")
			require.Equal(t, full, place.Read(t.Context(), "updates/1.parquet", refusing{full}), "not the object store's")
			require.True(t, large == contentOf(t, place, "updates/1.parquet"), "whole, or not at all")
			found, err := place.List(t.Context())
			require.NoError(t, err)
			delete(found, "elsewhere.json")
			for name := range found {
				if strings.HasPrefix(name, "exports/") {
					delete(found, name)
				}
			}
			require.Equal(t, map[string]int64{"manifests/1.json": 6, "updates/1.parquet": int64(len(large))}, found)

			require.NoError(t, place.Remove(t.Context(), "manifests/1.json"))
			require.NoError(t, place.Remove(t.Context(), "manifests/1.json"), "it is gone already")
			require.ErrorIs(t, place.Read(t.Context(), "manifests/1.json", io.Discard), fs.ErrNotExist)
		})
	}
}

func (b *bucket) mustWrite(t *testing.T, name, content string) {
	t.Helper()
	require.NoError(t, b.Write(t.Context(), name, text(content)))
}

// What trying again can help with is tried again; what fails for good says where, and what to do, and no secret.
func TestFaultsOfAnObjectStore(t *testing.T) {
	t.Parallel()
	cut := func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		_, _ = io.CopyN(io.Discard, r.Body, 1000)
		panic(http.ErrAbortHandler)
	}
	cutAfter := func(bytes int) fault {
		return func(w http.ResponseWriter, r *http.Request, store http.Handler) bool {
			store.ServeHTTP(&halved{w, bytes}, r)
			return true
		}
	}
	once := func(method string, f fault) func() fault {
		return func() fault {
			var done atomic.Bool
			return func(w http.ResponseWriter, r *http.Request, store http.Handler) bool {
				return r.Method == method && done.CompareAndSwap(false, true) && f(w, r, store)
			}
		}
	}
	always := func(method string, f fault) func() fault {
		return func() fault {
			return func(w http.ResponseWriter, r *http.Request, store http.Handler) bool {
				return r.Method == method && f(w, r, store)
			}
		}
	}
	for name, c := range map[string]struct {
		fault func() fault
		parts []string // of the problem; none: it succeeds
	}{
		"a connection is cut while an object is sent": {once(http.MethodPut, cut), nil},
		"too many requests":                           {once(http.MethodPut, answer(http.StatusServiceUnavailable, "SlowDown")), nil},
		"too many requests of reading":                {once(http.MethodGet, answer(http.StatusServiceUnavailable, "SlowDown")), nil},
		"a connection is cut while an object is read": {once(http.MethodGet, cutAfter(2)), nil},
		"a connection is cut before the first byte":   {once(http.MethodGet, cutAfter(0)), nil},
		"another clock":                               {always(http.MethodPut, answer(http.StatusForbidden, "RequestTimeTooSkewed")), []string{"this machine's clock"}},
		"refused":                                     {always(http.MethodPut, answer(http.StatusForbidden, "AccessDenied")), []string{"AWS_ACCESS_KEY_ID", "role of the pod"}},
		"no such token":                               {always(http.MethodPut, answer(http.StatusBadRequest, "InvalidToken")), []string{"AWS_SESSION_TOKEN"}},
		"full":                                        {always(http.MethodPut, answer(http.StatusInsufficientStorage, "XMinioStorageFull")), []string{"make room"}},
		"quota":                                       {always(http.MethodPut, answer(http.StatusConflict, "QuotaExceeded")), []string{"quota"}},
		"other region":                                {always(http.MethodPut, answer(http.StatusMovedPermanently, "PermanentRedirect")), []string{"AWS_REGION"}},
	} {
		for what, content := range map[string]string{"small": "some", "large": large} {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				open, faults := objectStore(t)
				b := open("s3://there/x")
				f := c.fault()
				faults.Store(&f)
				err := b.Write(t.Context(), "updates/1.parquet", text(content))
				if c.parts == nil {
					require.NoError(t, err)
					require.True(t, content == contentOf(t, b, "updates/1.parquet"))
					return
				}
				var problem *ledger.Problem
				require.ErrorAs(t, err, &problem)
				for _, part := range append(c.parts, "s3://there/x/updates/1.parquet") {
					require.Contains(t, problem.Error()+problem.Do, part)
				}
				require.NotContains(t, problem.Error()+problem.Do, "secret")
				faults.Store(nil)
				found, err := b.List(t.Context())
				require.NoError(t, err)
				require.Empty(t, found)
				uploads, err := b.uploads(t.Context())
				require.NoError(t, err)
				require.Empty(t, uploads)
			})
		}
	}
}

// refusing is a writer that fails.
type refusing struct{ err error }

func (r refusing) Write([]byte) (int, error) { return 0, r.err }

// halved cuts the connection after so many bytes of an answer.
type halved struct {
	http.ResponseWriter
	left int
}

func (h *halved) Write(p []byte) (int, error) {
	if len(p) < h.left {
		h.left -= len(p)
		return h.ResponseWriter.Write(p)
	}
	_, _ = h.ResponseWriter.Write(p[:h.left])
	_ = http.NewResponseController(h.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

// Objects that are missing, and what can't be accessed at all.
func TestWhatABucketLacks(t *testing.T) {
	t.Parallel()
	open, faults := objectStore(t)
	b := open("s3://nowhere/x")
	for _, request := range []func() error{
		func() error { _, err := b.List(t.Context()); return err },
		func() error { return b.Write(t.Context(), "manifests/1.json", text("some")) },
		func() error { return b.AbortUploads(t.Context()) },
	} {
		var problem *ledger.Problem
		require.ErrorAs(t, request(), &problem)
		require.Contains(t, problem.Do, "make bucket nowhere")
	}
	var expired *ledger.Problem // which the client tries again for a while
	require.ErrorAs(t, b.failed("list", "", minio.ErrorResponse{StatusCode: http.StatusBadRequest, Code: "ExpiredToken"}), &expired)
	require.Contains(t, expired.Do, "AWS_SESSION_TOKEN")

	stopped, stop := context.WithCancel(t.Context())
	stops := fault(func(http.ResponseWriter, *http.Request, http.Handler) bool {
		stop()
		panic(http.ErrAbortHandler)
	})
	faults.Store(&stops)
	require.ErrorIs(t, open("s3://there/x").Write(stopped, "manifests/1.json", text("some")), context.Canceled)

	var unnamed *ledger.Problem
	require.ErrorAs(t, b.failed("list", "", minio.ErrorResponse{StatusCode: http.StatusBadRequest, Code: minio.InvalidBucketName}), &unnamed)
	require.Contains(t, unnamed.Do, "name another one")
	given := map[string]string{"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
	for what, c := range map[string][2]string{"names no bucket": {"s3://", ""}, `no bucket can have the name "ab", which needs 3 to 63 letters`: {"s3://ab/x", ""}, "AWS_ENDPOINT_URL": {"s3://there", "ftp://x"}, "set AWS_ACCESS_KEY_ID": {"s3://there", "http://x"}} {
		_, err := openBucket(c[0], func(key string) string {
			if key == "AWS_ENDPOINT_URL" {
				return c[1]
			}
			if what == "set AWS_ACCESS_KEY_ID" {
				return ""
			}
			return given[key]
		})
		require.ErrorContains(t, err, what)
	}
}

// A certificate that this machine does not trust is an operator's to see to.
func TestACertificateOfAnObjectStore(t *testing.T) {
	t.Parallel()
	store := httptest.NewUnstartedServer(http.NotFoundHandler())
	store.Config.ErrorLog = log.New(io.Discard, "", 0)
	store.StartTLS()
	defer store.Close()
	requireUnlisted(t, store.URL, "SSL_CERT_FILE")
}

// requireUnlisted requires that a bucket of a store can't be listed, with an error that names the bucket and says what
// to do.
func requireUnlisted(t *testing.T, endpoint, do string) {
	t.Helper()
	environ := map[string]string{"AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
	b, err := openBucket("s3://there/x", func(key string) string { return environ[key] })
	require.NoError(t, err)
	_, err = b.List(t.Context())
	var problem *ledger.Problem
	require.ErrorAs(t, err, &problem)
	require.Contains(t, problem.What, "s3://there/x")
	require.Contains(t, problem.Do, do)
}

// A store that speaks TLS where it is named without, or the other way round, is no store that does not answer for a
// while.
func TestAnObjectStoreOfTheOtherScheme(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	requireUnlisted(t, strings.Replace(plain.URL, "http:", "https:", 1), "write http:// in AWS_ENDPOINT_URL")
	requireUnlisted(t, strings.Replace(secure.URL, "https:", "http:", 1), "write https:// in AWS_ENDPOINT_URL")
}

// Without keys they are those of a role, which are fetched again when they expire.
func TestCredentialsOfARole(t *testing.T) {
	var fetched atomic.Int64
	role := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "Bearer of the pod", r.Header.Get("Authorization"))
		fmt.Fprintf(w, `{"AccessKeyId": "key%d", "SecretAccessKey": "secret", "Token": "token", "Expiration": "2000-01-01T00:00:00Z"}`, fetched.Add(1))
	}))
	defer role.Close()
	used := make(chan string, 100)
	store := exporttest.Store(t, "there", func(store http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			assert.Equal(t, "token", r.Header.Get("X-Amz-Security-Token"))
			_, credential, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
			key, _, _ := strings.Cut(credential, "/")
			used <- key
			store.ServeHTTP(w, r)
		})
	})
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": store,
		"AWS_CONTAINER_CREDENTIALS_FULL_URI": role.URL, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "Bearer of the pod",
	} {
		t.Setenv(name, value)
	}
	b, err := openBucket("s3://there/x", os.Getenv)
	require.NoError(t, err)
	b.mustWrite(t, "manifests/1.json", "some")
	require.Equal(t, "some", contentOf(t, b, "manifests/1.json"))
	first, second := <-used, <-used
	require.Contains(t, first, "key")
	require.NotEqual(t, first, second)
}

// A store that stops in the middle of an answer is not waited for.
func TestAConnectionThatStandsStill(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "a part")
		_ = http.NewResponseController(w).Flush()
		<-ended
	}))
	defer server.Close()
	defer close(ended)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	require.NoError(t, err)
	var answer *http.Response
	for limit := 50 * time.Millisecond; answer == nil; limit *= 2 { // until a busy machine begins to answer within it
		transport := &http.Transport{DialContext: new(net.Dialer).DialContext}
		impatient(transport, limit)
		if answer, err = transport.RoundTrip(request); limit > time.Minute {
			require.NoError(t, err)
		}
	}
	defer answer.Body.Close()
	_, err = io.ReadAll(answer.Body)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// patience is a connection that has which deadlines were set.
type patience struct {
	net.Conn
	read, write bool
}

func (c *patience) Read(p []byte) (int, error)       { return len(p), nil }
func (c *patience) Write(p []byte) (int, error)      { return len(p), nil }
func (c *patience) SetReadDeadline(time.Time) error  { c.read = true; return nil }
func (c *patience) SetWriteDeadline(time.Time) error { c.write = true; return nil }
func (c *patience) SetDeadline(time.Time) error      { c.read, c.write = true, true; return nil }

// While an object is sent its answer is waited for already: what goes is a sign of life as what comes is.
func TestAConnectionThatStandsStillInOneDirection(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(net.Conn) (int, error){
		"sent": func(c net.Conn) (int, error) { return c.Write([]byte("a part")) },
		"read": func(c net.Conn) (int, error) { return c.Read(make([]byte, 6)) },
	} {
		var deadlines patience
		_, err := use(impatientConn{&deadlines, time.Minute})
		require.NoError(t, err)
		require.True(t, deadlines.read && deadlines.write, name)
	}
}

// In a bucket without a prefix there are the uploads of others.
func TestUploadsOfABucket(t *testing.T) {
	t.Parallel()
	open, _ := objectStore(t)
	b := open("s3://there")
	ours := []string{packages + "/" + strings.Repeat("0f", 32), fileName("updates", 0, 7, "first")}
	others := []string{packages + "/linux.tar", packages + "/linux.part", packages + "/" + strings.Repeat("0f", 31), packages + "/x/" + strings.Repeat("0f", 32), "x/" + ours[1], "updates/7.parquet", "updates/" + rangeName(0, 7) + ".parquet"}
	for _, name := range slices.Concat(ours, others) {
		_, err := minio.Core{Client: b.client}.NewMultipartUpload(t.Context(), "there", name, minio.PutObjectOptions{})
		require.NoError(t, err)
	}
	uploads, err := b.uploads(t.Context())
	require.NoError(t, err)
	var found []string
	for _, upload := range uploads {
		found = append(found, upload.Key)
	}
	require.ElementsMatch(t, ours, found)
	require.NoError(t, b.AbortUploads(t.Context()))
	uploads, err = b.uploads(t.Context())
	require.NoError(t, err)
	require.Empty(t, uploads)
}
