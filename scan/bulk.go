package scan

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// The operations that list and download the bulk files of a Scan service.
const (
	pathBulkUpdates  = "/v0/history/bulk/updates"
	pathBulkSnapshot = "/v0/history/bulk/acs"
	pathBulkDownload = "/v0/history/bulk/download/"

	// beginning is the earliest time of a service's first folder.
	beginning = "0001-01-01T00:00:00Z"
	// unfinished begins the name of a file that is not complete.
	unfinished = ".part-"
	// maxObject is the largest bulk file that is downloaded, in bytes: services make them of about 128 MiB.
	maxObject     = 1 << 30
	objectTimeout = time.Hour
	// maxObjects is how many bulk files are listed: at one an hour, those of ten years.
	maxObjects = 100_000
)

// bulkRequest is the body of POST /v0/history/bulk/updates.
type bulkRequest struct {
	Start string `json:"start_record_time"`
	End   string `json:"end_record_time"`
	Size  int    `json:"page_size"`
	Token string `json:"next_page_token,omitzero"`
}

type bulkRef struct {
	URL    string `json:"url"`
	Digest string `json:"digest"`
}

// digest is the SHA-256 of a file.
type digest [sha256.Size]byte

// String writes a digest in base64, as services do.
func (d digest) String() string { return base64.StdEncoding.EncodeToString(d[:]) }

// sum returns the digest of a file. Services send it in base64. A list that was written by hand may have the
// hexadecimal digits that sha256sum prints.
func (r *bulkRef) sum() (d digest, err error) {
	var sum []byte
	if len(r.Digest) == hex.EncodedLen(len(d)) {
		sum, err = hex.DecodeString(r.Digest)
	} else {
		sum, err = base64.StdEncoding.DecodeString(r.Digest)
	}
	if err != nil || copy(d[:], sum) != len(d) || len(sum) != len(d) {
		return d, fmt.Errorf("the digest of a bulk file is no SHA-256: %s of %s", ledger.Quoted(r.Digest),
			ledger.Quoted(r.URL))
	}
	return d, nil
}

// key returns the key of a file: folder and name. The key is requested from the service itself, whatever host the URL
// names, so that no token is sent elsewhere.
func (r *bulkRef) key() (string, error) {
	if address, err := url.Parse(r.URL); err == nil {
		if _, key, ok := strings.Cut(address.Path, pathBulkDownload); ok && filepath.IsLocal(key) {
			return key, nil
		}
	}
	return "", fmt.Errorf("the address of a bulk file does not end in a key: %s", ledger.Quoted(r.URL))
}

// parse returns the key and the digest of a file.
func (r *bulkRef) parse() (key string, sum digest, err error) {
	if key, err = r.key(); err == nil {
		sum, err = r.sum()
	}
	return key, sum, err
}

// DownloadFiles downloads the bulk files of updates that the service has now into a folder, and writes the list that
// [OpenFiles] needs. With snapshotUpTo it downloads those of the newest snapshot up to that offset too, of which it has
// all updates. It does not download files again that are in the folder. A file gets its name when its digest was
// checked. got, if set, is called after each file with the number of files that are there, and the number of all.
//
// Errors: a *ledger.Problem where the service has no bulk files, another network's are in the folder, or a digest has
// changed; an *Error, which may be tried again, for the rest.
func (u *Updates) DownloadFiles(ctx context.Context, folder string, snapshotUpTo *ledger.Offset,
	got func(n, of int)) error {
	party, err := u.Party(ctx)
	if err != nil {
		return err
	}
	refs, err := u.listFiles(ctx)
	if err == nil && snapshotUpTo != nil && len(refs) > 0 {
		refs, err = u.listSnapshot(ctx, refs, *snapshotUpTo)
	}
	if err != nil {
		return fmt.Errorf("list the bulk files: %w", err)
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return filesProblem(err)
	}
	if err := removeUnfinished(folder); err != nil {
		return filesProblem(err)
	}
	list, err := readList(folder)
	switch {
	case errors.Is(err, os.ErrNotExist):
		list = fileList{Party: party}
	case err != nil:
		return err
	case list.Party != party:
		return &ledger.Problem{
			What: fmt.Sprintf("folder %s has the bulk files of the network that %s operates, and the Scan service is of that "+
				"of %s", folder, list.Party, party),
			Do: "give --files a folder for each network, or correct --scan-url",
		}
	}
	if err := list.add(folder, refs); err != nil {
		return err
	}
	if err := list.write(folder); err != nil {
		return err
	}
	for i := range list.Refs {
		key, sum, err := list.Refs[i].parse()
		if err != nil {
			return filesProblem(err)
		}
		if _, err := os.Stat(filepath.Join(folder, filepath.FromSlash(key))); err != nil {
			if err := u.download(ctx, folder, key, sum); err != nil {
				return fmt.Errorf("download bulk file %s: %w", key, err)
			}
		}
		if got != nil {
			got(i+1, len(list.Refs))
		}
	}
	return u.noteQuiet(ctx, folder, &list)
}

