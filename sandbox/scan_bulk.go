package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// The paths of the bulk files (interface.md, "Updates of a network").
const (
	pathBulkUpdates  = "/v0/history/bulk/updates"
	pathBulkSnapshot = "/v0/history/bulk/acs"
	pathBulkDownload = "/v0/history/bulk/download/"
)

const (
	bulkBeginning = "0001-01-01T00:00:00Z" // of the first folder
	bulkFrame     = 64 << 10               // bytes of JSON in a frame, wherever a line ends
)

// bulkFolder is the updates of an interval of record time.
type bulkFolder struct {
	start, end string
	to         int64    // the end in microseconds, inclusive
	objects    [][]byte // compressed
	active     [][]byte // the objects of the snapshot at the end; nil: there is none
	upTo       int      // how many of the network's updates lie up to the end
}

// key returns the key of an object.
func (f *bulkFolder) key(n int) string {
	return fmt.Sprintf("%s~%s/updates_%d.zstd", f.start, f.end, n)
}

// activeKey returns the key of an object of the snapshot at the end of a folder: it lies where the next folder of
// updates does.
func (f *bulkFolder) activeKey(n int, every time.Duration) string {
	return fmt.Sprintf("%s~%s/ACS_%d.zstd", f.end, bulkTime(f.to+every.Microseconds()), n)
}

// bulkTime returns a time in microseconds as the keys of objects have it.
func bulkTime(micros int64) string { return time.UnixMicro(micros).UTC().Format(time.RFC3339) }

// bulkFolders returns the folders that are written: those after whose end there is an update.
func (s *Scan) bulkFolders() []bulkFolder {
	v := s.network()
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(v.updates) - s.behind; s.bulkOf != n {
		s.bulk, s.bulkOf = s.makeFolders(v, n), n
	}
	return s.bulk
}

// makeFolders makes the folders of the first n updates, of intervals without updates too: of these there are only
// objects of a snapshot.
func (s *Scan) makeFolders(v *networkView, n int) (folders []bulkFolder) {
	every := s.opts.BulkEvery.Microseconds()
	var lines [][]byte
	for i := range n {
		item, shown := v.appendItem(nil, i)
		if shown {
			item, shown = s.changed(v, i, item)
		}
		if !shown {
			continue
		}
		at := v.updates[i].record
		if len(folders) == 0 {
			end := at + every - 1 - (at+every-1)%every
			folders = append(folders, bulkFolder{start: bulkBeginning, end: bulkTime(end), to: end})
		}
		for folders[len(folders)-1].to < at {
			f := &folders[len(folders)-1]
			f.objects, f.upTo = s.bulkObjects(slices.Collect(slices.Chunk(lines, s.opts.BulkLines))), i
			f.active = s.activeObjects(v, f)
			folders = append(folders, bulkFolder{start: f.end, end: bulkTime(f.to + every), to: f.to + every})
			lines = nil
		}
		lines = append(lines, sortedKeys(item))
	}
	return folders[:max(0, len(folders)-1)]
}

// activeObjects makes the objects of the snapshot at the end of a folder, if the service took one then. Like the real
// service, it does not look whether a page of contracts is the last one if it is full, and writes the line end of the
// empty page that follows.
func (s *Scan) activeObjects(v *networkView, f *bulkFolder) [][]byte {
	migration := v.migration(f.upTo) // the lowest with a later update
	if at, ok := v.snapshotBefore(migration, f.to, s.opts.SnapshotEvery.Microseconds()); !ok || at != f.to {
		return nil
	}
	list := v.snapshot(f.upTo)
	var lines [][]byte
	for i := range list {
		lines = append(lines, sortedKeys(v.appendSnapshotContract(nil, &list[i], migration)))
	}
	pages := slices.Collect(slices.Chunk(lines, s.opts.BulkLines))
	if len(lines)%s.opts.BulkLines == 0 {
		pages = append(pages, nil)
	}
	return s.bulkObjects(pages)
}

// bulkObjects makes an object of each list of lines.
func (s *Scan) bulkObjects(pages [][][]byte) (objects [][]byte) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err)
	}
	for _, page := range pages {
		var object []byte
		for frame := range slices.Chunk(append(bytes.Join(page, []byte{'\n'}), '\n'), bulkFrame) {
			object = encoder.EncodeAll(frame, object)
		}
		objects = append(objects, object)
	}
	return objects
}

// sortedKeys writes an object with its keys in order, as bulk files have them.
func sortedKeys(item []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(item))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return item // rewritten into something else
	}
	return []byte(mustJSON(value))
}

