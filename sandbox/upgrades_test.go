package sandbox

import (
	"fmt"
	"slices"

	"ledgerindexer/internal/damllf"
)

// checkUpgrade returns an error where a type is not what the rules of upgrades let an older version of it become: records may have more
// fields at the end, all Optional, variants and enums more constructors at the end, also within the type; everything else is the same.
func checkUpgrade(older, newer *damllf.Type) error {
	if older.Kind != newer.Kind || older.Scale != newer.Scale || older.Ref.Name != newer.Ref.Name {
		return fmt.Errorf("%s became %s", older, newer)
	}
	for i, a := range older.Args {
		if err := checkUpgrade(a, newer.Args[i]); err != nil {
			return err
		}
	}
	names := func(t *damllf.Type) (names []string) {
		for _, f := range t.Fields {
			names = append(names, f.Name)
		}
		return append(names, t.Constructors...)
	}
	if was, is := names(older), names(newer); len(was) > len(is) || !slices.Equal(was, is[:len(was)]) {
		return fmt.Errorf("%s had %v and has %v", older, was, is)
	}
	for i, f := range newer.Fields {
		switch {
		case i < len(older.Fields):
			if err := checkUpgrade(older.Fields[i].Type, f.Type); err != nil {
				return fmt.Errorf("%s: %w", f.Name, err)
			}
		case newer.Kind == damllf.Record && f.Type.Kind != damllf.Optional:
			return fmt.Errorf("field %s was added and is not Optional, but %s", f.Name, f.Type)
		}
	}
	return nil
}