// noteQuiet notes in the list of a folder which gaps between its files have no update, as the service says: the updates
// on both sides of one follow each other.
func (u *Updates) noteQuiet(ctx context.Context, folder string, list *fileList) error {
	f, gaps, err := list.arrange(folder)
	if err != nil {
		return err
	}
	noted := len(list.Quiet)
	for _, g := range gaps {
		if g.after == 0 || slices.Contains(list.Quiet, g.String()) { // without a first folder nothing is to be had
			continue
		}
		if err := u.checkQuiet(ctx, f, g); err != nil {
			return err
		}
		list.Quiet = append(list.Quiet, g.String())
	}
	if len(list.Quiet) == noted {
		return nil
	}
	return list.write(folder)
}

// checkQuiet checks that there is no update in a gap between files.
func (u *Updates) checkQuiet(ctx context.Context, f *Files, g fileGap) error {
	before, after := ledger.Offset(0), ledger.Offset(0)
	for i := g.after - 1; i >= 0 && before == 0; i-- {
		b, err := f.check(i)
		if err != nil {
			return err
		}
		before = b.last
	}
	for i := g.after; i < len(f.files) && after == 0; i++ {
		b, err := f.check(i)
		if err != nil {
			return err
		}
		after = b.first
	}
	page, err := u.page(ctx, "updates-first", before, 1, u.client.maxBody)
	if err == nil && len(page.updates) == 0 {
		err = lagging("updates-first", after)
	}
	if err != nil {
		return fmt.Errorf("look for updates between the bulk files, of %s: %w", g, err)
	}
	next := page.updates[0].Offset
	if _, at := next.NetworkPosition(); next == after || after == 0 && at.After(g.end) {
		return nil
	}
	return &ledger.Problem{
		What: fmt.Sprintf("the Scan service lists no bulk file of %s, and the update after those before it is at %s", g,
			placeOf(next)),
		Do: "read the files of another service (--scan-url); or leave --files out, and read the updates with `indexer run`",
	}
}

// download downloads a file, and retries errors that may be temporary.
func (u *Updates) download(ctx context.Context, folder, key string, sum digest) error {
	return retryBriefly(ctx, func() error { return u.downloadOnce(ctx, folder, key, sum) })
}

// bulkList is an answer with files.
type bulkList struct {
	Refs  []bulkRef `json:"object_refs"`
	Token string    `json:"next_page_token"`
}

// listFiles lists the files of updates that are written.
func (u *Updates) listFiles(ctx context.Context) (refs []bulkRef, err error) {
	r := bulkRequest{Start: beginning, End: time.Now().UTC().Format(recordTimeForm), Size: MaxPage}
	for {
		page, err := u.askBulk(ctx, http.MethodPost, jsonhttp.Request{Operation: "bulk-updates", Path: pathBulkUpdates,
			Body: r, MaxBytes: u.client.maxBody})
		if errors.Is(err, ledger.ErrNotOffered) {
			return nil, &ledger.Problem{
				What: "the Scan service offers no bulk files (POST " + pathBulkUpdates + ")", Err: err,
				Do: "leave --files out, and read the updates with `indexer run`; or give another service of the network",
			}
		}
		if err != nil {
			return nil, err
		}
		// what follows is not written yet
		if refs = append(refs, page.Refs...); page.Token == "" || len(page.Refs) == 0 || page.Token == r.Token {
			return refs, nil
		}
		if len(refs) > maxObjects {
			return nil, &ledger.Problem{
				What: fmt.Sprintf("the Scan service lists more than %d bulk files, and no end comes", maxObjects),
				Do:   "ask who runs the service, and give another one of the network by --scan-url",
			}
		}
		r.Token = page.Token
	}
}

