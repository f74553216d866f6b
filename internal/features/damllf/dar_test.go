package damllf

import (
	"archive/zip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPackagesOfArchives reads the packages of all DAR files of the folder TEST_DARS, and resolves the types of
// everything in them.
func TestPackagesOfArchives(t *testing.T) {
	dir := os.Getenv("TEST_DARS")
	if dir == "" {
		t.Skip("TEST_DARS names no folder with DAR files: TestRecordedPackages reads packages of a participant")
	}
	payloads := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".dar" {
			readDAR(t, path, payloads)
		}
		return err
	})
	require.NoError(t, err)
	require.NotEmpty(t, payloads, "packages in DAR files in %s", dir)

	var all []*Package
	old := 0
	for id, payload := range payloads {
		p, err := Decode(id, payload)
		if errors.Is(err, ErrLanguage1) {
			old++
			continue
		}
		require.NoError(t, err)
		all = append(all, p)
	}
	r, n := resolver(all...), map[string]int{}
	resolve := func(what string, e *TypeExpr) *Type {
		n[what]++
		typ, err := r.Resolve(e)
		require.NoError(t, err, "%s", what)
		return typ
	}
	for _, p := range all {
		for name, d := range p.DataTypes {
			n[d.Kind.String()]++
			n[d.Kind.String()+" parts"] += len(d.Fields) + len(d.Constructors)
			if len(d.Params) > 0 {
				n["with parameters"]++
				continue
			}
			require.Equal(t, d.Kind, resolve("data types", named(p.ID, name.String())).Kind)
		}
		for name, template := range p.Templates {
			require.Equal(t, Record, resolve("payloads", template.Payload).Kind, "%s", name)
			require.Contains(t, template.Choices, "Archive")
			n["implements"] += len(template.Implements)
			if template.Key != nil {
				resolve("keys", template.Key)
			}
			for _, c := range template.Choices {
				require.Equal(t, Record, resolve("arguments", c.Argument).Kind)
				resolve("results", c.Result)
			}
		}
		for _, i := range p.Interfaces {
			require.Equal(t, Record, resolve("views", i.View).Kind)
			for _, c := range i.Choices {
				resolve("arguments of interfaces", c.Argument)
				resolve("results of interfaces", c.Result)
			}
		}
	}
	t.Logf("%d packages, %d in Daml-LF 1: %v", len(all), old, n)
}

// readDAR adds the packages of a DAR file, a zip of Archive messages, by their ids. Those that aren't well formed are
// left out.
func readDAR(t *testing.T, path string, payloads map[string][]byte) {
	t.Helper()
	archive, err := zip.OpenReader(path)
	if err != nil {
		t.Logf("%s: %v", path, err)
		return
	}
	defer func() { require.NoError(t, archive.Close()) }()
	for _, file := range archive.File {
		if !strings.HasSuffix(file.Name, ".dalf") {
			continue
		}
		content, err := file.Open()
		require.NoError(t, err)
		message, err := io.ReadAll(content)
		require.NoError(t, err)
		content.Close()
		var d decoder
		payload, hash := d.last(message, 3), d.last(message, 4)
		if d.err != nil || len(hash) == 0 {
			t.Logf("%s: %s: %v", path, file.Name, d.err)
			continue
		}
		payloads[string(hash)] = payload
	}
}
