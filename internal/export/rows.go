package export

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/parquet-go/parquet-go"

	"ledgerindexer/ledger"
)

const (
	// valuesAtOnce is how many values of a column are decoded at a time.
	valuesAtOnce = 512
	// rememberedBytes limits the texts, or lists of texts, of a column that are kept because most repeat. Each counts wordBytes more than it has.
	rememberedBytes, wordBytes = 1 << 20, 64
)

// offset is the column that rows are sorted by.
const offset = "ledger_offset"

// rows reads the rows of a relation's file, one after the other.
type rows struct {
	file    File
	groups  []parquet.RowGroup
	left    int64 // rows of the current group
	columns []*column
	named   map[string]*column // the same
	place   *column            // the offset

	has bool // there is a current row
	at  ledger.Offset
}

// openRows opens the file of a relation at the first row after an offset. Only the named columns can be read.
func openRows(m *Manifest, content Content, file File, names []string, after ledger.Offset) (r *rows, err error) {
	parsed, err := parquet.OpenFile(content, file.Bytes, parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true), parquet.ReadBufferSize(64<<10))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file.Name, err)
	}
	r = &rows{file: file, groups: parsed.RowGroups(), named: map[string]*column{}}
	for _, name := range append([]string{offset}, names...) {
		leaf, found := parsed.Schema().Lookup(name)
		list, isList := parsed.Schema().Lookup(name, "list", "element")
		if isList {
			leaf = list
		}
		if !found && !isList {
			return nil, &ledger.Problem{
				What: fmt.Sprintf("%s has no column %s: %s is of schema version %d", file.Name, name, m.Name(), m.SchemaVersion),
				Do:   "import it with the release of the indexer that wrote it, and migrate the database then",
			}
		}
		c := &column{name: name, index: leaf.ColumnIndex, isList: isList}
		r.columns, r.named[name] = append(r.columns, c), c
	}
	r.place = r.columns[0]
	if err := r.skip(after); err != nil {
		return nil, fmt.Errorf("read %s: %w", file.Name, err)
	}
	return r, r.next()
}

// skip goes to the first row that lies after an offset.
func (r *rows) skip(after ledger.Offset) error {
	for ; len(r.groups) > 0; r.groups = r.groups[1:] {
		group := r.groups[0]
		if err := r.place.begin(group, 0); err != nil {
			return err
		}
		n := int64(0)
		for ; n < group.NumRows(); n++ {
			if err := r.place.next(); err != nil {
				return err
			}
			if r.place.offset() > after {
				return r.enter(n)
			}
		}
	}
	return nil
}

// enter begins with the next group, at one of its rows.
func (r *rows) enter(row int64) error {
	for _, c := range r.columns {
		if err := c.begin(r.groups[0], row); err != nil {
			return err
		}
	}
	r.left = r.groups[0].NumRows() - row
	r.groups = r.groups[1:]
	return nil
}

// next goes to the next row.
func (r *rows) next() error {
	for r.left == 0 {
		if len(r.groups) == 0 {
			r.has = false
			return nil
		}
		if err := r.enter(0); err != nil {
			return fmt.Errorf("read %s: %w", r.file.Name, err)
		}
	}
	for _, c := range r.columns {
		if err := c.next(); err != nil {
			return fmt.Errorf("read column %s of %s: %w", c.name, r.file.Name, err)
		}
	}
	r.left--
	r.has, r.at = true, r.place.offset()
	return nil
}

func (r *rows) close() {
	for _, c := range r.columns {
		c.close()
	}
}

// column reads the values of a column, one row after the other.
type column struct {
	name   string
	index  int
	isList bool
	pages  parquet.Pages
	page   parquet.Page
	values parquet.ValueReader
	read   []parquet.Value // decoded values after the current row
	buffer []parquet.Value

	value parquet.Value // of the current row, valid until next
	list  []string      // of the current row of a list; nil: NULL

	words      map[string]*string
	lists      map[string][]string
	remembered int // bytes
	key        []byte
}

// begin begins with a group, at one of its rows.
func (c *column) begin(group parquet.RowGroup, row int64) error {
	c.close()
	c.pages = group.ColumnChunks()[c.index].Pages()
	if row == 0 {
		return nil
	}
	return c.pages.SeekToRow(row)
}

func (c *column) close() {
	if c.pages != nil {
		parquet.Release(c.page)
		c.pages.Close()
	}
	c.pages, c.page, c.values, c.read = nil, nil, nil, nil
}

