package bench

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/klauspost/compress/zstd"

	"ledgerindexer/internal/config"
	"ledgerindexer/sandbox"
)

// writeBulk writes the updates of a network into a folder, as bulk files with their list.
func writeBulk(folder string, data *dataset) error {
	const of = "0001-01-01T00:00:00Z~9999-01-01T00:00:00Z"
	if err := os.MkdirAll(filepath.Join(folder, of), 0o700); err != nil {
		return err
	}
	type ref struct {
		URL    string `json:"url"`
		Digest string `json:"digest"`
	}
	list := struct {
		Party string `json:"dso_party_id"`
		Refs  []ref  `json:"object_refs"`
	}{Party: sandbox.NewLedger(sandbox.Options{Seed: seed}).DSO()}
	for at := 0; at < data.Len(); at += bulkUpdates {
		key := fmt.Sprintf("%s/updates_%d.zstd", of, len(list.Refs))
		digest, err := writeBulkFile(filepath.Join(folder, key), data, at, min(at+bulkUpdates, data.Len()))
		if err != nil {
			return err
		}
		list.Refs = append(list.Refs, ref{"http://scan/v0/history/bulk/download/" + key, digest})
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "objects.json"), text, 0o600)
}

// bulkUpdates is how many updates a bulk file has: some hundred megabytes of JSON, as services make them.
const bulkUpdates = 50_000

// writeBulkFile writes some updates, each as a line, and returns the file's digest.
func writeBulkFile(path string, data *dataset, from, to int) (digest string, err error) {
	file, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	encoder, err := zstd.NewWriter(io.MultiWriter(file, sum))
	if err != nil {
		return "", err
	}
	for i := from; i < to; i++ {
		if _, err := encoder.Write(append(slices.Clip(data.Element(i)), '\n')); err != nil {
			return "", err
		}
	}
	if err := encoder.Close(); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), file.Close()
}

// loadBulk reads bulk files into a new database.
func (h *harness) loadBulk(ctx context.Context, folder string, data *dataset) (r run, err error) {
	url, err := h.prepared(ctx, config.NetworkSchemas)
	if err != nil {
		return r, err
	}
	if r.usage, err = h.run(ctx, "backfill", url, "network", "--files="+folder); err != nil {
		return r, err
	}
	_, err = h.db.of(config.NetworkSchemas).holds(ctx, data.Rows)
	return r, err
}
