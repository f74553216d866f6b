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

	"ledgerindexer/internal/base/access"
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

// What follows a key that is, or is a mistyped, password: in a URL, and among keywords and values.
const passwordName = `(?:p[a-z]*d|pass)\s*=`

var (
	passwordParameter = regexp.MustCompile(`(?i)(` + passwordName + `)[^&]*`)
	passwordValue     = regexp.MustCompile(`(?is)(` + passwordName + `\s*)(?:'(?:[^'\\]|\\.)*'?|(?:[^\s\\]|\\.)*)`)
	// as in user:password@host, without a scheme or with a mistyped one; and what begins like the URL of a database,
	// whatever follows
	passwordBeforeHost = regexp.MustCompile(`(?i):[^@]+(?:@|%40)|^postgres(?:ql)?[:/]`)
)

// hidden removes the password from a connection string, a URL or keywords and values, and hides a token, which was
// given in place of its file. What may have a password in it and can't be understood is hidden whole.
func hidden(text string) string {
	if _, isToken := access.ParseClaims(text); isToken {
		return "xxxxx"
	}
	if !strings.Contains(text, "://") {
		text = passwordValue.ReplaceAllString(text, "${1}xxxxx")
		if passwordBeforeHost.MatchString(text) {
			return "xxxxx"
		}
		return text
	}
	text = passwordParameter.ReplaceAllString(text, "${1}xxxxx")
	parsed, err := url.Parse(text)
	switch {
	case err == nil && parsed.Host != "" && !access.CutOff(parsed):
		if _, has := parsed.User.Password(); has {
			return parsed.Redacted()
		}
		return text
	case err == nil && !strings.Contains(text, "@"):
		return text
	}
	return "xxxxx" // what counts as the password may be a part of it
}
