package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/internal/base/version"
)

// envPrefix begins the names of the environment variables that the parser reads beside flags and the file.
const envPrefix = "INDEXER_"

// ErrHelp is returned by Parse after it printed help or the version, as the user asked.
var ErrHelp = errors.New("help was printed")

// UsageError is an error of the command line, the environment or the configuration file. The exit code is 2.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Parser parses the command lines of a program. Building one takes longer than parsing. It is not safe for concurrent
// use.
type Parser struct {
	name    string
	parser  *kong.Kong
	environ environment
	file    *file // nil: not read yet
	helped  bool
}

// NewParser returns a parser that fills grammar, a pointer to a struct of flags and commands.
func NewParser(grammar any, name, description string) (*Parser, error) {
	build, err := version.Read()
	if err != nil {
		return nil, err
	}
	p := &Parser{name: name}
	p.parser, err = kong.New(grammar, kong.Name(name), kong.Description(description),
		kong.Vars{"version": build.Line(name)},
		kong.DefaultEnvars(strings.TrimSuffix(envPrefix, "_")), kong.ValueFormatter(withVariable),
		kong.WithBeforeResolve(p.beforeResolve),
		kong.Resolvers(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path,
			flag *kong.Flag) (any, error) {
			return p.resolve(flag), nil
		})),
		kong.Exit(func(int) { p.helped = true }), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		return nil, err
	}
	detach(p.parser.Model.Node)
	return p, nil
}

// Parse resets and fills the grammar, and returns the chosen command. Flags that args does not have come from environ,
// in the form of os.Environ, not from the process's environment.
func (p *Parser) Parse(args, environ []string, stdout io.Writer) (*kong.Context, error) {
	if err := refuseSecrets(args); err != nil {
		return nil, &UsageError{err}
	}
	if err := refuseUnknown(environ); err != nil {
		return nil, &UsageError{err}
	}
	for i, arg := range args {
		if !utf8.ValidString(arg) { // else the parser silently replaces characters
			return nil, &UsageError{fmt.Errorf("argument %d is not text in UTF-8", i+1)}
		}
	}
	p.environ, p.file, p.helped, p.parser.Stdout, p.parser.Stderr = environmentOf(environ), nil, false, stdout, stdout
	forget(p.parser.Model.Node)
	parsed, err := p.parser.Parse(args)
	if p.helped {
		return nil, ErrHelp
	}
	if err != nil {
		return nil, &UsageError{fmt.Errorf("%w (see %s --help)", err, p.name)}
	}
	return parsed, nil
}

// ParseTool fills grammar, a pointer to a struct of flags, from the command line of a program without a configuration
// file. It returns ErrHelp after it has printed the help, or the version.
func ParseTool(grammar any, args []string, stdout io.Writer, options ...kong.Option) error {
	helped := false
	parser, err := kong.New(grammar, append(options, kong.Writers(stdout, stdout),
		kong.Exit(func(int) { helped = true }))...)
	if err != nil {
		return fmt.Errorf("build the command line: %w", err)
	}
	if _, err = parser.Parse(args); helped {
		return ErrHelp
	}
	return err
}

// beforeResolve reads the configuration file, and checks the values from there and from the environment.
func (p *Parser) beforeResolve(parsed *kong.Context, path *kong.Path) (err error) {
	if p.file == nil {
		if p.file, err = readFile(p.fileName(parsed)); err != nil {
			return err
		}
	}
	for _, flag := range path.Flags {
		if err := p.check(flag); err != nil {
			return err
		}
	}
	return nil
}

// fileName returns the name of the configuration file; empty: there is none.
func (p *Parser) fileName(parsed *kong.Context) string {
	for _, path := range parsed.Path {
		if path.Flag != nil && path.Flag.Name == fileFlag {
			return fmt.Sprint(parsed.FlagValue(path.Flag))
		}
	}
	for _, flag := range p.parser.Model.Flags {
		if flag.Name == fileFlag {
			_, name, _ := p.environ.of(flag)
			return name
		}
	}
	return ""
}

// fileFlag is the flag that names the configuration file.
const fileFlag = "config"

// resolve returns the value of a flag that is not on the command line, in the parser's form; nil: none.
func (p *Parser) resolve(flag *kong.Flag) any {
	if _, _, given := p.environ.of(flag); given {
		return p.environ.resolve(flag)
	}
	if value, given := p.file.of(flag); given {
		return value.value
	}
	return nil
}

// check refuses invalid values of a flag, even if the command line overrides them. The parser's own error would not
// name their source.
func (p *Parser) check(flag *kong.Flag) error {
	if name, value, given := p.environ.of(flag); given {
		if err := tryValue(flag, value); err != nil {
			return fmt.Errorf("%s: %w (from envar %s=%q)", flag.ShortSummary(), err, name, value)
		}
	}
	if value, given := p.file.of(flag); given {
		if err := tryValue(flag, value.value); err != nil {
			return fmt.Errorf("%s: %w (from file %s %s: %v)", flag.ShortSummary(), err, p.file.at(value.line), flag.Name,
				value.value)
		}
	}
	return nil
}

