package config

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

const envPrefix = "INDEXER_"

// ErrHelp is returned by Parse where the user asked for help, which has been printed.
var ErrHelp = errors.New("help was printed")

// UsageError is a command line or an environment that can't be understood. The commands end with exit code 2.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Parse fills grammar, a pointer to a struct of flags and commands, and returns the chosen command. environ is as
// os.Environ gives it and is only looked through for misspelt names: the values are read from the process's own.
func Parse(grammar any, name, description string, args, environ []string, stdout io.Writer) (*kong.Context, error) {
	helped := false
	parser, err := kong.New(grammar, kong.Name(name), kong.Description(description), kong.DefaultEnvars(strings.TrimSuffix(envPrefix, "_")),
		kong.Writers(stdout, stdout), kong.Exit(func(int) { helped = true }), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		return nil, err
	}
	if err := refusePassword(args); err != nil {
		return nil, &UsageError{err}
	}
	if err := refuseUnknown(environ); err != nil {
		return nil, &UsageError{err}
	}
	parsed, err := parser.Parse(args)
	if helped {
		return nil, ErrHelp
	}
	if err != nil {
		return nil, &UsageError{fmt.Errorf("%w (see %s --help)", err, name)}
	}
	return parsed, nil
}

// refusePassword keeps a password off the command line, where every user of the machine can read it.
func refusePassword(args []string) error {
	for i, arg := range args {
		value, ok := strings.CutPrefix(arg, "--database-url=")
		if !ok && arg == "--database-url" && i+1 < len(args) {
			value, ok = args[i+1], true
		}
		if !ok {
			continue
		}
		parsed, err := url.Parse(value)
		inURL := err == nil && parsed.User != nil
		if inURL {
			_, inURL = parsed.User.Password()
		}
		if inURL || strings.Contains(value, "password=") {
			return errors.New("--database-url has a password in it, which every user of this machine could read in the process list: " +
				"give the URL in INDEXER_DATABASE_URL, or the password in a pgpass file")
		}
	}
	return nil
}

// refuseUnknown finds misspelt settings: a variable with our prefix that no command has.
func refuseUnknown(environ []string) error {
	known, err := variables()
	if err != nil {
		return err
	}
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, envPrefix) && !slices.Contains(known, name) {
			return fmt.Errorf("environment variable %s is not a setting; the settings are %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// variables are the environment variables of both commands: they share an environment, so each accepts the other's.
func variables() ([]string, error) {
	var all struct {
		Database
		Ledger
		Scope
		Log
		Run
		Snapshot
	}
	parser, err := kong.New(&all, kong.DefaultEnvars(strings.TrimSuffix(envPrefix, "_")))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, flag := range parser.Model.Flags {
		names = append(names, flag.Envs...)
	}
	slices.Sort(names)
	return names, nil
}
