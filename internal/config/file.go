package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// File names the configuration file.
type File struct {
	Config string `placeholder:"FILE" help:"YAML file of settings, which are named as the flags, such as ledger-url: https://participant.example.com. Flags and the environment win over it."`
}

// fileLimit is the size of the largest file that is read, in bytes.
const fileLimit = 1 << 20

// file is a configuration file: the settings of all commands, by flag. Each command takes its own.
type file struct {
	name   string
	values map[string]fileValue
}

// fileValue is the value of a setting: a string, or a []any of strings.
type fileValue struct {
	value any
	line  int
}

// readFile reads a configuration file; an empty name: there is none. Every setting must have a value, so that a half
// written or wrong file is an error.
func readFile(name string) (*file, error) {
	f := &file{name: name, values: map[string]fileValue{}}
	if name == "" {
		return f, nil
	}
	opened, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	defer opened.Close()
	text, err := io.ReadAll(io.LimitReader(opened, fileLimit+1))
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	if len(text) > fileLimit {
		return nil, f.errorf(0, "is larger than %d kB, so it is no file of settings", fileLimit>>10)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, more yaml.Node
	err = decoder.Decode(&document)
	switch {
	case errors.Is(err, io.EOF):
		return nil, f.errorf(0, "is empty: it may be half written. A file without settings is {}")
	case err != nil:
		return nil, f.errorf(0, "is no YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	case !errors.Is(decoder.Decode(&more), io.EOF):
		return nil, f.errorf(0, "has more after its first document")
	}
	return f, f.take(document.Content[0])
}

func (f *file) errorf(line int, format string, args ...any) error {
	where := f.name
	if line > 0 {
		where = f.at(line)
	}
	return fmt.Errorf("--config: file %s %s", where, fmt.Sprintf(format, args...))
}

// at names a line of the file.
func (f *file) at(line int) string { return fmt.Sprintf("%s, line %d,", f.name, line) }

func (f *file) take(mapping *yaml.Node) error {
	if mapping.Kind != yaml.MappingNode {
		return f.errorf(mapping.Line, "must have a setting and its value on each line, such as log-level: debug")
	}
	known, err := settings()
	if err != nil {
		return err
	}
	names := make([]string, 0, len(known))
	for _, flag := range known {
		names = append(names, flag.Name)
	}
	for i := 0; i < len(mapping.Content); i += 2 {
		key, node := mapping.Content[i], mapping.Content[i+1]
		setting := slices.Index(names, key.Value)
		switch {
		case setting < 0:
			return f.errorf(key.Line, "has %q, which is no setting%s", key.Value, nearest(key.Value, names))
		case node.Kind == yaml.SequenceNode && !known[setting].IsSlice(): // whose error would repeat a password
			return f.errorf(key.Line, "gives %s a list, and it is one value", key.Value)
		}
		if before, twice := f.values[key.Value]; twice {
			return f.errorf(key.Line, "has %s again, which is on line %d", key.Value, before.line)
		}
		value, err := f.value(key.Value, node)
		if err != nil {
			return err
		}
		f.values[key.Value] = fileValue{value, key.Line}
	}
	return nil
}

// value returns a value in the parser's form.
func (f *file) value(name string, node *yaml.Node) (any, error) {
	if node.Kind == yaml.SequenceNode {
		list := []any{}
		for _, item := range node.Content {
			text, err := f.scalar(name, item)
			if err != nil {
				return nil, err
			}
			list = append(list, text)
		}
		return list, nil
	}
	return f.scalar(name, node)
}

func (f *file) scalar(name string, node *yaml.Node) (string, error) {
	switch {
	case node.Kind != yaml.ScalarNode:
		return "", f.errorf(node.Line, "must give %s a text, a number, true or false, or a list of them", name)
	case node.Tag == "!!null":
		return "", f.errorf(node.Line, "gives %s no value: give one, or leave the line out", name)
	}
	return node.Value, nil
}

// of returns a flag's value in the file; ok is false if it has none, or an empty list.
func (f *file) of(flag *kong.Flag) (value fileValue, ok bool) {
	if f == nil || len(flag.Envs) == 0 {
		return value, false
	}
	value, ok = f.values[flag.Name]
	if list, isList := value.value.([]any); isList && len(list) == 0 {
		return value, false
	}
	return value, ok
}

// mostNearest is how many names a hint has.
const mostNearest = 3

// nearest returns a hint at the names that were probably meant, the likeliest first; if none is similar, at all of
// them.
func nearest(name string, names []string) string {
	atMost := max(2, len(name)/3)
	alike := slices.DeleteFunc(slices.Clone(names), func(known string) bool { return distance(name, known) > atMost })
	if len(alike) == 0 {
		return "; `indexer config` lists the settings"
	}
	slices.SortStableFunc(alike, func(a, b string) int { return cmp.Compare(distance(name, a), distance(name, b)) })
	return fmt.Sprintf(": did you mean %s?", strings.Join(alike[:min(len(alike), mostNearest)], " or "))
}

// distance returns the edit distance of two words. Differences of case, and of dashes and underscores, count as 1 in
// all.
func distance(a, b string) int {
	alike := func(word string) string { return strings.ReplaceAll(strings.ToLower(word), "_", "-") }
	different := 0
	if (a == alike(a)) != (b == alike(b)) {
		different = 1
	}
	a, b = alike(a), alike(b)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)] + different
}
