package scan

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"runtime"

	"github.com/klauspost/compress/zstd"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// Limits on the text of bulk files, and how it is cut for decoding.
const (
	// Lines are decoded in blocks of this many updates, or this many bytes.
	blockUpdates, blockBytes = 1000, 1 << 20
	// longestLine is the largest update that is read, in bytes of JSON.
	longestLine = maxBody
	// longestText is the most that a file may hold when it is decompressed, in bytes. Services begin another file after
	// about 128 MiB of compressed text, and JSON gets about twenty times as large.
	longestText = 64 << 30
	// widestWindow is how far back compressed text may refer, in bytes, which decompressing holds in memory. It is what
	// zstd itself accepts.
	widestWindow = 128 << 20
)

// lineReader reads the lines of a compressed file, whoever wrote it: no line, no text and no window has more bytes than
// the limits above.
type lineReader struct {
	decoder *zstd.Decoder
	text    *bufio.Reader
	left    io.LimitedReader // of longestText
}

func newLineReader(source io.Reader, options ...zstd.DOption) (*lineReader, error) {
	decoder, err := zstd.NewReader(source, append(options, zstd.WithDecoderMaxWindow(widestWindow))...)
	if err != nil {
		return nil, err
	}
	l := &lineReader{decoder: decoder, left: io.LimitedReader{R: decoder, N: longestText}}
	l.text = bufio.NewReaderSize(&l.left, blockBytes)
	return l, nil
}

func (l *lineReader) close() { l.decoder.Close() }

// appendLine appends the next line, with its end. The error is io.EOF after the last one.
func (l *lineReader) appendLine(to []byte) ([]byte, error) {
	for begun := len(to); ; {
		part, err := l.text.ReadSlice('\n')
		to = append(to, part...)
		switch {
		case len(to)-begun > longestLine:
			return to, fmt.Errorf("a line is larger than any update: it has more than %d bytes", longestLine)
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && l.left.N <= 0:
			return to, fmt.Errorf("decompressed it has more than %d bytes", int64(longestText))
		case errors.Is(err, io.EOF) && len(to) > begun:
			return to, errors.New("its last line has no end")
		case err != nil:
			return to, err
		default:
			return to, jsonhttp.CheckValues(to[begun:], longestLine)
		}
	}
}

