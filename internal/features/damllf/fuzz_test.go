package damllf

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/features/damllf/build"
)

// FuzzDecode decodes anything as the body of a package. What is decoded has names that are names, and all of it can be
// resolved or is refused; nothing panics or runs away.
func FuzzDecode(f *testing.F) {
	for _, style := range []build.Style{{}, {Inline: true}, {Applications: true}, {Inline: true, Unpacked: true, Unknown: true}} {
		for _, imports := range [][]string{nil, {otherID}} {
			p := everything()
			p.Style, p.Imports = style, imports
			_, payload := p.Encode()
			f.Add(payload)
			f.Add(payload[:len(payload)/2])
		}
	}
	identifier := regexp.MustCompile(`^[A-Za-z$_][A-Za-z0-9$_]*(\.[A-Za-z$_][A-Za-z0-9$_]*)*$`)
	packageID := regexp.MustCompile(`^[0-9a-f]{64}$`)
	f.Fuzz(func(t *testing.T, payload []byte) {
		p, err := decode(strings.Repeat("1e", 32), payload) // what refers to the other one misses it
		if err != nil {
			require.Nil(t, p)
			require.Less(t, len(err.Error()), 20_000)
			return
		}
		r := resolver(p)
		resolve := func(e *TypeExpr) {
			require.NotNil(t, e)
			_, err := r.Resolve(e)
			var missing *MissingError
			if errors.As(err, &missing) {
				require.NotEmpty(t, missing.Packages)
				for _, id := range missing.Packages {
					require.Regexp(t, packageID, id)
				}
			}
		}
		for name, d := range p.DataTypes {
			require.Regexp(t, identifier, name.Module)
			require.Regexp(t, identifier, name.Entity)
			resolve(&TypeExpr{Form: Constructor, Ref: Ref{Package: p.ID, Name: name}})
			for _, field := range d.Fields {
				require.Regexp(t, identifier, field.Name)
			}
		}
		for _, template := range p.Templates {
			resolve(template.Payload)
			for name, c := range template.Choices {
				require.Regexp(t, identifier, name)
				resolve(c.Argument)
				resolve(c.Result)
			}
		}
		for _, i := range p.Interfaces {
			resolve(i.View)
		}
	})
}
