package ledger

// Package is a compiled package of templates and interfaces, and what it says of their types. The content never
// changes: its SHA-256, in hexadecimal, is the id.
type Package struct {
	ID       string
	Content  []byte
	Name     string // shared by all versions of the package
	Version  string // numbers with dots between them
	Language string // version of Daml-LF, such as "2.1"; empty: the content can't be read
	Upgrades string // id of the version that it was made from; may be empty

	// Needs are the packages that it refers to and that were not there when its types were computed, sorted. Failure says
	// why types are not known; empty: they are, except for those of Needs.
	Needs   []string
	Failure string

	Definitions []Definition // templates and interfaces, sorted by name
}

// Definition is a template or an interface.
type Definition struct {
	Module, Entity string
	Interface      bool
	Key            bool     // contracts of the template have keys
	Interfaces     []string // ids of those that the template implements, or the interface requires
	Choices        []Choice // sorted by name
	Fields         []Field
}

// Choice is a choice that a template or an interface has itself. The types are for people; empty: they are not known.
type Choice struct {
	Name             string
	Consuming        bool
	Argument, Result string
}

// What a field is of.
const (
	PartPayload  = "payload"
	PartKey      = "key"
	PartView     = "view"
	PartArgument = "argument"
	PartResult   = "result"
)

// Field is a field of a value, or of what is within it.
type Field struct {
	Part   string // one of the Part constants
	Choice string // of an argument or a result; else empty
	// Path has the names of fields with dots between them. [] goes into the elements of a list or the values of a map,
	// [key] into its keys; the value of a variant goes by its constructor. It is empty for a value that is no record.
	Path string
	Type string // for people
}