// Pages reads the updates of a range, which must not reach beyond [Files.End], in order. The pages are adjacent, from
// the beginning of the range to its end. Each file is checked whole before anything of it is returned. Files whose
// updates lie below are not read.
//
// After an error nothing follows. Errors: a *ledger.Problem for files that are missing, damaged or of another order; a
// *ledger.DecodeError for an update that can't be understood; ctx's error.
func (f *Files) Pages(ctx context.Context, r ledger.Range) iter.Seq2[ledger.Page, error] {
	return func(yield func(ledger.Page, error) bool) {
		at, read := r.From, ledger.Offset(0) // returned up to here; read up to here
		err := f.pages(ctx, r, func(i int, updates []ledger.Update, bytes int64) error {
			for k := range updates {
				if updates[k].Offset <= read {
					return filesProblem(fmt.Errorf("file %s: update %s at offset %d (%s) comes after offset %d: updates must come "+
						"in the order of migration id and record time",
						f.files[i].path, ledger.Quoted(updates[k].ID), updates[k].Offset, placeOf(updates[k].Offset), read))
				}
				read = updates[k].Offset
			}
			page := cutAt(ledger.Page{From: at, To: read, Updates: updates, Bytes: bytes}, min(read, r.To))
			for len(page.Updates) > 0 && page.Updates[0].Offset <= at {
				page.Updates = page.Updates[1:]
			}
			if page.To <= at {
				return nil
			}
			if at = page.To; !yield(page, nil) {
				return errEnough
			}
			if at == r.To {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(ledger.Page{}, err)
		}
	}
}

// errEnough ends the reading of files.
var errEnough = errors.New("enough was read")

// pages calls take with the updates of each block of each file that may have some in a range, in order.
func (f *Files) pages(ctx context.Context, r ledger.Range, take func(i int, updates []ledger.Update,
	bytes int64) error) error {
	begins, err := f.fileOf(r.From)
	if err != nil {
		return err
	}
	for i := begins; i < len(f.files); i++ {
		if _, err := f.check(i); err != nil {
			return err
		}
		if err := f.read(ctx, i, take); err != nil {
			return err
		}
	}
	return nil
}

// fileOf returns the file in which to read on after an offset.
func (f *Files) fileOf(at ledger.Offset) (int, error) {
	if at == 0 {
		return 0, nil
	}
	low, high := 0, len(f.files) // the first update of file low is not above at, or low is 0
	for low+1 < high {
		middle := (low + high) / 2
		first, err := f.firstOf(middle)
		for k := middle + 1; err == nil && first == 0 && k < high; k++ { // an empty file
			first, err = f.firstOf(k)
		}
		if err != nil {
			return 0, err
		}
		if first != 0 && first <= at {
			low = middle
		} else {
			high = middle
		}
	}
	return low, nil
}

// read decodes a file of updates, and calls take with each block of them, in order.
func (f *Files) read(ctx context.Context, i int, take func(i int, updates []ledger.Update, bytes int64) error) error {
	form := lines[ledger.Update]{list: "transactions",
		decode: func(body []byte) ([]ledger.Update, error) {
			return ledger.DecodeNetworkUpdates(body, 0, f.party)
		}}
	return form.read(ctx, f.files[i].path, func(b *block[ledger.Update]) error { return take(i, b.items, b.bytes) })
}

// lines says what the lines of a file are, and how to decode many of them at once: as the members of a list in an
// object.
type lines[T any] struct {
	list   string
	blank  bool // lines may be empty
	decode func(body []byte) ([]T, error)
}

// block is some lines of a file, and what they are.
type block[T any] struct {
	items []T
	bytes int64
	err   error
}

// read decodes a file, several blocks at a time, and calls take with each, in order.
func (l *lines[T]) read(ctx context.Context, path string, take func(*block[T]) error) error {
	source, err := os.Open(path)
	if err != nil {
		return filesProblem(err)
	}
	defer source.Close()
	text, err := newLineReader(source)
	if err != nil {
		return filesProblem(fmt.Errorf("file %s: %w", path, err))
	}
	defer text.close()
	ctx, cancel := context.WithCancel(ctx)
	blocks := make(chan chan block[T], runtime.GOMAXPROCS(0))
	ended := make(chan error, 1)
	go func() {
		defer close(blocks)
		ended <- l.split(ctx, path, text, blocks)
	}()
	err = func() error {
		for next := range blocks {
			b := <-next
			if b.err != nil {
				return b.err
			}
			if err := take(&b); err != nil {
				return err
			}
		}
		return nil
	}()
	cancel()
	for range blocks { // so that split ends
	}
	if split := <-ended; err == nil {
		err = split
	}
	return err
}

// split cuts a file into blocks, and begins to decode each.
func (l *lines[T]) split(ctx context.Context, path string, text *lineReader, blocks chan<- chan block[T]) error {
	head, tail := `{"`+l.list+`":[`, `]}`
	for line, ends := 0, false; !ends; {
		body, n, first := append(make([]byte, 0, blockBytes+blockBytes/8), head...), 0, line
		for n < blockUpdates && len(body) < blockBytes && !ends {
			begun := len(body)
			if n > 0 {
				body = append(body, ',')
			}
			from := len(body)
			var err error
			body, err = text.appendLine(body)
			switch {
			case errors.Is(err, io.EOF):
				ends = true
				body = body[:begun]
			case err != nil:
				return filesProblem(fmt.Errorf("file %s, after line %d: %w", path, line, err))
			case l.blank && len(body) == from+1:
				body = body[:begun]
				line++
			default:
				n++
				line++
			}
		}
		if n == 0 {
			break
		}
		next := make(chan block[T], 1)
		select {
		case blocks <- next:
		case <-ctx.Done():
			return ctx.Err()
		}
		body = append(body, tail...)
		go func() {
			items, err := l.decode(body)
			if err != nil {
				err = fmt.Errorf("file %s, after line %d: %w", path, first, err)
			}
			next <- block[T]{items, int64(len(body)), err}
		}()
	}
	return nil
}
