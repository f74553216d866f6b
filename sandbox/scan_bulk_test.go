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
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/openapi"
)

// bulk lists the bulk files, page by page, until the service has written no more, and returns their lines.
func (c *client) bulk(t *testing.T, size int) (lines []map[string]any, keys []string) {
	t.Helper()
	api := openapi.Scan(t, "0.7")
	for token := ""; ; {
		body := fmt.Sprintf(`{"start_record_time":"0001-01-01T00:00:00Z","end_record_time":"2030-01-01T00:00:00Z","page_size":%d%s}`, size, token)
		require.NoError(t, api.CheckRequest("POST", pathBulkUpdates, nil, []byte(body)))
		a := c.post(pathBulkUpdates, "%s", body)
		require.NoError(t, api.CheckResponse("POST", pathBulkUpdates, 200, a.body))
		page := a.object()
		require.NotEmpty(t, page["next_page_token"], "the last folder is not written yet")
		refs := page["object_refs"].([]any)
		if len(refs) == 0 {
			return lines, keys
		}
		for _, ref := range refs {
			key, more := c.bulkObject(t, ref.(map[string]any))
			keys, lines = append(keys, key), append(lines, more...)
		}
		token = fmt.Sprintf(`,"next_page_token":%q`, page["next_page_token"])
	}
}

// bulkObject downloads a bulk file, and returns its key and its lines.
func (c *client) bulkObject(t *testing.T, ref map[string]any) (key string, lines []map[string]any) {
	t.Helper()
	at, err := url.Parse(ref["url"].(string))
	require.NoError(t, err)
	object := c.do(http.MethodGet, at.EscapedPath(), "").body
	sum := sha256.Sum256(object)
	require.Equal(t, ref["digest"], base64.StdEncoding.EncodeToString(sum[:]))
	decoder, err := zstd.NewReader(nil)
	require.NoError(t, err)
	defer decoder.Close()
	text, err := decoder.DecodeAll(object, nil)
	require.NoError(t, err)
	require.True(t, bytes.HasSuffix(text, []byte("\n")))
	for line := range bytes.Lines(text) {
		if item := map[string]any(nil); len(line) > 1 {
			require.NoError(t, json.Unmarshal(line, &item))
			lines = append(lines, item)
		}
	}
	return strings.TrimPrefix(at.Path, pathBulkDownload), lines
}

// Bulk files hold the updates up to the end of the last folder, in folders of an interval that follow one another.
func TestBulkFilesHoldTheUpdates(t *testing.T) {
	t.Parallel()
	c, _ := serveScan(t, grown(t, Options{Seed: 37}, 400), ScanOptions{BulkEvery: 30 * time.Second, BulkLines: 3, MigrateAfter: 200})
	all := c.walkNetwork(1000)
	lines, keys := c.bulk(t, 20)
	more, _ := c.bulk(t, 1000)
	require.Equal(t, lines, more)
	require.Greater(t, len(lines), 50)
	require.Less(t, len(lines), len(all))
	require.Equal(t, all[:len(lines)], lines)
	require.True(t, strings.HasPrefix(keys[0], bulkBeginning+"~"))
	end := ""
	for _, key := range keys {
		folder, _, _ := strings.Cut(key, "/")
		start, to, _ := strings.Cut(folder, "~")
		if strings.HasSuffix(key, "/updates_0.zstd") {
			require.True(t, end == "" || end == start)
		}
		end = to
	}
	large := slices.IndexFunc(keys, func(key string) bool { return strings.HasSuffix(key, "/updates_1.zstd") })
	require.GreaterOrEqual(t, large, 0)
	start, _, _ := strings.Cut(keys[large], "~")
	c.post(pathBulkUpdates, `{"start_record_time":%q,"end_record_time":"2030-01-01T00:00:00Z","page_size":1}`, start).scanError(400, "smaller than a folder")
	c.post(pathBulkUpdates, `{"start_record_time":"0001-01-01T00:00:00Z","page_size":1}`).scanError(400, "end_record_time")
	c.do(http.MethodGet, pathBulkDownload+"x", "").scanError(404, "not found")
	first := c.post(pathBulkUpdates, `{"start_record_time":"0001-01-01T00:00:00Z","end_record_time":"2020-01-01T00:00:00Z","page_size":1000}`).object()
	require.NotContains(t, first, "next_page_token")
	require.NotEmpty(t, first["object_refs"], "the whole folder that the interval ends in")
}