// listSnapshot adds the files of the newest snapshot at or below an offset to those of updates. The snapshot is not
// newer than the updates, of which a service may have written fewer.
func (u *Updates) listSnapshot(ctx context.Context, updates []bulkRef, upTo ledger.Offset) ([]bulkRef, error) {
	key, err := updates[len(updates)-1].key()
	if err != nil {
		return nil, filesProblem(err)
	}
	last := file{key: key}
	if _, err := last.parse(); err != nil {
		return nil, filesProblem(err)
	}
	end := last.end
	if _, before := upTo.NetworkPosition(); before.Before(end) {
		end = before
	}
	at := end.UTC().Format(recordTimeForm)
	page, err := u.askBulk(ctx, http.MethodGet, jsonhttp.Request{
		Operation: "bulk-snapshot", Path: pathBulkSnapshot, Query: url.Values{"at_or_before_record_time": {at}},
		MaxBytes: u.client.maxBody,
	})
	if errors.Is(err, ledger.ErrNotOffered) {
		return nil, &ledger.Problem{
			What: fmt.Sprintf("the Scan service has no snapshot in bulk files up to %s (GET %s)", at, pathBulkSnapshot),
			Err:  err,
			Do: "give a higher --at-offset or none; or seed from a snapshot without --files; or leave --active-only out to " +
				"store all updates",
		}
	}
	return append(updates, page.Refs...), err
}

// askBulk asks for a list of files. The error is ledger.ErrNotOffered where the service has none.
func (u *Updates) askBulk(ctx context.Context, method string, asked jsonhttp.Request) (list bulkList, err error) {
	q := purpose{method: method, path: asked.Path}
	a, err := u.client.do(ctx, asked)
	if refused, ok := errors.AsType[*Error](err); ok && (refused.Status == http.StatusNotImplemented ||
		strings.Contains(refused.Message, "not configured")) {
		return list, fmt.Errorf("%w: %w", ledger.ErrNotOffered, err)
	}
	if err != nil {
		return list, u.client.explain(err, q)
	}
	defer jsonhttp.Release(a.Body)
	if err := json.Unmarshal(a.Body, &list); err != nil {
		return list, u.client.explain(u.client.misread(asked.Operation, a, fmt.Errorf("%s: %w", asked.Operation, err)), q)
	}
	return list, nil
}

// downloadOnce downloads a file, and gives it its name when its digest is right.
func (u *Updates) downloadOnce(ctx context.Context, folder, key string, sum digest) error {
	const operation = "bulk-download"
	path := pathBulkDownload + url.PathEscape(key)
	to := filepath.Join(folder, filepath.FromSlash(key))
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return filesProblem(err)
	}
	return writeFile(to, func(part io.Writer) error {
		file, got := &noted{Writer: part}, sha256.New()
		asked := jsonhttp.Request{Operation: operation, Path: path, MaxBytes: maxObject, Binary: true,
			To: io.MultiWriter(file, got)}
		_, err := u.client.do(ctx, asked)
		if file.err != nil {
			return filesProblem(file.err)
		}
		if err != nil {
			return u.client.explain(err, purpose{method: http.MethodGet, path: path})
		}
		if got := digest(got.Sum(nil)); got != sum {
			return &Error{Failure: jsonhttp.Unusable(operation, fmt.Errorf("its digest is %s, and should be %s", got, sum))}
		}
		return nil
	})
}

// noted is a writer whose error is told from those of what is written.
type noted struct {
	io.Writer
	err error
}

// Write passes bytes on.
func (n *noted) Write(p []byte) (int, error) {
	written, err := n.Writer.Write(p)
	n.err = err
	return written, err
}

// removeUnfinished removes what a killed download left, where it may: a folder can have one of others, such as
// lost+found. Another process may be writing the newer ones.
func removeUnfinished(folder string) error {
	return filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(entry.Name(), unfinished) && !entry.IsDir() {
			var info os.FileInfo
			if info, err = entry.Info(); err == nil && time.Since(info.ModTime()) > objectTimeout {
				err = os.Remove(path)
			}
		}
		if errors.Is(err, os.ErrPermission) || errors.Is(err, os.ErrNotExist) { // of others, or finished meanwhile
			return nil
		}
		return err
	})
}

// writeFile writes a file that gets its name when fill has written it whole.
func writeFile(to string, fill func(io.Writer) error) error {
	part, err := os.CreateTemp(filepath.Dir(to), unfinished+"*")
	if err != nil {
		return filesProblem(err)
	}
	if err := fill(part); err != nil {
		return errors.Join(err, part.Close(), os.Remove(part.Name()))
	}
	if err = errors.Join(part.Sync(), part.Close()); err == nil {
		err = os.Rename(part.Name(), to)
	}
	if err != nil {
		return filesProblem(errors.Join(err, os.Remove(part.Name())))
	}
	return nil
}
