package damllf

import "fmt"

// Kind is what a type is.
type Kind int

// The kinds of types, with the form of their values in the ledger's JSON in parentheses.
const (
	Unit       Kind = iota + 1 // ({})
	Bool                       // (true, false)
	Int64                      // (text)
	Date                       // (text, such as 2025-06-18)
	Timestamp                  // (text, such as 2025-06-18T00:00:00.000001Z)
	Numeric                    // (text, with Scale digits after the point)
	Party                      // (text)
	Text                       // (text)
	ContractID                 // (text)
	Optional                   // of Args[0] (null, or the value; of an Optional a list)
	List                       // of Args[0] (list)
	TextMap                    // from texts to Args[0] (object)
	GenMap                     // from Args[0] to Args[1] (list of pairs)
	Record                     // (object; trailing fields that are null are left out)
	Variant                    // ({"tag": constructor, "value": ...})
	Enum                       // (text, the constructor)
	Recursive                  // the type Name again, within itself
)

var kindNames = [...]string{
	Unit: "Unit", Bool: "Bool", Int64: "Int64", Date: "Date", Timestamp: "Timestamp", Numeric: "Numeric", Party: "Party",
	Text:       "Text",
	ContractID: "ContractId", Optional: "Optional", List: "List", TextMap: "TextMap", GenMap: "GenMap", Record: "Record",
	Variant: "Variant", Enum: "Enum", Recursive: "Recursive",
}

// String returns the name of the kind in the language.
func (k Kind) String() string {
	if k <= 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return kindNames[k]
}

// Type is a resolved type: a tree of all its parts.
type Type struct {
	Kind  Kind
	Scale int // of a Numeric: digits after the point

	// Ref is the definition of a Record, Variant, Enum or Recursive, and the template or interface of a ContractID, if
	// known. It may be of any version of its package.
	Ref Ref

	Args         []*Type  // of Optional, List, TextMap, GenMap
	Fields       []Field  // of a Record, in their order; of a Variant its constructors
	Constructors []string // of an Enum, in their order
}

// Field is a field of a record, or a constructor of a variant.
type Field struct {
	Name string
	Type *Type
}

// String describes the type: "Numeric 10", "List of Text", "Record Splice.Amulet:Amulet".
func (t *Type) String() string {
	switch t.Kind {
	case Numeric:
		return fmt.Sprintf("Numeric %d", t.Scale)
	case Optional, List, TextMap:
		return t.Kind.String() + " of " + t.Args[0].String()
	case GenMap:
		return "GenMap from " + t.Args[0].String() + " to " + t.Args[1].String()
	case Record, Variant, Enum, Recursive:
		return t.Kind.String() + " " + t.Ref.Name.String()
	case ContractID:
		if t.Ref != (Ref{}) {
			return "ContractId of " + t.Ref.Name.String()
		}
	}
	return t.Kind.String()
}