// fill decodes some values, if none are left. The error is io.EOF at the end of the group.
func (c *column) fill() error {
	if c.buffer == nil {
		c.buffer = make([]parquet.Value, valuesAtOnce)
	}
	for len(c.read) == 0 {
		if c.values == nil {
			page, err := c.pages.ReadPage()
			if err != nil {
				return err
			}
			c.page, c.values = page, page.Values()
		}
		n, err := c.values.ReadValues(c.buffer)
		c.read = c.buffer[:n]
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n == 0 {
			parquet.Release(c.page)
			c.page, c.values = nil, nil
		}
	}
	return nil
}

// next goes to the next row.
func (c *column) next() error {
	if err := c.fill(); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	if c.isList {
		return c.nextList()
	}
	c.value, c.read = c.read[0], c.read[1:]
	return nil
}

// nextList reads the values of a list: at level 0 it is NULL, at level 1 empty, and at level 3 there is an element.
func (c *column) nextList() error {
	c.key = c.key[:0]
	first := c.read[0]
	for {
		value := c.read[0]
		c.read = c.read[1:]
		if value.DefinitionLevel() == 2 {
			return errors.New("an element of a list is NULL")
		}
		if value.DefinitionLevel() == 3 {
			c.key = binary.AppendUvarint(c.key, uint64(len(value.ByteArray())))
			c.key = append(c.key, value.ByteArray()...)
		}
		if err := c.fill(); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(c.read) == 0 || c.read[0].RepetitionLevel() == 0 {
			break
		}
	}
	if first.DefinitionLevel() == 0 {
		c.list = nil
		return nil
	}
	known := false
	if c.list, known = c.lists[string(c.key)]; known {
		return nil
	}
	c.list = []string{}
	for left := c.key; len(left) > 0; {
		size, prefix := binary.Uvarint(left)
		left = left[prefix:]
		c.list = append(c.list, string(left[:size]))
		left = left[size:]
	}
	c.remember(len(c.key))
	c.lists[string(c.key)] = c.list
	return nil
}

// remember counts bytes that are about to be kept. If they are too many, it forgets everything that was kept.
func (c *column) remember(bytes int) {
	c.remembered += bytes + wordBytes
	if c.words == nil || c.remembered > rememberedBytes {
		c.words, c.lists, c.remembered = map[string]*string{}, map[string][]string{}, bytes+wordBytes
	}
}

// offset returns the value of a column that is never NULL.
func (c *column) offset() ledger.Offset { return ledger.Offset(c.value.Int64()) }

// The values of the current row, by their columns. The type says what NULL becomes.

func (r *rows) text(name string) string {
	if word := r.word(name); word != nil {
		return *word
	}
	return ""
}

// word is for columns whose texts mostly repeat, and unique for the others.
func (r *rows) word(name string) *string {
	c := r.named[name]
	if c.value.IsNull() {
		return nil
	}
	if word, ok := c.words[string(c.value.ByteArray())]; ok {
		return word
	}
	word := string(c.value.ByteArray())
	c.remember(len(word))
	c.words[word] = &word
	return &word
}

func (r *rows) unique(name string) string { return string(r.named[name].value.ByteArray()) }

func (r *rows) optional(name string) *string {
	if r.named[name].value.IsNull() {
		return nil
	}
	text := r.unique(name)
	return &text
}

func (r *rows) list(name string) []string { return r.named[name].list }

func (r *rows) bytes(name string) []byte {
	value := r.named[name].value
	if value.IsNull() {
		return nil
	}
	return append([]byte{}, value.ByteArray()...)
}

func (r *rows) json(name string) ledger.JSON { return ledger.JSON(r.bytes(name)) }

func (r *rows) bigint(name string) int64 { return r.named[name].value.Int64() }

func (r *rows) optionalBigint(name string) *int64 {
	if r.named[name].value.IsNull() {
		return nil
	}
	n := r.bigint(name)
	return &n
}

func (r *rows) integer(name string) int32 { return r.named[name].value.Int32() }

func (r *rows) optionalInteger(name string) *int32 {
	if r.named[name].value.IsNull() {
		return nil
	}
	n := r.integer(name)
	return &n
}

// yes and no are the values that boolean returns pointers to.
var yes, no = new(true), new(false)

func (r *rows) boolean(name string) *bool {
	switch value := r.named[name].value; {
	case value.IsNull():
		return nil
	case value.Boolean():
		return yes
	}
	return no
}

func (r *rows) time(name string) ledger.Time {
	value := r.named[name].value
	if value.IsNull() {
		return ledger.Time{}
	}
	return ledger.Time{Time: time.UnixMicro(value.Int64()).UTC(), Valid: true}
}
