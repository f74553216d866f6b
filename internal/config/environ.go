package config

import (
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
)

// environment holds the values of variables. The parser takes those of flags from it, rather than from the process's environment.
type environment map[string]string

// environmentOf reads a list in the form of os.Environ. Of a name that stands there twice the first is taken, as os.LookupEnv does.
func environmentOf(entries []string) environment {
	e := environment{}
	for _, entry := range entries {
		name, value, _ := strings.Cut(entry, "=")
		if _, seen := e[name]; !seen {
			e[name] = value
		}
	}
	return e
}

// of returns the variable that gives a flag its value, if one does.
func (e environment) of(flag *kong.Flag) (name, value string, given bool) {
	for _, name := range flag.Envs {
		if value, given := e[name]; given {
			return name, value, true
		}
	}
	return "", "", false
}

// resolve returns the value of a flag in the parser's form; nil: none.
func (e environment) resolve(flag *kong.Flag) any {
	_, value, given := e.of(flag)
	if !given || value == "" && flag.Target.Kind() == reflect.Slice { // the list is nil then, as without the variable
		return nil
	}
	return value
}

// tryValue returns why a flag can't have a value; nil: it can.
func tryValue(flag *kong.Flag, value any) error {
	target := reflect.New(flag.Target.Type()).Elem()
	if target.Kind() == reflect.Pointer {
		target.Set(reflect.New(target.Type().Elem()))
	}
	scan := kong.ScanFromTokens(kong.Token{Type: kong.FlagValueToken, Value: value})
	return flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: scan}, target)
}

// detach keeps the parser from the process's environment. The flags still name their variables.
func detach(node *kong.Node) {
	for _, flag := range node.Flags {
		flag.Tag.Envs = nil
	}
	for _, child := range node.Children {
		detach(child)
	}
}

// withVariable returns the help of a flag with its variable, of which detach leaves nothing where the parser's own help looks.
func withVariable(value *kong.Value) string {
	shown := *value
	if value.Flag != nil {
		tag := *value.Tag
		tag.Envs = value.Flag.Envs
		shown.Tag = &tag
	}
	return kong.DefaultHelpValueFormatter(&shown)
}
