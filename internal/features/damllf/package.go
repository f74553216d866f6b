package damllf

// Package has the types of a compiled package. It shares no memory with the bytes it was read from. Don't change it.
type Package struct {
	ID       string
	Language string // version of Daml-LF, such as "2.1" or "2.dev"
	Name     string // shared by all versions of the package
	Version  string // numbers with dots between them. Two packages can have the same name and version
	Upgrades string // id of the version that it upgrades; "" if it names none

	// DataTypes are those whose values can be on the ledger.
	DataTypes  map[Name]*DataType
	Templates  map[Name]*Template
	Interfaces map[Name]*Interface

	synonyms map[Name]*synonym
}

// Name names a definition within a package. Both parts may have dots.
type Name struct {
	Module, Entity string
}

// String returns the name as the ledger writes it: Module:Entity.
func (n Name) String() string { return n.Module + ":" + n.Entity }

// Ref names a definition of a package.
type Ref struct {
	Package string // its id
	Name
}

// String returns the reference as the ledger writes it: package:Module:Entity.
func (r Ref) String() string { return r.Package + ":" + r.Name.String() }

// DataType is the definition of a record, a variant or an enum.
type DataType struct {
	Kind         Kind        // Record, Variant or Enum
	Params       []string    // type parameters, which types of fields refer to
	Fields       []FieldExpr // of a record, in their order; of a variant its constructors, each with the type of its value
	Constructors []string    // of an enum, in their order
}

// FieldExpr is a field of a record, or a constructor of a variant, as it is defined.
type FieldExpr struct {
	Name string
	Type *TypeExpr
}

// Template has the types of a template.
type Template struct {
	Payload    *TypeExpr
	Key        *TypeExpr // nil if it has none
	Choices    map[string]Choice
	Implements []Ref // interfaces
}

// Interface has the types of an interface.
type Interface struct {
	View     *TypeExpr
	Choices  map[string]Choice
	Requires []Ref // other interfaces; their choices are exercised under their own ids
}

// Choice is a choice of a template or interface, not one of the interfaces it implements or requires.
type Choice struct {
	Consuming        bool
	Argument, Result *TypeExpr
}

// TypeExpr is a type as written in a package, with unresolved references. Uses of a type in a package may share one
// value.
type TypeExpr struct {
	Form    Form
	Var     string  // of a Variable its name; of Other a description
	Ref     Ref     // of a Constructor or a Synonym
	Builtin Builtin // of a Primitive
	Nat     int     // of a Number: 0 to 37
	Args    []*TypeExpr
}

// Form is the form of a TypeExpr.
type Form int

// The forms of type expressions.
const (
	Variable    Form = iota + 1 // a type parameter
	Constructor                 // a data type, applied to arguments
	Primitive                   // a type of the language, applied to arguments
	Number                      // the scale of a Numeric
	Synonym                     // another name for a type, applied to arguments
	Other                       // no type of stored values: a quantified type, a structure
)

// Builtin is the number of a type of the language.
type Builtin int

// synonym is another name for a type.
type synonym struct {
	params []string
	body   *TypeExpr
}
