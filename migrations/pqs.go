package migrations

import (
	"embed"
	"io/fs"
	"regexp"
	"strings"
)

//go:embed pqs/*.sql
var pqsFiles embed.FS

// The schemas in names of what is in them.
var schemasOfPQS = regexp.MustCompile(`\b(?:pqs|ledger)\.[a-z_]`)

// PQS returns the statements that make the names of the Participant Query Store in a schema of this name, over what
// analysts read in a schema of the name views. They replace what they made before. The schema has to exist, and the
// tables to be in the search path.
func PQS(views, schema string) (string, error) {
	entries, err := fs.ReadDir(pqsFiles, "pqs")
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, entry := range entries {
		file, err := pqsFiles.ReadFile("pqs/" + entry.Name())
		if err != nil {
			return "", err
		}
		text.Write(file)
	}
	// In one pass: either name may be what the other one is in the files.
	return schemasOfPQS.ReplaceAllStringFunc(text.String(), func(name string) string {
		if strings.Contains(name, "pqs") {
			return strings.Replace(name, "pqs", schema, 1)
		}
		return strings.Replace(name, "ledger", views, 1)
	}), nil
}
