package damllf

import (
	"archive/zip"
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
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
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			found, err := ReadDAR(content)
			if err != nil {
				t.Logf("%s: %v", path, err)
			}
			maps.Copy(payloads, found)
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

// A DAR file that is damaged, or is none, is refused.
func TestDARFilesThatAreDamaged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		says  string
	}{
		"none":     {map[string]string{"META-INF/MANIFEST.MF": ""}, "there is no package in it"},
		"damaged":  {map[string]string{"a.dalf": "\x1a\x01p\x22\x01h"}, "a.dalf: its bytes do not have the hash"},
		"cut off":  {map[string]string{"a.dalf": "\x1a\x09p"}, "a.dalf: byte 1"},
		"no zip":   {nil, "not a valid zip file"},
		"no proto": {map[string]string{"a.dalf": "\xff"}, "a.dalf: "},
	} {
		var content bytes.Buffer
		archive := zip.NewWriter(&content)
		for file, text := range c.files {
			w, err := archive.Create(file)
			require.NoError(t, err)
			_, err = w.Write([]byte(text))
			require.NoError(t, err)
		}
		if c.files != nil {
			require.NoError(t, archive.Close())
		}
		_, err := ReadDAR(content.Bytes())
		require.ErrorContains(t, err, c.says, name)
	}
}
