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
}

// key returns the key of an object.
func (f *bulkFolder) key(n int) string {
	return fmt.Sprintf("%s~%s/updates_%d.zstd", f.start, f.end, n)
}

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

// makeFolders makes the folders of the first n updates.
func (s *Scan) makeFolders(v *networkView, n int) (folders []bulkFolder) {
	every := s.opts.BulkEvery.Microseconds()
	start := bulkBeginning
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
		end := at + every - 1 - (at+every-1)%every
		if n := len(folders); n == 0 || folders[n-1].to < at {
			if n > 0 {
				s.fillFolder(&folders[n-1], lines)
				start, lines = folders[n-1].end, nil
			}
			folders = append(folders, bulkFolder{start: start, end: time.UnixMicro(end).UTC().Format(time.RFC3339), to: end})
		}
		lines = append(lines, sortedKeys(item))
	}
	return folders[:max(0, len(folders)-1)]
}

// fillFolder makes the objects of a folder.
func (s *Scan) fillFolder(f *bulkFolder, lines [][]byte) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err)
	}
	for chunk := range slices.Chunk(lines, s.opts.BulkLines) {
		var object []byte
		for frame := range slices.Chunk(append(bytes.Join(chunk, []byte{'\n'}), '\n'), bulkFrame) {
			object = encoder.EncodeAll(frame, object)
		}
		f.objects = append(f.objects, object)
	}
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

// bulkUpdates implements POST /v0/history/bulk/updates. The token is the end of the last folder that was listed.
func (s *Scan) bulkUpdates(w http.ResponseWriter, r *http.Request) {
	o, refused := requestObject(w, r)
	var d decoder
	size, token := decode[int64](&d, o["page_size"], "page_size"), decode[string](&d, o["next_page_token"], "next_page_token")
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
	type ref struct {
		URL    string `json:"url"`
		Digest string `json:"digest"`
	}
	refs := []ref{}
	answer := map[string]any{}
	folders := s.bulkFolders()
	ends := len(folders) > 0 && folders[len(folders)-1].to >= times[1].UnixMicro() // everything that was asked for is written
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
				writeScanError(w, http.StatusBadRequest, fmt.Sprintf("The page size is smaller than a folder, which has %d objects.", len(f.objects)))
				return
			}
			ends = false
			break
		}
		for n, object := range f.objects {
			sum := sha256.Sum256(object)
			refs = append(refs, ref{"http://" + r.Host + s.opts.BulkPrefix + pathBulkDownload + url.PathEscape(f.key(n)), base64.StdEncoding.EncodeToString(sum[:])})
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
	folders := s.bulkFolders()
	for i := range folders {
		for n, object := range folders[i].objects {
			if folders[i].key(n) != key {
				continue
			}
			w.Header().Set("Content-Type", "application/octet-stream")
			if s.opts.RewriteObject != nil {
				object = s.opts.RewriteObject(key, slices.Clone(object))
			}
			_, _ = w.Write(object) // the client may have gone
			return
		}
	}
	writeScanError(w, http.StatusNotFound, "Object "+key+" not found")
}
