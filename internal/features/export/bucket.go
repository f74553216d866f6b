package export

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"ledgerindexer/ledger"
)

// How an object store (bucket) is written to and read from.
const (
	scheme = "s3://"
	// partBytes is the size of the parts in which a larger object is sent. A part stays in memory until it has arrived. An
	// object has at most 10,000 parts: 80 GB.
	partBytes = 8 << 20
	// stalled is how long a connection may transfer nothing.
	stalled = 2 * time.Minute
)

// bucket is a place in an object store with the interface of S3. An object appears whole or not at all, and is durable
// once the store has confirmed it.
type bucket struct {
	client *minio.Client
	name   string
	prefix string // empty, or with a slash at its end
}

// openBucket takes credentials, or where they are, region and endpoint from the variables that other programs take them
// from. It makes no request.
func openBucket(name string, getenv func(string) string) (*bucket, error) {
	b := &bucket{}
	b.name, b.prefix, _ = strings.Cut(strings.TrimPrefix(name, scheme), "/")
	if b.prefix = strings.Trim(b.prefix, "/"); b.prefix != "" {
		b.prefix += "/"
	}
	if b.name == "" {
		return nil, fmt.Errorf("%s names no bucket: give %sbucket/prefix", name, scheme)
	}
	if err := s3utils.CheckValidBucketName(b.name); err != nil {
		return nil, fmt.Errorf("%s: no bucket can have the name %q, which needs 3 to 63 letters, digits, dots and hyphens: "+
			"give %sbucket/prefix", name, b.name, scheme)
	}
	endpoint, err := url.Parse(cmp.Or(getenv("AWS_ENDPOINT_URL"), "https://s3.amazonaws.com"))
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" ||
		strings.Trim(endpoint.Path, "/") != "" || endpoint.User != nil {
		return nil, errors.New("AWS_ENDPOINT_URL has to be the address of the object store, such as https://s3.example.com")
	}
	access, err := credentialsOf(*endpoint, getenv)
	if err != nil {
		return nil, err
	}
	secure := endpoint.Scheme == "https"
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, err
	}
	impatient(transport, stalled)
	b.client, err = minio.New(endpoint.Host, &minio.Options{
		Creds: access, Secure: secure, Region: getenv("AWS_REGION"), Transport: bounded{transport},
	})
	return b, err
}

// impatient ends connections over which nothing came or went for so long.
func impatient(transport *http.Transport, limit time.Duration) {
	dial := transport.DialContext
	transport.ResponseHeaderTimeout = limit
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return impatientConn{conn, limit}, nil
	}
}

type impatientConn struct {
	net.Conn
	limit time.Duration
}

// Read reads what comes in time.
func (c impatientConn) Read(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.limit)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// Write writes within the time limit. It extends the limit of reading too: the answer comes only after everything was
// sent.
func (c impatientConn) Write(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.limit)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// String returns the place as it was given, without a slash at its end.
func (b *bucket) String() string { return strings.TrimSuffix(scheme+b.name+"/"+b.prefix, "/") }

// URL: see Place.
func (b *bucket) URL() string { return b.String() }

