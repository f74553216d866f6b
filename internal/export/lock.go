package export

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"ledgerindexer/ledger"
)

// lockName is the object that an export keeps writing again while it is at work.
const lockName = ".lock"

// lock is the lock of a bucket, held by who wrote its object last. Nobody's clock is compared with another one's: who wants the lock sees whether the object
// changes for as long as it looks. So an export that was killed keeps others waiting for a while. The store has to know conditions of writing (If-Match,
// If-None-Match).
type lock struct {
	renew  time.Duration // how often it is written again
	expire time.Duration // after so long without it nothing is written any more; while a machine is suspended its clock may stand still
	free   time.Duration // who sees no change for so long takes it; longer than expire

	holder string
	writes int
	etag   string          // of what was written last
	until  time.Time       // nothing is written after it, unless the lock is written again
	term   context.Context // ends where the lock is lost, with the reason; nil: it was never held
}

var errStoodStill = errors.New("this program stood still for so long")

func newLock() lock {
	return lock{renew: 20 * time.Second, expire: time.Minute, free: 90 * time.Second, holder: rand.Text()}
}

// within is a context that ends with the lock too.
func (l *lock) within(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	if l.term == nil {
		return ctx, cancel
	}
	stop := context.AfterFunc(l.term, cancel)
	if l.term.Err() != nil { // AfterFunc may cancel a little later
		cancel()
	}
	return ctx, func() { stop(); cancel() }
}

// lost is why the lock was lost; nil: it was not.
func (l *lock) lost() error {
	if l.term == nil {
		return nil
	}
	return context.Cause(l.term)
}

// Lock: see Place. It removes the parts of objects that an export which was killed left.
func (b *bucket) Lock(ctx context.Context) (unlock func(), err error) {
	if err := b.acquire(ctx); err != nil {
		return nil, err
	}
	term, lose := context.WithCancelCause(context.Background())
	keeping, stop := context.WithCancel(term)
	b.lock.term = term
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		b.keep(keeping, lose)
	}()
	unlock = func() {
		stop()
		<-stopped
		if term.Err() == nil {
			b.release()
		}
		lose(nil)
		b.lock.term = nil
	}
	if err := b.abortUploads(ctx); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// release removes the lock, while nobody else can have taken it. What can't be removed by then is taken by the next export, a little later.
func (b *bucket) release() {
	ctx, cancel := context.WithDeadline(context.Background(), b.lock.until)
	defer cancel()
	_ = b.client.RemoveObject(ctx, b.name, b.prefix+lockName, minio.RemoveObjectOptions{})
}

// acquire takes the lock where nobody has it, or who had it does not write it any more.
func (b *bucket) acquire(ctx context.Context) error {
	for seen := ""; ; {
		ok, err := b.writeLock(ctx, seen)
		if err != nil || ok {
			return err
		}
		if err := b.pause(ctx); err != nil { // who was faster may be gone when it is looked for
			return err
		}
		if seen, err = b.watchLock(ctx); err != nil {
			return err
		}
	}
}

// pause waits between two looks at the lock.
func (b *bucket) pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(b.lock.renew / 4):
		return nil
	}
}

// writeLock writes the lock's object, if it is still as it was seen; seen is empty where there was none.
func (b *bucket) writeLock(ctx context.Context, seen string) (ok bool, err error) {
	b.lock.writes++
	until := time.Now().Add(b.lock.expire)
	var options minio.PutObjectOptions
	if seen == "" {
		options.SetMatchETagExcept("*")
	} else {
		options.SetMatchETag(seen)
	}
	content := fmt.Appendf(nil, "%s %d\n", b.lock.holder, b.lock.writes)
	info, err := b.client.PutObject(ctx, b.name, b.prefix+lockName, bytes.NewReader(content), int64(len(content)), options)
	if err == nil {
		b.lock.etag, b.lock.until = info.ETag, until
		return true, nil
	}
	if !otherWrote(minio.ToErrorResponse(err)) {
		return false, b.failed("write", lockName, err)
	}
	// The answer to a try, or to a write before, may have been lost.
	now, etag, err := b.readLock(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil || !bytes.HasPrefix(now, []byte(b.lock.holder)):
		return false, err
	case !bytes.Equal(now, content):
		return b.writeLock(ctx, etag)
	}
	b.lock.etag, b.lock.until = etag, until
	return true, nil
}

