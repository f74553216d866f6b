// Package build encodes Daml packages that are described by hand, for servers of packages and for tests of what reads
// them. It shares no code with what reads them.
//
// Definitions are named as the ledger names them, "Module:Entity". What is encoded is what the schema of Daml-LF 2 asks
// for types; expressions are placeholders, so that no engine could run such a package.
package build

// Package is a package to be encoded.
type Package struct {
	Name, Version string
	Minor         string // of the language version: "1", which "" is, "2", "dev"
	Upgrades      string // id of the package that it upgrades; may be ""
	Modules       []Module

	// Imports are ids of packages. References to them are written as their place in this list, others with the id.
	Imports []string

	Style Style
}

// Style is how a package is written. All styles mean the same.
type Style struct {
	Inline       bool // types stand where they are used, not in a table
	Applications bool // each type argument is applied in a type of its own, as in 2.dev
	Unpacked     bool // repeated numbers stand each in a field of its own
	Unknown      bool // every message has fields that no schema knows
}

// Module is a module of a package.
type Module struct {
	Name       string
	Synonyms   []Synonym
	Types      []DataType
	Templates  []Template
	Interfaces []Interface
	Values     [][]byte // encoded definitions of values
}

// Synonym is another name for a type.
type Synonym struct {
	Name   string
	Params []string
	Type   Type
}

// DataType is a definition of a record, a variant, an enum or an interface.
type DataType struct {
	Name     string
	Params   []string
	Internal bool // has no values on the ledger

	form         int // field of the schema: 5 to 8
	fields       []Field
	constructors []string
}

// Field is a field of a record or a structure, or a constructor of a variant.
type Field struct {
	Name string
	Type Type
}

// Record returns the definition of a record.
func Record(name string, fields ...Field) DataType {
	return DataType{Name: name, form: 5, fields: fields}
}

// Variant returns the definition of a variant.
func Variant(name string, constructors ...Field) DataType {
	return DataType{Name: name, form: 6, fields: constructors}
}

// Enum returns the definition of an enum.
func Enum(name string, constructors ...string) DataType {
	return DataType{Name: name, form: 7, constructors: constructors}
}

// Template is a template. The record of its payload is a data type of its name.
type Template struct {
	Name       string
	Key        *Type // nil where it has none
	Choices    []Choice
	Implements []Ref
}

// Interface is an interface. Its data type is written with it.
type Interface struct {
	Name     string
	View     Type
	Choices  []Choice
	Requires []Ref
}

// Choice is a choice of a template or an interface.
type Choice struct {
	Name             string
	Consuming        bool
	Argument, Result Type
}

// Ref names a definition of a package, by "" of the package that it is in.
type Ref struct {
	Package string
	Name    string // "Module:Entity"
}
