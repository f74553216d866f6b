package export

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"ledgerindexer/store"
)

// Each of the analysts' relations is a table of Apache Iceberg (format version 2), in the layout that is read without a
// catalog: the folder metadata has v1.metadata.json, v2.metadata.json and so on, each of which takes the place of the
// one before, and version-hint.text the number of the one in force. What they say follows from the manifests: a version
// has one snapshot, of all files.
const (
	metadata = "/metadata/"
	hint     = "version-hint.text"
	// digestOf is the property of a table that holds the digest of what its metadata were made of.
	digestOf = "indexer.digest"
	// The id of a list's elements is the list's plus elementIDs, which is more than any relation has columns.
	elementIDs = 10_000
)

// icebergTypes are the types of columns.
var icebergTypes = map[store.ExportType]string{
	store.ExportBigint: "long", store.ExportInteger: "int", store.ExportBoolean: "boolean", store.ExportText: "string",
	store.ExportJSON:  "string",
	store.ExportBytes: "binary", store.ExportTime: "timestamptz", store.ExportDate: "date",
}

// icebergSchema describes the columns of a relation. A column's id is its place: relations get columns only at their
// end.
func icebergSchema(columns []store.ExportColumn) map[string]any {
	fields := []any{}
	for n, column := range columns {
		var as any = icebergTypes[column.Type]
		switch column.Type {
		case store.ExportDecimal:
			as = fmt.Sprintf("decimal(%d, %d)", decimalDigits, column.Scale)
		case store.ExportTexts:
			as = map[string]any{"type": "list", "element-id": elementIDs + n + 1, "element": "string", "element-required": false}
		}
		fields = append(fields, map[string]any{"id": n + 1, "name": column.Name, "required": false, "type": as})
	}
	return map[string]any{"type": "struct", "schema-id": 0, "fields": fields}
}

// publish makes the tables show the files of some manifests, if they don't yet. The version in force stays until all
// new metadata of a table are written, and its metadata until the next publish.
func (e *Export) publish(ctx context.Context, manifests []Manifest) error {
	found, err := e.place.List(ctx)
	if err != nil {
		return fmt.Errorf("list %s: %w", e.place, err)
	}
	for _, relation := range e.relations {
		t := table{place: e.place, relation: relation, location: e.place.URL() + "/" + relation.Name}
		for i := range manifests {
			file, err := manifests[i].file(relation.Name)
			ofThis := file.Of == relation.Of || file.Of == "" // older manifests do not say it
			if err == nil && file.Rows > 0 && ofThis && strings.HasPrefix(columnsOf(relation), file.Columns) {
				t.files = append(t.files, tableFile{&manifests[i], file})
			}
		}
		if err := t.publish(ctx, found); err != nil {
			return fmt.Errorf("write the metadata of table %s in %s: %w", relation.Name, e.place, err)
		}
	}
	if err := e.retract(ctx, found); err != nil {
		return err
	}
	e.published = true
	return nil
}

// retract removes the metadata of tables whose views were dropped. Their files go with their ranges. What the export
// did not write stays: tables of others may lie beside its own, and whole exports below it.
func (e *Export) retract(ctx context.Context, found map[string]int64) error {
	for _, relation := range e.dropped(found) {
		t := table{place: e.place, relation: store.ExportRelation{Name: relation}}
		folder, last := relation+metadata, 0
		for name := range found {
			if n, kind := versionOf(name, folder); kind == metadataFile && !strings.HasSuffix(name, part) {
				last = max(last, n)
			}
		}
		newest := folder + fmt.Sprintf(metadataFile, last)
		if size, there := found[newest]; !there || size > maxManifest {
			continue
		}
		digest, err := t.digestIn(ctx, last)
		if err != nil {
			return fmt.Errorf("read %s in %s: %w", newest, e.place, err)
		}
		if digest == "" {
			continue
		}
		names := []string{folder + hint, folder + hint + part}
		for name := range found {
			if _, kind := versionOf(name, folder); kind != "" && name != newest {
				names = append(names, name)
			}
		}
		for _, name := range append(names, newest) { // the newest, which says whose table it is, goes last
			if _, there := found[name]; !there {
				continue
			}
			if err := e.place.Remove(ctx, name); err != nil {
				return fmt.Errorf("remove %s, of a view that was dropped, from %s: %w", name, e.place, err)
			}
		}
	}
	return nil
}

