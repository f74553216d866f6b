package typed

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ViewNames returns the names of the subjects' views. A name depends on which subjects there are, not on which of them
// have views, nor on their order: those that would have one name all have their module in it, and if that is not
// enough, a hash at the end.
func ViewNames(subjects []*Subject) map[*Subject]string {
	names, clarity := map[*Subject]string{}, map[*Subject]int{}
	for again := true; again; {
		again = false
		of := map[string][]*Subject{}
		for _, s := range subjects {
			names[s] = s.viewName(clarity[s])
			of[names[s]] = append(of[names[s]], s)
		}
		for _, same := range of {
			least := clearest
			for _, s := range same {
				least = min(least, clarity[s])
			}
			for _, s := range same {
				if len(same) > 1 && least < clearest && clarity[s] == least {
					clarity[s]++
					again = true
				}
			}
		}
	}
	return names
}

const clearest = 2

// viewName returns the name of the subject's view: the package, the entity, and the choice, in which the entity is not
// repeated. At clarity 1 the module is in it and nothing is left out, at clearest also a hash.
func (s *Subject) viewName(clarity int) string {
	words := []string{s.Package, s.Module, s.Entity, s.Choice}
	for i, word := range words {
		words[i] = strings.ReplaceAll(Fold(word), ".", "_")
	}
	if clarity == 0 {
		words[1] = ""
		if rest, repeated := strings.CutPrefix(words[3], words[2]+"_"); repeated && rest != "" {
			words[3] = rest
		}
	}
	name := ""
	for _, word := range words {
		if word != "" && name != "" {
			name += "_"
		}
		name += word
	}
	if clarity == clearest {
		return cut(name, nameBytes-9) + "_" + s.hash()
	}
	return cut(name, nameBytes)
}

// FreeName returns a name of the subject's view that is not taken: the one given, or else one with a hash at its end.
func (s *Subject) FreeName(name string, taken func(string) bool) string {
	if !taken(name) {
		return name
	}
	return unique(cut(name, nameBytes-9)+"_"+s.hash(), taken)
}

func (s *Subject) hash() string {
	sum := sha256.Sum256([]byte(string(s.Kind) + "\x00" + s.Owner() + "\x00" + s.Choice))
	return hex.EncodeToString(sum[:4])
}

// described returns a path for people to read.
func described(path []string) string {
	var names []string
	for _, step := range path {
		names = append(names, strings.TrimLeft(step, "=@"))
	}
	switch n := len(names); {
	case n == 0:
		return "the value itself"
	case names[n-1] == "#tag":
		return strings.Join(names[:n-1], ".") + " (constructor)"
	}
	return strings.Join(names, ".")
}

// columnName returns the name of a path's column, without the number that may make it unique.
func columnName(path []string) string {
	if len(path) == 1 && strings.HasPrefix(path[0], "@") {
		return path[0][1:]
	}
	var names []string
	for _, step := range path {
		names = append(names, Fold(strings.TrimLeft(step, "=#@")))
	}
	name := strings.Join(names, "_")
	for strings.Contains(name, "__") {
		name = strings.ReplaceAll(name, "__", "_")
	}
	if name = strings.TrimPrefix(name, "_"); name == "" {
		name = "value"
	}
	if name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	return cut(name, nameBytes)
}

// Fold turns a name of the language into one that needs no quotes in SQL: initialAmount becomes initial_amount.
func Fold(name string) string {
	var out strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case unicode.IsUpper(r):
			afterLower := i > 0 && (unicode.IsLower(runes[i-1]) || unicode.IsDigit(runes[i-1]))
			beforeLower := i > 0 && unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if afterLower || beforeLower {
				out.WriteByte('_')
			}
			out.WriteRune(unicode.ToLower(r))
		case unicode.IsLower(r) || unicode.IsDigit(r):
			out.WriteRune(r)
		default:
			out.WriteByte('_')
		}
	}
	return out.String()
}

// cut leaves words out in front of a name that is too long: what it ends with says the most.
func cut(name string, most int) string {
	if len(name) <= most {
		return name
	}
	rest := name[len(name)-most:]
	// in the middle of a word
	if i := strings.IndexByte(rest, '_'); i >= 0 && i < most/2 && name[len(name)-most-1] != '_' {
		rest = rest[i+1:]
	}
	for rest != "" && !utf8.RuneStart(rest[0]) {
		rest = rest[1:]
	}
	switch {
	case rest == "" || rest[0] < '0' || rest[0] > '9':
		return rest
	case len(rest) == most:
		rest = rest[1:]
	}
	return "_" + rest
}

// unique returns the name, with a number if it is taken.
func unique(name string, taken func(string) bool) string {
	candidate := name
	for n := 2; taken(candidate); n++ {
		suffix := fmt.Sprintf("_%d", n)
		candidate = cut(name, nameBytes-len(suffix)) + suffix
	}
	return candidate
}
