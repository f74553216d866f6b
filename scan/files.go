package scan

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/klauspost/compress/zstd"

	"ledgerindexer/ledger"
)

// fileList says which files a folder has, in the form in which services say so.
type fileList struct {
	Party string    `json:"dso_party_id"`
	Refs  []bulkRef `json:"object_refs"`
	// intervals without folders in which there is no update; see fileGap
	Quiet []string `json:"without_updates,omitempty"`
}

// listName is the name of the list of files in their folder.
const listName = "objects.json"

// filesProblem is the error for files that can't be read or written, or are not what they should be.
func filesProblem(err error) error {
	return &ledger.Problem{What: "the bulk files can't be used", Err: err,
		Do: "see to the folder that --files names, or take another service's files; " +
			"nothing that is stored is lost, and the same command continues"}
}

// readList reads the list of a folder. The error is a *ledger.Problem, and wraps os.ErrNotExist where there is none.
func readList(folder string) (list fileList, err error) {
	text, err := os.ReadFile(filepath.Join(folder, listName))
	if err != nil {
		return list, filesProblem(err)
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return list, filesProblem(fmt.Errorf("%s: %w", filepath.Join(folder, listName), err))
	}
	return list, nil
}

func (l *fileList) write(folder string) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(folder, listName), func(part io.Writer) error {
		if _, err := part.Write(text); err != nil {
			return filesProblem(err)
		}
		return nil
	})
}

// add adds files that are not in the list.
func (l *fileList) add(folder string, refs []bulkRef) error {
	known := map[string]digest{}
	for i := range l.Refs {
		key, sum, err := l.Refs[i].parse()
		if err != nil {
			return filesProblem(err)
		}
		known[key] = sum
	}
	for i := range refs {
		key, sum, err := refs[i].parse()
		if err != nil {
			return filesProblem(err)
		}
		switch listed, there := known[key]; {
		case !there:
			l.Refs, known[key] = append(l.Refs, refs[i]), sum
		case listed != sum:
			return &ledger.Problem{
				What: fmt.Sprintf("the Scan service says that file %s has digest %s, and the list in %s says %s", key, sum, folder,
					listed),
				Do: "find out which is right; give --files another folder to download all files again",
			}
		}
	}
	return nil
}

// Files are the bulk files of a network in a folder.
type Files struct {
	party     string
	files     []file               // of updates, in order
	snapshots map[time.Time][]file // by the time of the snapshot, where their folder begins
	last      ledger.Offset        // of the last update
}

type file struct {
	path, key  string
	digest     digest
	start, end time.Time // of its folder
	number     int       // in its folder
}

// fileGap is an interval between two folders of updates. A service writes no folder of a day without updates.
type fileGap struct {
	start, end time.Time
	after      int // the first file after it
}

// String returns the gap as a folder of it would be named.
func (g fileGap) String() string {
	return g.start.Format(time.RFC3339Nano) + "~" + g.end.Format(time.RFC3339Nano)
}

// OpenFiles reads the list of a folder, and checks that it has all files from the beginning of the history on, without
// a gap. Their contents are checked when they are read, except for the last file with an update, which is checked now.
//
// The error is a *ledger.Problem, or a *ledger.DecodeError for an update that can't be understood.
func OpenFiles(folder string) (*Files, error) {
	list, err := readList(folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &ledger.Problem{
			What: fmt.Sprintf("folder %s has no %s, which lists the files with their digests", folder, listName), Err: err,
			Do: "let `backfill network --files` download the files, with --scan-url; or write the list: {\"dso_party_id\": " +
				"…, \"object_refs\": [{\"url\": …, \"digest\": …}]}, as the service lists them",
		}
	}
	if err != nil {
		return nil, err
	}
	if list.Party == "" {
		return nil, filesProblem(fmt.Errorf("%s does not say of which network they are (dso_party_id)",
			filepath.Join(folder, listName)))
	}
	f, gaps, err := list.arrange(folder)
	if err != nil {
		return nil, err
	}
	for _, g := range gaps {
		if !slices.Contains(list.Quiet, g.String()) {
			return nil, missing("those of the folder that begins at " + g.start.Format(time.RFC3339Nano))
		}
	}
	for i := len(f.files) - 1; i >= 0 && f.last == 0; i-- {
		bounds, err := f.check(i)
		if err != nil {
			return nil, err
		}
		f.last = bounds.last
	}
	return f, nil
}

// keyForm is the form of a file's key. Services of later releases than Splice 0.7 say in it how values are written.
var keyForm = regexp.MustCompile(`^([^/~]+)~([^/~]+)/(updates|ACS)_(?:compact_json_)?([0-9]{1,9})\.zstd$`)

// parse reads folder and number from the key. It reports whether the file is one of a snapshot, or else of updates.
func (f *file) parse() (ofSnapshot bool, err error) {
	parts := keyForm.FindStringSubmatch(f.key)
	if parts == nil {
		return false, fmt.Errorf("%q is not the key of a bulk file, START~END/updates_N.zstd or START~END/ACS_N.zstd", f.key)
	}
	for text, to := range map[string]*time.Time{parts[1]: &f.start, parts[2]: &f.end} {
		if *to, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return false, fmt.Errorf("the folder of bulk file %q: %w", f.key, err)
		}
	}
	f.number, err = strconv.Atoi(parts[4])
	return parts[3] == "ACS", err
}

