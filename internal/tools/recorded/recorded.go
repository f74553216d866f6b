// Package recorded gives tests what real servers sent: the exchanges with a participant, which are in the repository,
// and the recordings of other projects, which lie beside it where they are at hand.
package recorded

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// Release is the release of the participant whose exchanges were recorded.
const Release = "3.5.5"

const folder = "testdata/participant-" + Release

//go:embed testdata
var testdata embed.FS

// Exchange is a request to the participant and its answer.
type Exchange struct {
	Method  string `json:"method"`
	Path    string `json:"path"`    // with its query
	Request string `json:"request"` // the body, empty if there was none
	Status  int    `json:"status"`
	Type    string `json:"type"`   // the answer's Content-Type, empty if it had none
	Answer  string `json:"answer"` // its body, exactly as it was sent
}

var exchanges = sync.OnceValues(func() ([]Exchange, error) {
	compressed, err := testdata.ReadFile(folder + "/exchanges.jsonl.zst")
	if err != nil {
		return nil, err
	}
	r, err := zstd.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var all []Exchange
	for lines := json.NewDecoder(r); ; {
		var e Exchange
		switch err := lines.Decode(&e); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, e)
	}
})

// Exchanges are all that were recorded, in their order. They are shared: change none.
func Exchanges(t testing.TB) []Exchange {
	t.Helper()
	all, err := exchanges()
	if err != nil {
		t.Fatalf("read the recorded exchanges: %v", err)
	}
	if len(all) == 0 {
		t.Fatal("there are no recorded exchanges")
	}
	return all
}

// Packages are the bytes of the Daml packages that were written for the recorded ledger, by their ids.
func Packages(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := fs.Glob(testdata, folder+"/packages/*.dalf")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no recorded packages: %v", err)
	}
	packages := map[string][]byte{}
	for _, file := range files {
		content, err := testdata.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		hash := sha256.Sum256(content)
		packages[hex.EncodeToString(hash[:])] = content
	}
	return packages
}

// Beside returns the path of what belongs to other projects and is not copied into this one, such as "openapi". It
// lies in the folder ../shared beside this project; where it is missing, the test is skipped.
func Beside(t testing.TB, name string) string {
	t.Helper()
	path := beside(t, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("../shared/%s is not beside the project: it is other projects' data and not copied here, so that there is "+
			"nothing to check against", name)
	}
	return path
}

func beside(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "..", "shared", filepath.FromSlash(name))
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("there is no go.mod above the tests")
		}
	}
}
