package typed

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/features/damllf"
	"ledgerindexer/internal/features/damllf/build"
	"ledgerindexer/ledger"
)

func member(name string, t build.Type) build.Field { return build.Field{Name: name, Type: t} }

// shelf has packages by id.
type shelf map[string][]byte

func (s shelf) put(p build.Package) (id string) {
	id, content := p.Encode()
	s[id] = content
	return id
}

func (s shelf) packages() *Packages {
	return &Packages{Content: func(id string) ([]byte, error) {
		if content, ok := s[id]; ok {
			return content, nil
		}
		return nil, fmt.Errorf("package %s: %w", id, ledger.ErrNotFound)
	}}
}

// example has a template and an interface, whose types are of another package.
func example(other string) build.Package {
	far := build.Con(build.Ref{Package: other, Name: "B:Pair"}, build.Text, build.Int64)
	key := build.Party
	return build.Package{Name: "p", Version: "1.2.3", Upgrades: strings.Repeat("1", 64), Modules: []build.Module{{
		Name: "M",
		Types: []build.DataType{
			build.Record("T", member("owner", build.Party), member("pair", build.Optional(far)), member("list", build.List(build.Local("M:V"))),
				member("map", build.GenMap(far, build.Local("M:Tree")))),
			build.Variant("V", member("A", build.Unit), member("B", build.Local("M:V.B"))), build.Record("V.B", member("x", build.Bool)),
			build.Record("Tree", member("kids", build.List(build.Local("M:Tree")))),
			build.Record("Go", member("n", build.Numeric(4))), build.Record("Archive"), build.Record("View", member("v", build.Date)),
		},
		Templates: []build.Template{{Name: "T", Key: &key, Implements: []build.Ref{{Name: "M:I"}}, Choices: []build.Choice{
			{Name: "Go", Consuming: true, Argument: build.Local("M:Go"), Result: build.Optional(build.Text)},
			{Name: "Archive", Consuming: true, Argument: build.Local("M:Archive"), Result: build.Unit},
		}}},
		Interfaces: []build.Interface{{Name: "I", View: build.Local("M:View")}},
	}}}
}

func other() build.Package {
	pair := build.Record("Pair", member("_1", build.Var("a")), member("_2", build.Var("b")))
	pair.Params = []string{"a", "b"}
	return build.Package{Name: "o", Version: "1.0", Modules: []build.Module{{Name: "B", Types: []build.DataType{pair}}}}
}

func TestRead(t *testing.T) {
	t.Parallel()
	s := shelf{}
	o := s.put(other())
	id := s.put(example(o))
	p, err := s.packages().Read(id, s[id])
	require.NoError(t, err)
	require.Empty(t, p.Failure)
	require.Empty(t, p.Needs)
	require.Equal(t, []string{id, "p", "1.2.3", "2.1", strings.Repeat("1", 64)}, []string{p.ID, p.Name, p.Version, p.Language, p.Upgrades})
	require.Len(t, p.Definitions, 2)
	i, template := p.Definitions[0], p.Definitions[1]
	require.Equal(t, ledger.Definition{Module: "M", Entity: "I", Interface: true, Fields: []ledger.Field{{Part: "view", Path: "v", Type: "Date"}}}, i)
	require.True(t, template.Key)
	require.Equal(t, []string{id + ":M:I"}, template.Interfaces)
	require.Equal(t, []ledger.Choice{
		{Name: "Archive", Consuming: true, Argument: "Record M:Archive", Result: "Unit"},
		{Name: "Go", Consuming: true, Argument: "Record M:Go", Result: "Optional of Text"},
	}, template.Choices)
	var lines []string
	for _, f := range template.Fields {
		lines = append(lines, strings.TrimSpace(f.Part+" "+f.Choice)+" "+f.Path+": "+f.Type)
	}
	require.ElementsMatch(t, []string{
		"result Archive : Unit", "argument Go n: Numeric 4", "result Go : Optional of Text", "key : Party",
		"payload owner: Party", "payload pair: Optional of Record B:Pair", "payload pair._1: Text", "payload pair._2: Int64",
		"payload list: List of Variant M:V", "payload list[].A: Unit", "payload list[].B: Record M:V.B", "payload list[].B.x: Bool",
		"payload map: GenMap from Record B:Pair to Record M:Tree", "payload map[key]._1: Text", "payload map[key]._2: Int64",
		"payload map[].kids: List of Recursive M:Tree",
	}, lines)
}

func TestReadSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := shelf{}
	id := s.put(example(build.ID([]byte("gone"))))
	p, err := s.packages().Read(id, s[id])
	require.NoError(t, err)
	require.Equal(t, []string{build.ID([]byte("gone"))}, p.Needs)
	require.Empty(t, p.Failure)
	require.Len(t, p.Definitions, 2, "what is known is there")
	require.NotEmpty(t, p.Definitions[0].Fields)

	s[build.ID([]byte("gone"))] = []byte("damaged")
	p, err = s.packages().Read(id, s[id])
	require.NoError(t, err)
	require.Equal(t, []string{build.ID([]byte("gone"))}, p.Needs, "what is damaged is not there")
}

// Many types can be of a package that is missing or can't be read: it is looked for once.
func TestWhatCannotBeHadIsAskedForOnce(t *testing.T) {
	t.Parallel()
	asked := map[string]int{}
	for name, content := range map[string][]byte{"missing": nil, "damaged": []byte("x"), "unreadable": {0x22, 0x7f, 1}} {
		s := shelf{}
		far := build.ID([]byte(name))
		if name == "unreadable" {
			far = build.ID(content)
		}
		if content != nil {
			s[far] = content
		}
		key, of := build.Con(build.Ref{Package: far, Name: "B:Pair"}, build.Text, build.Text), example(far)
		of.Modules[0].Templates[0].Key = &key
		id := s.put(of)
		p := s.packages()
		p.Content = func(id string) ([]byte, error) {
			asked[name]++
			return s.packages().Content(id)
		}
		_, err := p.Read(id, s[id])
		require.NoError(t, err)
		require.Equal(t, 1, asked[name], "%s: the payload and the key are of it", name)
		p.Forget()
		_, err = p.Decode(far)
		require.Error(t, err)
		require.Equal(t, 2, asked[name])
	}

	// One that comes is there at once.
	s := shelf{}
	o, content := other().Encode()
	id := s.put(example(o))
	p := s.packages()
	before, err := p.Read(id, s[id])
	require.NoError(t, err)
	require.Equal(t, []string{o}, before.Needs)
	_, err = p.Read(o, content)
	require.NoError(t, err)
	after, err := p.Read(id, s[id])
	require.NoError(t, err)
	require.Empty(t, after.Needs)
}

func TestReadSaysWhatItCannotRead(t *testing.T) {
	t.Parallel()
	s := shelf{}
	_, err := s.packages().Read(build.ID([]byte("x")), []byte("y"))
	require.ErrorIs(t, err, damllf.ErrHash)

	for name, content := range map[string][]byte{"cut off": {0x22, 0x7f, 1}, "nothing": {}} {
		p, err := s.packages().Read(build.ID(content), content)
		require.NoError(t, err, name)
		require.NotEmpty(t, p.Failure, name)
		require.Empty(t, p.Definitions)
	}

	_, whole := example(build.ID([]byte("gone"))).Encode()
	for i := range whole {
		p, err := s.packages().Read(build.ID(whole[:i]), whole[:i])
		require.NoError(t, err)
		require.NotEmpty(t, p.Failure, "the first %d of %d bytes", i, len(whole))
		require.Empty(t, p.Definitions)
	}

	bad := build.Package{Name: "p", Version: "1", Modules: []build.Module{{Name: "M",
		Types:     []build.DataType{build.Record("T", member("x", build.Local("M:Gone")))},
		Templates: []build.Template{{Name: "T"}},
	}}}
	id := s.put(bad)
	p, err := s.packages().Read(id, s[id])
	require.NoError(t, err)
	require.Contains(t, p.Failure, "M:T, payload: M:T.x: package "+id+" (p 1) has no type of data M:Gone")
	require.Len(t, p.Definitions, 1)

	away := errors.New("the database is away")
	id = s.put(example(build.ID([]byte("gone"))))
	broken := Packages{Content: func(string) ([]byte, error) { return nil, away }}
	_, err = broken.Read(id, s[id])
	require.ErrorIs(t, err, away, "that says nothing of the package")
}

func TestReadLimitsFields(t *testing.T) {
	t.Parallel()
	var fields []build.Field
	for i := range mostFields + 10 {
		fields = append(fields, member(fmt.Sprintf("f%d", i), build.Text))
	}
	s := shelf{}
	id := s.put(build.Package{Name: "p", Version: "1", Modules: []build.Module{{Name: "M",
		Types: []build.DataType{build.Record("T", fields...)}, Templates: []build.Template{{Name: "T"}},
	}}})
	p, err := s.packages().Read(id, s[id])
	require.NoError(t, err)
	require.Len(t, p.Definitions[0].Fields, mostFields)
}
