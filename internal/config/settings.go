package config

import (
	"cmp"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"ledgerindexer/internal/access"
)

// Setting is a setting in force. Its value has no secrets.
type Setting struct {
	Name  string `json:"name"`  // of the flag, and in the configuration file
	Value any    `json:"value"` // a string, number, boolean or list of strings
	From  string `json:"from"`  // flag, default, the name of the environment variable, or file and line
}

// Settings are those of a command that the environment and the configuration file can set, sorted by name.
type Settings []Setting

func (p *Parser) settings(parsed *kong.Context) Settings {
	given := map[*kong.Flag]bool{}
	for _, path := range parsed.Path {
		if path.Flag != nil && !path.Resolved {
			given[path.Flag] = true
		}
	}
	var list Settings
	for _, flag := range parsed.Flags() {
		if len(flag.Envs) == 0 || flag.Name == fileFlag {
			continue
		}
		s := Setting{Name: flag.Name, Value: plain(flag.Target), From: "default"}
		name, _, fromEnvironment := p.environ.of(flag)
		fromFile, inFile := p.file.of(flag)
		switch {
		case given[flag]:
			s.From = "flag"
		case fromEnvironment:
			s.From = name
		case inFile:
			s.From = fmt.Sprintf("%s:%d", p.file.name, fromFile.line)
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b Setting) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// plain returns a value in a form that JSON and YAML have, without secrets.
func plain(value reflect.Value) any {
	switch {
	case value.Kind() == reflect.Pointer && value.IsNil():
		return ""
	case value.Kind() == reflect.Pointer:
		return plain(value.Elem())
	case value.Kind() == reflect.Slice:
		list := []string{}
		for i := range value.Len() {
			list = append(list, hidden(fmt.Sprint(value.Index(i).Interface())))
		}
		return list
	case value.Kind() == reflect.Bool, value.CanFloat(), value.CanInt() && value.Type().PkgPath() == "":
		return value.Interface()
	}
	return hidden(fmt.Sprint(value.Interface()))
}

// What follows a key that ends in password: in a URL, and among keywords and values.
var (
	passwordParameter = regexp.MustCompile(`(?i)(password\s*=)[^&]*`)
	passwordValue     = regexp.MustCompile(`(?is)(password\s*=\s*)(?:'(?:[^'\\]|\\.)*'?|(?:[^\s\\]|\\.)*)`)
)

// hidden removes the password from a connection string, a URL or keywords and values, and hides a token, which was given in place of its
// file. What may be a password counts as one: a URL with an @ behind its host.
func hidden(text string) string {
	if _, isToken := access.ParseClaims(text); isToken {
		return "xxxxx"
	}
	if !strings.Contains(text, "://") {
		return passwordValue.ReplaceAllString(text, "${1}xxxxx")
	}
	text = passwordParameter.ReplaceAllString(text, "${1}xxxxx")
	if parsed, err := url.Parse(text); err == nil {
		if access.CutOff(parsed) { // what counts as the password may be a part of it
			return "xxxxx"
		}
		if _, has := parsed.User.Password(); has {
			return parsed.Redacted()
		}
	}
	if passwordInNoURL.MatchString(text) {
		return "xxxxx"
	}
	return text
}
