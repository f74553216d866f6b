package export

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// Manifest describes the export of a range of offsets. It is written after the range's files, so that a range with a
// manifest is whole.
type Manifest struct {
	Format          int             `json:"format"`
	Participant     string          `json:"participant,omitempty"`
	Network         string          `json:"network,omitempty"`
	Scope           string          `json:"scope"`
	ScopeDefinition json.RawMessage `json:"scope_definition"`
	SchemaVersion   int64           `json:"schema_version"`
	// some updates were stored in an earlier scope, which showed more
	Narrowed bool `json:"narrowed,omitempty"`
	// the updates of a network, of which Participant is the party that operates it
	OfNetwork bool `json:"of_network,omitempty"`
	Records   bool `json:"records,omitempty"` // it is of records of the transaction history: offsets are their seqs

	From ledger.Offset `json:"from_exclusive"`
	To   ledger.Offset `json:"to_inclusive"`
	// CompleteFrom is the offset after which the range's events are complete. Below it are the rows of a snapshot.
	CompleteFrom ledger.Offset `json:"complete_from"`
	// StateFrom is the offset from which the database knew what was active; nil: it did not.
	StateFrom *ledger.Offset `json:"state_from,omitempty"`
	// PrunedTo is the offset up to which the database was pruned.
	PrunedTo ledger.Offset `json:"pruned_to,omitempty"`

	// Change is the number of the newest change (ledger.rewrites) that the files contain, and ChangedAt its time: a
	// restored database gives the same numbers to other changes.
	Change    int64              `json:"change"`
	ChangedAt time.Time          `json:"changed_at,omitzero"`
	Seals     []store.ExportSeal `json:"seals"`
	Files     []File             `json:"files"`

	// Packages belong to no range: they are all that the database had when the range was written.
	Packages []File `json:"packages"`
}

// format is the version of manifests that this program writes and reads.
const format = 5

// manifests is the folder of the manifests, and packages that of the packages, beside one folder for each relation.
const (
	manifests = "manifests"
	packages  = "packages"
)

// File is the file of a relation in a range, or of a package.
type File struct {
	Relation string `json:"relation"`
	Name     string `json:"name"` // below the export, with slashes
	Rows     int64  `json:"rows"`
	Bytes    int64  `json:"bytes"`
	SHA256   string `json:"sha256"`
	Of       string `json:"of,omitempty"`      // of a typed view: what it is made of
	Columns  string `json:"columns,omitempty"` // of a typed view, whose columns may change
}

// Name returns the manifest's own name below the export.
func (m *Manifest) Name() string { return manifestName(m.From, m.To) }

// Unit names what the range is of: offsets, or records by their seqs.
func (m *Manifest) Unit() string { return unit(m.Records) }

func unit(records bool) string {
	if records {
		return "record"
	}
	return "offset"
}

// Rows returns how many rows the files have.
func (m *Manifest) Rows() (n int64) {
	for _, file := range m.Files {
		n += file.Rows
	}
	return n
}

// named returns the files that the manifest names.
func (m *Manifest) named() []File { return slices.Concat(m.Files, m.Packages) }

// rangeName sorts as offsets do.
func rangeName(from, to ledger.Offset) string { return fmt.Sprintf("%019d-%019d", from, to) }

func manifestName(from, to ledger.Offset) string {
	return manifests + "/" + rangeName(from, to) + ".json"
}

// fileName is the name of a relation's file of a range. writing tells when it was written: no file takes the place of
// another one, because engines keep what they have read by its name.
func fileName(relation string, from, to ledger.Offset, writing string) string {
	return relation + "/" + rangeName(from, to) + "." + writing + ".parquet"
}

// readManifest decodes a manifest. If it is damaged or of another format, the error is a *ledger.Problem.
func readManifest(name string, text []byte) (m Manifest, err error) {
	err = json.Unmarshal(text, &m)
	if err == nil && m.Format > 0 && m.Format != format {
		return m, &ledger.Problem{
			What: fmt.Sprintf("the manifest %s has format %d, and this program knows only %d", name, m.Format, format),
			Do:   "use the release of the indexer that wrote it, or export into another place",
		}
	}
	if err == nil && (m.Format < 1 || m.Name() != name || m.From < 0 || m.To <= m.From || len(m.Files) == 0) {
		err = fmt.Errorf("it is not of this name, or has no files")
	}
	for _, file := range m.Files {
		of, ours := rangeOf(file.Name)
		if err == nil && (!ours || of != ledger.Range{From: m.From, To: m.To} || path.Dir(file.Name) != file.Relation ||
			strings.HasSuffix(file.Name, part)) {
			err = fmt.Errorf("it names %q, which is no file of its range", file.Name)
		}
	}
	for _, file := range m.Packages {
		if id, ours := strings.CutPrefix(file.Name, packages+"/"); err == nil && (!ours || id != file.SHA256) {
			err = fmt.Errorf("it names %q, which is no package", file.Name)
		}
	}
	if err != nil {
		return m, &ledger.Problem{
			What: fmt.Sprintf("the manifest %s is damaged", name), Err: err,
			Do: "bring it back from a copy, or, if none of the updates of its range were pruned, remove it: then they are " +
				"exported again",
		}
	}
	return m, nil
}

// lacks reports whether a relation is a typed view that has no file, or one with other columns, or of a view of the
// same name that was dropped.
func (m *Manifest) lacks(r store.ExportRelation) bool {
	file, err := m.file(r.Name)
	return r.Of != "" && (err != nil || file.Of != r.Of || file.Columns != columnsOf(r))
}

// columnsOf describes the columns of a typed view. It is empty for other relations, whose columns follow from the
// schema version.
func columnsOf(r store.ExportRelation) string {
	if r.Of == "" {
		return ""
	}
	var names []string
	for _, c := range r.Columns {
		names = append(names, fmt.Sprintf("%s %s(%d)", c.Name, c.Type, c.Scale))
	}
	return strings.Join(names, ", ")
}

// file returns the file of a relation. One that is missing is a *ledger.Problem.
func (m *Manifest) file(relation string) (File, error) {
	n := slices.IndexFunc(m.Files, func(file File) bool { return file.Relation == relation })
	if n < 0 {
		return File{}, &ledger.Problem{
			What: fmt.Sprintf("%s names no file of %s", m.Name(), relation),
			Do: "use the release of the indexer that wrote it; or, if nothing of its range was pruned, remove it and " +
				"export again",
		}
	}
	return m.Files[n], nil
}
