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
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"ledgerindexer/ledger"
)

// lockName is the object that an export keeps writing again while it is at work.
const lockName = ".lock"

// lock is the lock of a bucket. Its holder is the process that wrote the lock's object last, and writes it again and again. Another process
// takes the lock once the object has not changed for long enough. It measures that with its own clock only, so clocks need not agree, and
// after a kill the next export waits for a while. The store has to support conditional writes (If-Match, If-None-Match).
type lock struct {
	renew  time.Duration // how often the holder writes the object
	expire time.Duration // without a write for this long the holder writes no files any more. A suspended machine's clock may stand still
	free   time.Duration // another process takes the lock after it has seen no change for this long; longer than expire

	holder string
	writes int
	etag   string          // of the last write
	until  time.Time       // no files are written after this, unless the lock is written again
	term   context.Context // ends with the reason when the lock is lost; nil: it was never held
}

var errStoodStill = errors.New("this program stood still for so long")

func newLock() lock {
	return lock{renew: 20 * time.Second, expire: time.Minute, free: 90 * time.Second, holder: rand.Text()}
}

// within returns a context that also ends when the lock is lost.
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

// lost returns why the lock was lost; nil: it was not.
func (l *lock) lost() error {
	if l.term == nil {
		return nil
	}
	return context.Cause(l.term)
}

// Lock: see Place. It removes the parts of objects that a killed export left.
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

// release removes the lock's object, as long as nobody else can have taken the lock. If that fails, the next export takes over the lock a
// little later.
func (b *bucket) release() {
	ctx, cancel := context.WithDeadline(context.Background(), b.lock.until)
	defer cancel()
	_ = b.client.RemoveObject(ctx, b.name, b.prefix+lockName, minio.RemoveObjectOptions{})
}

// acquire takes the lock if it is free, or if its holder does not write it any more.
func (b *bucket) acquire(ctx context.Context) error {
	for seen := ""; ; {
		ok, err := b.writeLock(ctx, seen)
		if err != nil || ok {
			return err
		}
		if err := b.pause(ctx); err != nil { // a faster process may have released it by then
			return err
		}
		if seen, err = b.watchLock(ctx); err != nil {
			return err
		}
	}
}

// pause waits before the lock is read again.
func (b *bucket) pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(b.lock.renew / 4):
		return nil
	}
}

// writeLock writes the lock's object, if its ETag is still seen; an empty seen means that there must be none.
func (b *bucket) writeLock(ctx context.Context, seen string) (ok bool, err error) {
	b.lock.writes++
	until := time.Now().Add(b.lock.expire)
	options := putOptions()
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

// otherWrote reports whether a conditional write failed because of another write, before it or at the same time.
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
		content, err = readWhole(object)
	}
	return content, info.ETag, b.failed("read", lockName, err)
}

// watchLock waits until the lock's object has not changed for long enough, and returns its ETag; empty: it is gone. If it changes, the error
// is a *ledger.Problem. The time counts from the first answer to the last request: slow answers don't count as time without a change.
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

// keep writes the lock again and again, until the context ends or the lock is lost.
func (b *bucket) keep(ctx context.Context, lose func(error)) {
	var failed error // of the last write, since one succeeded
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
		case failed == nil || !late: // the end of the time limit explains nothing
			failed = err
		}
	}
}

// abortUploads removes the parts of unfinished objects of exports.
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

// uploads lists the unfinished objects of exports.
func (b *bucket) uploads(ctx context.Context) (list []minio.ObjectMultipartInfo, err error) {
	for upload := range b.client.ListIncompleteUploads(ofOneList(ctx), b.name, b.prefix, true) {
		switch {
		case minio.ToErrorResponse(upload.Err).Code == minio.NoSuchUpload: // rclone says so of a bucket that has none
		case upload.Err != nil:
			err = b.failed("list unfinished uploads of", "", upload.Err)
		case uploaded(strings.TrimPrefix(upload.Key, b.prefix)):
			if err = cmp.Or(err, checkListed(len(list))); err == nil { // what sends the uploads ends only when all are taken
				list = append(list, upload)
			}
		}
	}
	return list, err
}

// uploaded reports whether an export writes files of this name. Others may upload into the bucket too.
func uploaded(name string) bool {
	if id, ok := strings.CutPrefix(name, packages+"/"); ok {
		sum, err := hex.DecodeString(id)
		return err == nil && len(sum) == sha256.Size
	}
	_, ours := rangeOf(name)
	return ours
}
