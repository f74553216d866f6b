package damllf

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Limits on a package that is decoded, so that a damaged or hostile one does not exhaust the memory.
const (
	// maxKept limits the memory of a package, in bytes, approximately: many times that of the largest known one.
	maxKept = 64 << 20
	// maxEntries limits the entries of a table: hundreds of times those of the largest known one.
	maxEntries = 1 << 22
	// maxNesting limits the depth of nested types.
	maxNesting = 100
)

var (
	// ErrHash means that the bytes are not those of the package: they are damaged, or of another one.
	ErrHash = errors.New("the bytes do not have the hash that is the package's id")
	// ErrLanguage1 means that the package is in Daml-LF 1, another format. No type in Daml-LF 2 refers to one.
	ErrLanguage1 = errors.New("the package is in Daml-LF 1, which is not read")
)

// Decode reads a package from its payload, the answer of GET /v2/packages/{id}. The error is ErrHash if the payload
// does not have the id as its hash, ErrLanguage1 if it is in Daml-LF 1, and else says what is wrong with it, and where.
// The payload is not kept.
func Decode(id string, payload []byte) (*Package, error) {
	if sum := sha256.Sum256(payload); hex.EncodeToString(sum[:]) != id {
		return nil, fmt.Errorf("decode package %.64q: %w, but %x", id, ErrHash, sum)
	}
	return decode(id, payload)
}

// decode reads a payload without checking its hash.
func decode(id string, payload []byte) (*Package, error) {
	d := decoder{knownTexts: map[int]string{}, knownNames: map[int]string{}, knownTypes: map[int]*TypeExpr{}, p: &Package{
		ID: id, DataTypes: map[Name]*DataType{}, Templates: map[Name]*Template{}, Interfaces: map[Name]*Interface{},
		synonyms: map[Name]*synonym{},
	}}
	d.payload(payload)
	if d.err != nil {
		return nil, fmt.Errorf("decode package %s: %w", id, d.err)
	}
	return d.p, nil
}

// decoder reads a package. After an error its methods do nothing, and their results are meaningless.
type decoder struct {
	p    *Package
	body []byte

	texts, names, types, imports table

	// The entries of the tables that were read, by index.
	knownTexts, knownNames map[int]string
	knownTypes             map[int]*TypeExpr

	kept int    // memory of the package in bytes, approximately
	path []step // to the part that is being read
	err  error
}

// table has the positions of its entries in a message. An entry is read when something refers to it: most belong to
// expressions, and all of a package's may not fit into memory.
type table struct {
	message []byte
	at      []uint32
}

func (d *decoder) addEntry(t *table, message []byte, f field) {
	if t.message = message; len(t.at) == maxEntries {
		d.fail("field %d has more than %d entries", f.num, maxEntries)
	}
	if d.is(f, protowire.BytesType) {
		t.at = append(t.at, uint32(f.at))
	}
}

// step is a part of a package that is being read: the nth of its kind, from 0, or the only one if n is negative.
type step struct {
	kind string
	n    int
	name string // once it is known
}

func (d *decoder) enter(kind string, n int) { d.path = append(d.path, step{kind: kind, n: n}) }
func (d *decoder) named(name string)        { d.path[len(d.path)-1].name = name }
func (d *decoder) leave()                   { d.path = d.path[:len(d.path)-1] }

// fail records what is wrong with the part that is being read. Only the first error is kept.
func (d *decoder) fail(format string, args ...any) {
	if d.err != nil {
		return
	}
	var where strings.Builder
	for _, s := range d.path {
		where.WriteString(s.kind)
		if s.name != "" {
			where.WriteString(" " + s.name)
		} else if s.n >= 0 {
			fmt.Fprintf(&where, " %d", s.n)
		}
		where.WriteString(": ")
	}
	d.err = fmt.Errorf("%s%w", &where, fmt.Errorf(format, args...))
}

func (d *decoder) keep(bytes int) {
	if d.kept += bytes; d.kept > maxKept {
		d.fail("the package's types and names take more than %d MiB of memory", maxKept>>20)
	}
}

func (d *decoder) payload(payload []byte) {
	if uint64(len(payload)) > math.MaxUint32 { // positions in it are of 32 bits
		d.fail("it has %d bytes", len(payload))
	}
	minor := string(d.last(payload, 3))
	switch d.oneOf(payload, 2, 4).num {
	case 2:
		d.fail("%w", ErrLanguage1)
	case 4:
		d.body = d.last(payload, 4)
	default:
		d.fail("the payload holds no package")
	}
	if !isWord(minor, "-", 20) {
		d.fail("%.20q is no version of Daml-LF 2", minor)
	}
	d.p.Language = "2." + minor
	d.tables()
	d.metadata(d.last(d.body, 4))
	n := 0
	for module := range d.each(d.body, 1) {
		d.enter("module", n)
		d.module(module)
		d.leave()
		n++
	}
}

func (d *decoder) tables() {
	for f := range d.fields(d.body) {
		switch f.num {
		case 2:
			d.addEntry(&d.texts, d.body, f)
		case 3:
			d.addEntry(&d.names, d.body, f)
		case 5:
			d.addEntry(&d.types, d.body, f)
		}
	}
	imports := d.last(d.body, 9)
	for f := range d.fields(imports) {
		if f.num == 1 {
			d.addEntry(&d.imports, imports, f)
		}
	}
}

func (d *decoder) metadata(message []byte) {
	d.enter("metadata", -1)
	if message == nil {
		d.fail("there is none")
	}
	d.p.Name = d.text(d.number(message, 1))
	if !isWord(d.p.Name, "-_", 255) {
		d.fail("%.300q is no name of a package", d.p.Name)
	}
	d.p.Version = d.text(d.number(message, 2))
	if !isVersion(d.p.Version) {
		d.fail("%.300q is no version of a package", d.p.Version)
	}
	if upgraded := d.last(message, 3); upgraded != nil {
		d.p.Upgrades = d.packageID(d.text(d.number(upgraded, 1)))
	}
	d.leave()
}