// arrange returns the listed files of a folder in the order of the history, and the gaps between their folders.
func (l *fileList) arrange(folder string) (*Files, []fileGap, error) {
	f := &Files{party: l.Party, snapshots: map[time.Time][]file{}}
	for i := range l.Refs {
		key, sum, err := l.Refs[i].parse()
		if err != nil {
			return nil, nil, filesProblem(err)
		}
		one := file{path: filepath.Join(folder, filepath.FromSlash(key)), key: key, digest: sum}
		ofSnapshot, err := one.parse()
		if err != nil {
			return nil, nil, filesProblem(err)
		}
		if ofSnapshot {
			f.snapshots[one.start] = append(f.snapshots[one.start], one)
		} else {
			f.files = append(f.files, one)
		}
	}
	slices.SortFunc(f.files, func(a, b file) int { return a.start.Compare(b.start) })
	var gaps []fileGap
	reached, _ := time.Parse(time.RFC3339Nano, beginning)
	for i := 0; i < len(f.files); {
		of := f.files[i:]
		if n := slices.IndexFunc(of, func(one file) bool { return !one.start.Equal(of[0].start) }); n > 0 {
			of = of[:n]
		}
		if err := arrangeFolder(of, "updates"); err != nil {
			return nil, nil, err
		}
		switch start := of[0].start; {
		case start.Before(reached):
			return nil, nil, filesProblem(fmt.Errorf("the folder of file %s begins in the one before it, which ends at %s",
				of[0].key, reached.Format(time.RFC3339Nano)))
		case start.After(reached):
			gaps = append(gaps, fileGap{reached, start, i})
		}
		reached, i = of[0].end, i+len(of)
	}
	return f, gaps, nil
}

// arrangeFolder puts the files of a kind in a folder in order.
func arrangeFolder(of []file, kind string) error {
	slices.SortFunc(of, func(a, b file) int { return a.number - b.number })
	for i, one := range of {
		if i > 0 && one.number == of[i-1].number && one.end.Equal(of[i-1].end) {
			return filesProblem(fmt.Errorf("the list has two files of the same part of the history, %s and %s", of[i-1].key,
				one.key))
		}
		if one.number != i || !one.end.Equal(of[0].end) {
			return missing(fmt.Sprintf("%s/%s_%d.zstd", fileGap{start: one.start, end: of[0].end}, kind, i))
		}
	}
	return nil
}

func missing(what string) error {
	return &ledger.Problem{
		What: "of the bulk files some are missing: " + what,
		Do:   "let `backfill network --files` download them, with --scan-url, or add them and their digests to " + listName,
	}
}

// Party returns the party that operates the network.
func (f *Files) Party() string { return f.party }

// End returns the offset of the last update; 0 if there is none.
func (f *Files) End() ledger.Offset { return f.last }

// bounds are the first and the last update of a file; 0: it has none.
type bounds struct{ first, last ledger.Offset }

// check reads a file of updates whole, and checks it.
func (f *Files) check(i int) (b bounds, err error) {
	ends, err := f.files[i].check()
	if err != nil || len(ends.last) == 0 {
		return b, err
	}
	for line, to := range map[*[]byte]*ledger.Offset{&ends.first: &b.first, &ends.last: &b.last} {
		update, err := ledger.DecodeNetworkUpdate(*line, f.party)
		if err != nil {
			return b, fmt.Errorf("file %s: %w", f.files[i].path, err)
		}
		*to = update.Offset
	}
	return b, nil
}

// check reads a file whole, and checks its digest, its compression, and that it ends with a whole line: nothing is
// taken from a file that is damaged anywhere. It returns the first and the last line.
func (f *file) check() (ends lineEnds, err error) {
	source, err := os.Open(f.path)
	if err != nil {
		return ends, filesProblem(err)
	}
	defer source.Close()
	sum := sha256.New()
	tee := io.TeeReader(source, sum)
	unreadable := ends.read(tee)
	if _, err := io.Copy(io.Discard, tee); err != nil { // what was not decompressed
		return ends, filesProblem(err)
	}
	if got := digest(sum.Sum(nil)); got != f.digest {
		return ends, &ledger.Problem{
			What: fmt.Sprintf("the digest of file %s is %s, and should be %s: the file is damaged, or ends early", f.path, got,
				f.digest),
			Do: "remove the file, and download it again (`backfill network --files` with --scan-url); nothing of it was stored",
		}
	}
	if unreadable != nil {
		return ends, &ledger.Problem{
			What: fmt.Sprintf("file %s has the right digest and can't be read", f.path), Err: unreadable,
			Do: "ask who runs the service that lists it, and take another service's files; nothing of it was stored",
		}
	}
	return ends, nil
}

// lineEnds are the first and the last line of a file.
type lineEnds struct{ first, last []byte }

// read reads a file to its end.
func (l *lineEnds) read(source io.Reader) error {
	text, err := newLineReader(source)
	if err != nil {
		return err
	}
	defer text.close()
	for line := []byte(nil); ; {
		line, err = text.appendLine(line[:0])
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case l.first == nil:
			l.first = bytes.Clone(line)
		}
		l.last, line = line, l.last
	}
}

// firstOf returns the offset of the first update of a file, without reading the rest; 0: it has none.
func (f *Files) firstOf(i int) (ledger.Offset, error) {
	source, err := os.Open(f.files[i].path)
	if err != nil {
		return 0, filesProblem(err)
	}
	defer source.Close()
	text, err := newLineReader(source, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return 0, filesProblem(fmt.Errorf("file %s: %w", f.files[i].path, err))
	}
	defer text.close()
	line, err := text.appendLine(nil)
	switch {
	case errors.Is(err, io.EOF):
		return 0, nil
	case err != nil: // check says more
		_, checked := f.check(i)
		return 0, errors.Join(checked, filesProblem(fmt.Errorf("file %s: %w", f.files[i].path, err)))
	}
	update, err := ledger.DecodeNetworkUpdate(line, f.party)
	if err != nil {
		return 0, fmt.Errorf("file %s: %w", f.files[i].path, err)
	}
	return update.Offset, nil
}
