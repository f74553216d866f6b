package bench

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"syscall"
)

// shape describes a data set.
type shape struct {
	Elements int64            // updates, entries of a snapshot or records of the history
	Events   int64            // of the updates
	Bytes    int64            // of JSON, only of the elements
	Last     int64            // offset: the ledger's end
	Rows     map[string]int64 // the rows that the elements must leave, by table in schema indexer
}

// dataset holds elements as a server sends them, separated by commas: any run of them is one slice.
// Updates are in the order of their offsets.
type dataset struct {
	shape
	text    []byte  // mapped from its file
	ends    []int64 // where each element ends in text
	offsets []int64 // of each element

	names map[string]int32 // the element with an id; see index
}

const (
	textSuffix  = ".json"
	indexSuffix = ".index"
	shapeSuffix = ".shape"
)

// builder writes a data set.
type builder struct {
	shape
	text, index *bufio.Writer
	position    int64
	err         error
	count       counter
}

// counter adds the rows that an element must leave, and returns how many events it has.
type counter func(rows map[string]int64, raw []byte) (events int64, err error)

// build writes a data set, which fill adds element by element; count counts the rows that an element leaves. The
// shape's file is written last: if it exists, the data set is complete.
func build(name string, count counter, fill func(b *builder) error) error {
	text, err := os.Create(name + textSuffix)
	if err != nil {
		return err
	}
	defer text.Close()
	index, err := os.Create(name + indexSuffix)
	if err != nil {
		return err
	}
	defer index.Close()
	b := &builder{count: count, shape: shape{Rows: map[string]int64{}}, text: bufio.NewWriterSize(text, 1<<20),
		index: bufio.NewWriterSize(index, 1<<20)}
	if err := fill(b); err != nil {
		return err
	}
	for _, err := range []error{b.err, b.text.Flush(), b.index.Flush()} {
		if err != nil {
			return fmt.Errorf("write data set %s: %w", name, err)
		}
	}
	encoded, err := json.Marshal(b.shape)
	if err != nil {
		return err
	}
	return os.WriteFile(name+shapeSuffix, encoded, 0o600)
}

// add adds an element.
func (b *builder) add(offset int64, raw []byte) {
	write := func(w *bufio.Writer, p []byte) {
		if _, err := w.Write(p); err != nil {
			b.err = err
		}
	}
	if b.Elements > 0 {
		write(b.text, []byte{','})
		b.position++
	}
	write(b.text, raw)
	b.position += int64(len(raw))
	entry := binary.LittleEndian.AppendUint64(make([]byte, 0, 16), uint64(offset))
	write(b.index, binary.LittleEndian.AppendUint64(entry, uint64(b.position)))
	b.Elements++
	b.Bytes += int64(len(raw))
	events, err := b.count(b.Rows, raw)
	if err != nil {
		b.err = err
	}
	b.Events += events
}

// openDataset maps a data set into memory. The mapping lasts as long as the process.
func openDataset(name string) (*dataset, error) {
	encoded, err := os.ReadFile(name + shapeSuffix)
	if err != nil {
		return nil, err
	}
	d := &dataset{}
	if err := json.Unmarshal(encoded, &d.shape); err != nil {
		return nil, fmt.Errorf("read %s: %w", name+shapeSuffix, err)
	}
	index, err := os.ReadFile(name + indexSuffix)
	if err != nil {
		return nil, err
	}
	for ; len(index) >= 16; index = index[16:] {
		d.offsets = append(d.offsets, int64(binary.LittleEndian.Uint64(index)))
		d.ends = append(d.ends, int64(binary.LittleEndian.Uint64(index[8:])))
	}
	if int64(len(d.ends)) != d.Elements {
		return nil, fmt.Errorf("data set %s has %d elements instead of %d", name, len(d.ends), d.Elements)
	}
	if d.Elements == 0 {
		return d, nil
	}
	text, err := os.Open(name + textSuffix)
	if err != nil {
		return nil, err
	}
	defer text.Close()
	d.text, err = syscall.Mmap(int(text.Fd()), 0, int(d.ends[d.Elements-1]), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s into memory: %w", name+textSuffix, err)
	}
	return d, nil
}

// Element implements sandbox.Elements, as the methods below do.
func (d *dataset) Element(i int) []byte { return d.text[d.start(i):d.ends[i]] }

// start returns where element i begins in the text.
func (d *dataset) start(i int) int64 {
	if i == 0 {
		return 0
	}
	return d.ends[i-1] + 1
}

func (d *dataset) Len() int           { return len(d.ends) }
func (d *dataset) End() int64         { return d.Last }
func (d *dataset) Offset(i int) int64 { return d.offsets[i] }

func (d *dataset) After(offset int64) int {
	return sort.Search(len(d.offsets), func(i int) bool { return d.offsets[i] > offset })
}

// index notes which element has which id, the value of its first member of that key, for Named.
func (d *dataset) index(key string) {
	d.names = make(map[string]int32, d.Len())
	mark := []byte(`"` + key + `":"`)
	for i := range d.Len() {
		_, rest, _ := bytes.Cut(d.Element(i), mark)
		id, _, _ := bytes.Cut(rest, []byte{'"'})
		element := int32(i)
		if _, twice := d.names[string(id)]; twice {
			element = -1
		}
		d.names[string(id)] = element
	}
}

// Named needs an index.
func (d *dataset) Named(id string) (i int, ok bool) {
	element, ok := d.names[id]
	return int(element), ok
}