// forget resets which flags and arguments were given: the parser keeps that from an earlier command line.
func forget(node *kong.Node) {
	node.Active = false
	for _, flag := range node.Flags {
		flag.Set, flag.Active = false, false
	}
	for _, positional := range node.Positional {
		positional.Set, positional.Active = false, false
	}
	for _, child := range node.Children {
		forget(child)
	}
}

// refuseSecrets refuses passwords and tokens on the command line, where every user of the machine can read them. Its
// errors don't repeat them.
func refuseSecrets(args []string) error {
	for i, arg := range args {
		where, value := "an argument", arg
		switch name, rest, assigned := strings.Cut(arg, "="); {
		case strings.HasPrefix(arg, "-") && assigned:
			where, value = name, rest
		case i > 0 && strings.HasPrefix(args[i-1], "--") && !strings.Contains(args[i-1], "="):
			where = args[i-1]
		}
		if hasPassword(value) {
			return fmt.Errorf("%s has a password in it, which every user of this machine could read in the process list: give "+
				"%s", where, instead(where))
		}
		if _, isToken := access.ParseClaims(value); isToken {
			return fmt.Errorf("%s is a token, which every user of this machine could read in the process list: "+
				"put it into a file and name that, such as with --ledger-token-file", where)
		}
	}
	return nil
}

func variableOf(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// instead returns how to give a URL with a password that was given in a flag or an argument.
func instead(flag string) string {
	variable := variableOf(strings.TrimLeft(flag, "-"))
	known, err := variables()
	switch {
	case err != nil || !slices.Contains(known, variable):
		return "the URL in its environment variable, such as INDEXER_DATABASE_URL"
	case flag == "--database-url":
		return "the URL in " + variable + ", or the password in a pgpass file"
	}
	return "the URL in " + variable
}

var (
	passwordKey     = regexp.MustCompile(`(?i)password\s*=`)
	passwordInNoURL = regexp.MustCompile(`://[^/?#]*:[^@]+@`) // as in postgres://user:pass/word@host, which is no URL
)

func hasPassword(text string) bool {
	if passwordKey.MatchString(text) {
		return true
	}
	parsed, err := url.Parse(text)
	// it may be cut off at a / ? or # of the password, and what is before that taken for host and port
	if err != nil || parsed.User == nil {
		return passwordInNoURL.MatchString(text)
	}
	_, has := parsed.User.Password()
	return has
}

// refuseUnknown refuses variables with our prefix that no command has, which are probably misspelt. It also refuses
// settings that are not UTF-8, because the parser would silently replace characters.
func refuseUnknown(environ []string) error {
	known, err := variables()
	if err != nil {
		return err
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		switch isKnown := slices.Contains(known, name); {
		case isKnown && !utf8.ValidString(value):
			return fmt.Errorf("environment variable %s is not text in UTF-8", name)
		case strings.HasPrefix(name, envPrefix) && !isKnown && !ofService(name, value):
			return fmt.Errorf("environment variable %s is not a setting%s", name, nearest(name, known))
		}
	}
	return nil
}

var serviceVariable = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)$`)

// ofService reports whether a variable comes from Kubernetes, which gives containers the addresses of their namespace's
// services. One of these may be called indexer.
func ofService(name, value string) bool {
	return serviceVariable.MatchString(name) || strings.HasSuffix(name, "_PORT") && strings.Contains(value, "://")
}

// settings returns the flags that the environment and the configuration file can set, of all commands: each command
// accepts the others' settings.
var settings = sync.OnceValues(func() ([]*kong.Flag, error) {
	var all struct {
		Database
		FromDatabase
		Ledger
		Admin
		Scan
		Scope
		Log
		Run
		RequestLimits
		Profile
		Traces
		Snapshot
	}
	parser, err := kong.New(&all, kong.DefaultEnvars(strings.TrimSuffix(envPrefix, "_")))
	if err != nil {
		return nil, err
	}
	flags := slices.DeleteFunc(slices.Clone(parser.Model.Flags), func(flag *kong.Flag) bool { return len(flag.Envs) == 0 })
	slices.SortFunc(flags, func(a, b *kong.Flag) int { return cmp.Compare(a.Name, b.Name) })
	return flags, nil
})

func variables() ([]string, error) {
	flags, err := settings()
	if err != nil {
		return nil, err
	}
	names := []string{variableOf(fileFlag)}
	for _, flag := range flags {
		names = append(names, flag.Envs...)
	}
	slices.Sort(names)
	return names, nil
}