// bulkRef says where an object is.
type bulkRef struct {
	URL    string `json:"url"`
	Digest string `json:"digest"`
}

func (s *Scan) bulkRef(r *http.Request, key string, object []byte) bulkRef {
	sum := sha256.Sum256(object)
	return bulkRef{"http://" + r.Host + s.opts.BulkPrefix + pathBulkDownload + url.QueryEscape(key),
		base64.StdEncoding.EncodeToString(sum[:])}
}

// bulkSnapshot implements GET /v0/history/bulk/acs.
func (s *Scan) bulkSnapshot(w http.ResponseWriter, r *http.Request) {
	given := r.URL.Query().Get("at_or_before_record_time")
	at, err := time.Parse(time.RFC3339Nano, given)
	if err != nil {
		writeScanError(w, http.StatusBadRequest, "The query parameter 'at_or_before_record_time' was malformed: "+given)
		return
	}
	folders := s.bulkFolders()
	for i := range slices.Backward(folders) {
		f := &folders[i]
		if f.active == nil || f.to > at.UnixMicro() {
			continue
		}
		refs := []bulkRef{}
		for n, object := range f.active {
			refs = append(refs, s.bulkRef(r, f.activeKey(n, s.opts.BulkEvery), object))
		}
		writeValue(w, map[string]any{"record_time": f.end, "object_refs": refs})
		return
	}
	writeScanError(w, http.StatusNotFound, "no snapshot in committed bulk storage yet")
}

// bulkUpdates implements POST /v0/history/bulk/updates. The token is the end of the last folder that was listed.
func (s *Scan) bulkUpdates(w http.ResponseWriter, r *http.Request) {
	o, refused := requestObject(w, r)
	var d decoder
	size, token := decode[int64](&d, o["page_size"], "page_size"), decode[string](&d, o["next_page_token"],
		"next_page_token")
	var times [2]time.Time
	for i, name := range []string{"start_record_time", "end_record_time"} {
		at, err := time.Parse(time.RFC3339Nano, decode[string](&d, o[name], name))
		if err != nil && refused == "" {
			refused = malformedContent + "DecodingFailure at ." + name + ": Missing required field"
		}
		times[i] = at
	}
	switch {
	case refused == "" && d.err != nil:
		refused = malformedContent + d.err.Error()
	case refused == "" && (size < 1 || size > 1000):
		refused = fmt.Sprintf("Exceeded limit maximum (%d > 1000).", size)
	}
	if refused != "" {
		writeScanError(w, http.StatusBadRequest, refused)
		return
	}
	refs := []bulkRef{}
	answer := map[string]any{}
	folders := s.bulkFolders()
	// everything that was asked for is written
	ends := len(folders) > 0 && folders[len(folders)-1].to >= times[1].UnixMicro()
	for i := range folders {
		f := &folders[i]
		if f.to <= times[0].UnixMicro() || token != "" && f.end <= token {
			continue
		}
		if i > 0 && folders[i-1].to >= times[1].UnixMicro() {
			break
		}
		if len(refs)+len(f.objects) > int(size) {
			if len(refs) == 0 {
				writeScanError(w, http.StatusBadRequest,
					fmt.Sprintf("The page size is smaller than a folder, which has %d objects.", len(f.objects)))
				return
			}
			ends = false
			break
		}
		for n, object := range f.objects {
			refs = append(refs, s.bulkRef(r, f.key(n), object))
		}
		token = f.end
	}
	if answer["object_refs"] = refs; !ends {
		answer["next_page_token"] = token
		if token == "" {
			answer["next_page_token"] = bulkBeginning
		}
	}
	writeValue(w, answer)
}

// bulkDownload implements GET /v0/history/bulk/download/{key}.
func (s *Scan) bulkDownload(w http.ResponseWriter, r *http.Request) {
	key := strings.TrimPrefix(r.URL.Path, pathBulkDownload)
	object, ok := s.bulkObject(key)
	if !ok {
		writeScanError(w, http.StatusNotFound, "Object "+key+" not found")
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(object) // the client may have gone
}

func (s *Scan) bulkObject(key string) (object []byte, ok bool) {
	folders := s.bulkFolders()
	for i := range folders {
		f := &folders[i]
		for n, object := range f.objects {
			if f.key(n) == key {
				return object, true
			}
		}
		for n, object := range f.active {
			if f.activeKey(n, s.opts.BulkEvery) == key {
				return object, true
			}
		}
	}
	return nil, false
}