// dropped returns the folders of the place that have metadata as a table's, and are of no relation.
func (e *Export) dropped(found map[string]int64) []string {
	list := []string{}
	for name := range found {
		relation, file, isMetadata := strings.Cut(name, metadata)
		if isMetadata && !strings.Contains(relation+file, "/") && !slices.ContainsFunc(e.relations,
			func(r store.ExportRelation) bool { return r.Name == relation }) {
			list = append(list, relation)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// table is a relation as a table.
type table struct {
	place    Place
	relation store.ExportRelation
	location string
	files    []tableFile
}

type tableFile struct {
	of *Manifest
	File
}

// publish writes a version of the metadata, unless the last one was made of the same files.
func (t *table) publish(ctx context.Context, found map[string]int64) error {
	folder := t.relation.Name + metadata
	hinted, err := t.hinted(ctx)
	if err != nil {
		return err
	}
	last := hinted
	for name := range found {
		if n, kind := versionOf(name, folder); kind == metadataFile {
			last = max(last, n)
		}
	}
	digest, err := t.digest()
	if err != nil {
		return err
	}
	same, err := t.isOf(ctx, last, digest)
	if err != nil || same && hinted == last {
		return err
	}
	if !same {
		last++
		if err := t.writeVersion(ctx, last, digest); err != nil {
			return err
		}
	}
	if err := t.write(ctx, hint, []byte(strconv.Itoa(last))); err != nil {
		return err
	}
	for name := range found {
		// a reader of the version before may still need its files
		if n, kind := versionOf(name, folder); kind != "" && n < min(last-1, hinted) {
			if err := t.place.Remove(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// The files of a version.
const (
	metadataFile = "v%d.metadata.json"
	listFile     = "%d-list.avro"
	entriesFile  = "%d-entries.avro"
)

// versionOf returns the version of a file in a table's folder of metadata, and which of the version's files it is; an
// empty kind: none.
func versionOf(name, folder string) (version int, kind string) {
	base, inside := strings.CutPrefix(strings.TrimSuffix(name, part), folder)
	for _, kind := range []string{metadataFile, listFile, entriesFile} {
		if _, err := fmt.Sscanf(base, kind, &version); inside && err == nil && base == fmt.Sprintf(kind, version) {
			return version, kind
		}
	}
	return 0, ""
}

// hinted returns the version in force; 0: there is none.
func (t *table) hinted(ctx context.Context) (version int, err error) {
	text, err := t.read(ctx, hint)
	if err != nil {
		return 0, err
	}
	version, err = strconv.Atoi(string(text))
	if err != nil || version < 0 { // it was damaged, and is written again
		return 0, nil
	}
	return version, nil
}

// isOf reports whether a version exists and has the digest.
func (t *table) isOf(ctx context.Context, version int, digest string) (bool, error) {
	of, err := t.digestIn(ctx, version)
	return of == digest, err
}

// digestIn returns the digest that a version names; empty: it is not there, or no export wrote it.
func (t *table) digestIn(ctx context.Context, version int) (string, error) {
	text, err := t.read(ctx, fmt.Sprintf(metadataFile, version))
	var of struct {
		Properties map[string]string `json:"properties"`
	}
	if err != nil || json.Unmarshal(text, &of) != nil {
		return "", err
	}
	return of.Properties[digestOf], nil
}

// digest returns the digest of the metadata, without version and time.
func (t *table) digest() (string, error) {
	said := []any{t.location, icebergSchema(t.relation.Columns)}
	for _, file := range t.files {
		said = append(said, file.File)
	}
	text, err := json.Marshal(said)
	return fmt.Sprintf("%x", sha256.Sum256(text)), err
}

// writeVersion writes the files of a version, each after those that it names.
func (t *table) writeVersion(ctx context.Context, version int, digest string) error {
	schema := icebergSchema(t.relation.Columns)
	now := time.Now().UnixMilli()
	id := fmt.Sprintf("%x", sha256.Sum256([]byte(t.location)))
	said := map[string]any{
		"format-version": 2, "table-uuid": fmt.Sprintf("%s-%s-8%s-8%s-%s", id[:8], id[8:12], id[12:15], id[15:18], id[18:30]),
		"location":             t.location,
		"last-sequence-number": version, "last-updated-ms": now, "last-column-id": elementIDs + len(t.relation.Columns),
		"schemas": []any{schema}, "current-schema-id": 0,
		"partition-specs": []any{map[string]any{"spec-id": 0, "fields": []any{}}}, "default-spec-id": 0,
		"last-partition-id": 999,
		"sort-orders":       []any{map[string]any{"order-id": 0, "fields": []any{}}}, "default-sort-order-id": 0,
		"properties": map[string]string{digestOf: digest}, "snapshots": []any{},
	}
	if len(t.files) > 0 {
		rows := int64(0)
		for _, file := range t.files {
			rows += file.Rows
		}
		entries, err := t.entries(schema)
		if err != nil {
			return err
		}
		name := fmt.Sprintf(entriesFile, version)
		if err := t.write(ctx, name, entries); err != nil {
			return err
		}
		list := t.list(t.location+metadata+name, int64(len(entries)), int64(version), rows)
		name = fmt.Sprintf(listFile, version)
		if err := t.write(ctx, name, list); err != nil {
			return err
		}
		said["current-snapshot-id"], said["refs"] = version, map[string]any{"main": map[string]any{"snapshot-id": version,
			"type": "branch"}}
		said["snapshots"] = []any{map[string]any{
			"snapshot-id": version, "sequence-number": version, "timestamp-ms": now, "manifest-list": t.location + metadata +
				name, "schema-id": 0,
			"summary": map[string]string{"operation": "append", "total-records": fmt.Sprint(rows),
				"total-data-files": fmt.Sprint(len(t.files))},
		}}
		said["snapshot-log"] = []any{map[string]any{"snapshot-id": version, "timestamp-ms": now}}
	}
	text, err := json.MarshalIndent(said, "", "  ")
	if err != nil {
		return err
	}
	return t.write(ctx, fmt.Sprintf(metadataFile, version), append(text, '\n'))
}

// entriesSchema and listSchema are the schemas of Iceberg's two kinds of Avro files. Readers find fields by their ids.
const (
	entriesSchema = `{"type": "record", "name": "manifest_entry", "fields": [
{"name": "status", "type": "int", "field-id": 0},
{"name": "snapshot_id", "type": ["null", "long"], "default": null, "field-id": 1},
{"name": "sequence_number", "type": ["null", "long"], "default": null, "field-id": 3},
{"name": "file_sequence_number", "type": ["null", "long"], "default": null, "field-id": 4},
{"name": "data_file", "field-id": 2, "type": {"type": "record", "name": "r2", "fields": [
 {"name": "content", "type": "int", "field-id": 134},
 {"name": "file_path", "type": "string", "field-id": 100},
 {"name": "file_format", "type": "string", "field-id": 101},
 {"name": "partition", "type": {"type": "record", "name": "r102", "fields": []}, "field-id": 102},
 {"name": "record_count", "type": "long", "field-id": 103},
 {"name": "file_size_in_bytes", "type": "long", "field-id": 104},
 {"name": "lower_bounds", "field-id": 125, "default": null, "type": ["null", {"type": "array", "logicalType": "map",
  "items": {"type": "record", "name": "k126_v127", "fields": [{"name": "key", "type": "int", "field-id": 126},
   {"name": "value", "type": "bytes", "field-id": 127}]}}]},
 {"name": "upper_bounds", "field-id": 128, "default": null, "type": ["null", {"type": "array", "logicalType": "map",
  "items": {"type": "record", "name": "k129_v130", "fields": [{"name": "key", "type": "int", "field-id": 129},
   {"name": "value", "type": "bytes", "field-id": 130}]}}]}
]}}]}`
	listSchema = `{"type": "record", "name": "manifest_file", "fields": [
{"name": "manifest_path", "type": "string", "field-id": 500},
{"name": "manifest_length", "type": "long", "field-id": 501},
{"name": "partition_spec_id", "type": "int", "field-id": 502},
{"name": "content", "type": "int", "field-id": 517},
{"name": "sequence_number", "type": "long", "field-id": 515},
{"name": "min_sequence_number", "type": "long", "field-id": 516},
{"name": "added_snapshot_id", "type": "long", "field-id": 503},
{"name": "added_files_count", "type": "int", "field-id": 504},
{"name": "existing_files_count", "type": "int", "field-id": 505},
{"name": "deleted_files_count", "type": "int", "field-id": 506},
{"name": "added_rows_count", "type": "long", "field-id": 512},
{"name": "existing_rows_count", "type": "long", "field-id": 513},
{"name": "deleted_rows_count", "type": "long", "field-id": 514}
]}`
)

// entries returns the Avro file that lists the table's files. Their bounds are those of the ranges.
func (t *table) entries(schema map[string]any) ([]byte, error) {
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	place := int64(0)
	for n, column := range t.relation.Columns {
		if column.Name == t.relation.Place {
			place = int64(n + 1)
		}
	}
	bounds := func(to []byte, at int64) []byte { // the second branch; a block of one item; the end of the blocks
		to = avroLongs(to, 1, 1, place)
		to = avroBytes(to, binary.LittleEndian.AppendUint64(nil, uint64(at)))
		return avroLongs(to, 0)
	}
	var records []byte
	for _, file := range t.files {
		records = avroLongs(records, 1, 0, 0, 0, 0) // added, by the snapshot that names this file; content: data
		records = avroBytes(records, t.location+"/"+strings.TrimPrefix(file.Name, t.relation.Name+"/"))
		records = avroBytes(records, "PARQUET")
		records = avroLongs(records, file.Rows, file.Bytes)
		records = bounds(records, int64(file.of.From)+1)
		records = bounds(records, int64(file.of.To))
	}
	return avroFile([][2]string{
		{"avro.schema", entriesSchema}, {"schema", string(text)}, {"schema-id", "0"}, {"partition-spec", "[]"},
		{"partition-spec-id", "0"},
		{"format-version", "2"}, {"content", "data"},
	}, len(t.files), records), nil
}

// list returns the Avro file that names the one of entries.
func (t *table) list(entries string, length, version, rows int64) []byte {
	record := avroBytes(nil, entries)
	record = avroLongs(record, length, 0, 0, version, version, version, int64(len(t.files)), 0, 0, rows, 0, 0)
	return avroFile([][2]string{{"avro.schema", listSchema}, {"format-version", "2"}}, 1, record)
}

// read reads a file of the metadata; nil: there is none.
func (t *table) read(ctx context.Context, name string) ([]byte, error) {
	c := catalog{place: t.place}
	text, err := c.read(ctx, t.relation.Name+metadata+name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

func (t *table) write(ctx context.Context, name string, content []byte) error {
	return t.place.Write(ctx, t.relation.Name+metadata+name, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// An Avro file begins with a mark, a map of metadata and the 16 bytes that end each block. A block has the number of
// its records, their length in bytes, and the records, whose fields follow one another. Whole numbers have a variable
// length; a text follows its length.

// avroFile returns an Avro file of some records. They are not compressed, which the format takes for granted where
// nothing is said, and PyIceberg does not.
func avroFile(known [][2]string, count int, records []byte) []byte {
	known = append(known, [2]string{"avro.codec", "null"})
	file := avroLongs([]byte("Obj\x01"), int64(len(known)))
	for _, entry := range known {
		file = avroBytes(avroBytes(file, entry[0]), entry[1])
	}
	file = avroLongs(file, 0)
	ends := sha256.Sum256(records)
	file = append(file, ends[:16]...)
	file = avroLongs(file, int64(count), int64(len(records)))
	return append(append(file, records...), ends[:16]...)
}

// avroLongs appends whole numbers of any size. The index of a union's branch is one too.
func avroLongs(to []byte, numbers ...int64) []byte {
	for _, n := range numbers {
		to = binary.AppendVarint(to, n)
	}
	return to
}

// avroBytes appends a text, or bytes.
func avroBytes[T string | []byte](to []byte, text T) []byte {
	return append(avroLongs(to, int64(len(text))), text...)
}