// List: see Place.
func (b *bucket) List(ctx context.Context) (map[string]int64, error) {
	found := map[string]int64{}
	for object := range b.client.ListObjectsIter(ofOneList(ctx), b.name, minio.ListObjectsOptions{Prefix: b.prefix,
		Recursive: true}) {
		if object.Err != nil {
			return nil, b.failed("list", "", object.Err)
		}
		found[strings.TrimPrefix(object.Key, b.prefix)] = object.Size
		if err := checkListed(len(found)); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Read: see Place. After a lost connection it continues with the rest of the same object.
func (b *bucket) Read(ctx context.Context, name string, to io.Writer) error {
	var options minio.GetObjectOptions
	var at int64
	for failures := 0; ; {
		object, info, _, err := minio.Core{Client: b.client}.GetObject(ctx, b.name, b.prefix+name, options)
		if err != nil {
			return b.failed("read", name, err)
		}
		taker := &taker{Writer: to}
		n, err := io.Copy(taker, object)
		object.Close()
		if taker.err != nil || err == nil {
			return taker.err
		}
		if _, ok := errors.AsType[*ledger.Problem](err); ok {
			return b.failed("read", name, err)
		}
		if at += n; n > 0 {
			failures = 0
		}
		if failures++; failures == minio.MaxRetry || ctx.Err() != nil {
			return b.failed("read", name, err)
		}
		if at == 0 { // from the beginning: a range from 0 to 0 would be the first byte
			continue
		}
		if err := errors.Join(options.SetMatchETag(info.ETag), options.SetRange(at, 0)); err != nil {
			return err
		}
	}
}

// taker is a writer whose error is told from those of what is read.
type taker struct {
	io.Writer
	err error
}

// Write passes bytes on.
func (t *taker) Write(p []byte) (int, error) {
	n, err := t.Writer.Write(p)
	t.err = err
	return n, err
}

// Remove: see Place.
func (b *bucket) Remove(ctx context.Context, name string) error {
	err := b.client.RemoveObject(ctx, b.name, b.prefix+name, minio.RemoveObjectOptions{})
	return b.failed("remove", name, err)
}

// Write: see Place. It sends a larger object in parts, and removes these if it can't finish.
func (b *bucket) Write(ctx context.Context, name string, fill func(io.Writer) error) error {
	reader, writer := io.Pipe()
	uploaded := make(chan error, 1)
	go func() {
		err := b.upload(ctx, name, reader)
		reader.CloseWithError(err) // nobody reads what fill writes any more
		uploaded <- err
	}()
	filled := fill(writer)
	if filled != nil {
		filled = unfinished{filled}
	}
	writer.CloseWithError(filled)
	err := <-uploaded
	if reason := (unfinished{}); errors.As(err, &reason) {
		return reason.error
	}
	return b.failed("write", name, err)
}

// unfinished is an error of fill. It hides what it wraps, so that io.EOF is not mistaken for the end of the file.
type unfinished struct{ error }

func (b *bucket) upload(ctx context.Context, name string, content io.Reader) error {
	first := make([]byte, partBytes)
	n, err := io.ReadFull(content, first)
	whole := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	if err != nil && !whole {
		return err
	}
	all, size := io.Reader(bytes.NewReader(first[:n])), int64(n) // which can be sent again
	if !whole {
		all, size = io.MultiReader(all, content), -1
	}
	_, err = b.client.PutObject(ctx, b.name, b.prefix+name, all, size, putOptions())
	return err
}

// putOptions say how objects are sent. Without TLS the client would sign each block, as it never does with TLS. Where a
// server answers before it has read all, two goroutines close what signs, and other uploads may be signed wrongly. The
// server sees by the MD5 what did not arrive whole.
func putOptions() minio.PutObjectOptions {
	return minio.PutObjectOptions{PartSize: partBytes, DisableContentSha256: true, SendContentMd5: true}
}

// failed explains the error of a request. It is a *ledger.Problem if another try does not help; the client has retried
// what may pass.
func (b *bucket) failed(what, name string, err error) error {
	if err == nil {
		return nil
	}
	object := scheme + b.name + "/" + b.prefix + name
	answer := minio.ToErrorResponse(err)
	do := ""
	var known *ledger.Problem
	var unverified *tls.CertificateVerificationError
	switch {
	case errors.As(err, &known): // of an answer without end
		return fmt.Errorf("%s %s: %w", what, object, err)
	case errors.As(err, &unverified):
		return &ledger.Problem{
			What: fmt.Sprintf("the certificate of the object store can't be accepted, to %s %s", what, object), Err: err,
			Do: "name the store in AWS_ENDPOINT_URL as its certificate does; if its authority is your own, give that one's " +
				"certificate by SSL_CERT_FILE; see also this machine's clock",
		}
	case errors.Is(err, http.ErrSchemeMismatch):
		return &ledger.Problem{
			What: fmt.Sprintf("the object store does not speak TLS, to %s %s", what, object), Err: err,
			Do: "write http:// in AWS_ENDPOINT_URL, if nothing else is wrong with it",
		}
	case strings.HasPrefix(answer.Code, "400 "): // the status, in the place of a code of S3's
		do = "write https:// in AWS_ENDPOINT_URL if the store speaks TLS, and see that it is the address of an object store"
	case answer.Code == minio.NoSuchKey:
		return fmt.Errorf("%s %s: %w", what, object, fs.ErrNotExist)
	case answer.Code == minio.NoSuchBucket || answer.Code == minio.InvalidBucketName:
		do = fmt.Sprintf("make bucket %s, or name another one; see AWS_ENDPOINT_URL", b.name)
	case answer.StatusCode == http.StatusInsufficientStorage || strings.Contains(answer.Code, "Quota") ||
		strings.Contains(answer.Code, "StorageFull"):
		do = "make room in the object store, or raise its quota, and run the command again"
	case answer.StatusCode == http.StatusForbidden || answer.StatusCode == http.StatusUnauthorized ||
		answer.Code == "ExpiredToken" || answer.Code == "InvalidToken":
		do = "see AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, or the role of the pod or task, and this " +
			"machine's clock, and what they may do in the bucket: list, get, put and delete objects, and list and abort uploads"
	case answer.StatusCode == http.StatusMovedPermanently || answer.Code == minio.AuthorizationHeaderMalformed:
		do = "set AWS_REGION to the bucket's region"
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s %s: %w", what, object, err)
	default:
		return fmt.Errorf("%s %s: %w; run the command again when the object store answers: it continues where it was", what,
			object, err)
	}
	return &ledger.Problem{What: fmt.Sprintf("the object store refuses to %s %s (%s)", what, object, answer.Code),
		Err: err, Do: do}
}
