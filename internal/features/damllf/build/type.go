package build

// Type is a type as a package writes it. The zero value is none.
type Type struct {
	form   int // field of the schema: 1 to 7
	name   string
	ref    Ref
	n      int64 // number of a type of the language, or a number
	args   []Type
	fields []Field
}

// Types of the language without arguments.
var (
	Unit      = Builtin(0)
	Bool      = Builtin(1)
	Int64     = Builtin(2)
	Date      = Builtin(3)
	Timestamp = Builtin(4)
	Party     = Builtin(6)
	Text      = Builtin(7)
)

// Numeric returns the type of numbers with the given number of digits after the point.
func Numeric(scale int) Type { return Builtin(5, Nat(int64(scale))) }

// ContractID returns the type of ids of contracts of a template or interface.
func ContractID(of Type) Type { return Builtin(8, of) }

// Optional returns the type of values that may be absent.
func Optional(of Type) Type { return Builtin(9, of) }

// List returns the type of lists.
func List(of Type) Type { return Builtin(10, of) }

// TextMap returns the type of maps from texts.
func TextMap(of Type) Type { return Builtin(19, of) }

// GenMap returns the type of maps from any values.
func GenMap(from, to Type) Type { return Builtin(11, from, to) }

// Builtin returns a type of the language by its number.
func Builtin(number int, args ...Type) Type { return Type{form: 3, n: int64(number), args: args} }

// Local returns a data type of the package itself.
func Local(name string, args ...Type) Type { return Con(Ref{Name: name}, args...) }

// Con returns a data type of any package.
func Con(ref Ref, args ...Type) Type { return Type{form: 2, ref: ref, args: args} }

// Syn returns a synonym.
func Syn(ref Ref, args ...Type) Type { return Type{form: 7, ref: ref, args: args} }

// Var returns a type parameter.
func Var(name string, args ...Type) Type { return Type{form: 1, name: name, args: args} }

// Nat returns a number that stands for the scale of a Numeric.
func Nat(n int64) Type { return Type{form: 6, n: n} }

// Forall returns a quantified type.
func Forall(param string, body Type) Type { return Type{form: 4, name: param, args: []Type{body}} }

// Struct returns a structure.
func Struct(fields ...Field) Type { return Type{form: 5, fields: fields} }
