package config

import (
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
)

// environment holds the variables that the parser reads in place of the process's environment.
type environment map[string]string

// environmentOf reads a list in the form of os.Environ. The first of several values of a name counts, as with
// os.LookupEnv.
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

// of returns the variable that sets a flag, and its value; given is false if there is none.
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
	if !given || value == "" && flag.Target.Kind() == reflect.Slice { // an empty list is nil, as without the variable
		return nil
	}
	return value
}

// tryValue returns why a flag can't have a value; nil if it can.
func tryValue(flag *kong.Flag, value any) error {
	target := reflect.New(flag.Target.Type()).Elem()
	if target.Kind() == reflect.Pointer {
		target.Set(reflect.New(target.Type().Elem()))
	}
	scan := kong.ScanFromTokens(kong.Token{Type: kong.FlagValueToken, Value: value})
	return flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: scan}, target)
}

// detach keeps the parser from reading the process's environment.
func detach(node *kong.Node) {
	for _, flag := range node.Flags {
		flag.Tag.Envs = nil
	}
	for _, child := range node.Children {
		detach(child)
	}
}

// withVariable returns the help of a flag with its variable. After detach the parser's own help does not know
// variables.
func withVariable(value *kong.Value) string {
	shown := *value
	if value.Flag != nil {
		tag := *value.Tag
		tag.Envs = value.Flag.Envs
		shown.Tag = &tag
	}
	return kong.DefaultHelpValueFormatter(&shown)
}