// otherWrote says of an answer to a conditional write that the condition failed, or that another write was under way.
func otherWrote(answer minio.ErrorResponse) bool {
	switch answer.Code {
	case minio.NoSuchKey, "ConditionalRequestConflict", "OperationAborted":
		return true
	}
	return answer.StatusCode == http.StatusPreconditionFailed
}

func (b *bucket) readLock(ctx context.Context) (content []byte, etag string, err error) {
	object, info, _, err := minio.Core{Client: b.client}.GetObject(ctx, b.name, b.prefix+lockName, minio.GetObjectOptions{})
	if err == nil {
		defer object.Close()
		content, err = io.ReadAll(object)
	}
	return content, info.ETag, b.failed("read", lockName, err)
}

// watchLock returns the lock's object once it has not changed for long enough; empty: it is gone. One that changes is a *ledger.Problem. It was seen from when
// the first look was answered until the last one was asked for: how long an answer takes says nothing of who has the lock.
func (b *bucket) watchLock(ctx context.Context) (etag string, err error) {
	var began time.Time
	for {
		asked := time.Now()
		_, now, err := b.readLock(ctx)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", nil
		case err != nil:
			return "", err
		case etag == "":
			etag, began = now, time.Now()
		case now != etag:
			return "", &ledger.Problem{What: fmt.Sprintf("another export writes to %s", b), Do: "wait until it is done, or stop it"}
		case asked.Sub(began) > b.lock.free:
			return etag, nil
		}
		if err := b.pause(ctx); err != nil {
			return "", err
		}
	}
}

// keep writes the lock again and again, until the context ends, or the lock is lost.
func (b *bucket) keep(ctx context.Context, lose func(error)) {
	var failed error // the last reason why it could not be written, since it was
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(b.lock.renew, time.Until(b.lock.until))):
		}
		if !time.Now().Before(b.lock.until) {
			lose(fmt.Errorf("the lock of %s could not be kept: %w", b, cmp.Or(failed, errStoodStill)))
			return
		}
		try, done := context.WithDeadline(ctx, b.lock.until)
		ok, err := b.writeLock(try, b.lock.etag)
		late := try.Err() != nil
		done()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && !ok:
			lose(fmt.Errorf("another export took the lock of %s, which could not be written for long", b))
			return
		case err == nil:
			failed = nil
		case failed == nil || !late: // that the time was over is no reason
			failed = err
		}
	}
}

// abortUploads removes the parts of objects of exports that were not finished.
func (b *bucket) abortUploads(ctx context.Context) error {
	uploads, err := b.uploads(ctx)
	if err != nil {
		return err
	}
	for _, upload := range uploads {
		err := minio.Core{Client: b.client}.AbortMultipartUpload(ctx, b.name, upload.Key, upload.UploadID)
		if err != nil {
			return b.failed("abort an unfinished upload of", strings.TrimPrefix(upload.Key, b.prefix), err)
		}
	}
	return nil
}

// uploads are those of files of an export that are not finished.
func (b *bucket) uploads(ctx context.Context) (list []minio.ObjectMultipartInfo, err error) {
	for upload := range b.client.ListIncompleteUploads(ctx, b.name, b.prefix, true) {
		switch {
		case minio.ToErrorResponse(upload.Err).Code == minio.NoSuchUpload: // rclone says so of a bucket that has none
		case upload.Err != nil:
			err = b.failed("list unfinished uploads of", "", upload.Err)
		case uploaded(strings.TrimPrefix(upload.Key, b.prefix)):
			list = append(list, upload)
		}
	}
	return list, err
}

// uploaded says of a name that an export writes such files. A bucket has the uploads of others, too.
func uploaded(name string) bool {
	if id, ok := strings.CutPrefix(name, packages+"/"); ok {
		sum, err := hex.DecodeString(id)
		return err == nil && len(sum) == sha256.Size
	}
	_, ours := rangeOf(name)
	return ours
}
