// Package access holds a client's credentials and the authorities that it trusts: bearer tokens from a file or by
// OAuth2 client credentials, TLS client certificates, and CA files. The clients of the participant and of Scan share
// it.
//
// Files can be replaced in place, without a restart, because they are read again: the token for each request, the
// client secret for each token, the client's certificate for each connection, the authorities when they have changed.
// Errors and logs never contain secrets.
package access

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync/atomic"

	"ledgerindexer/ledger"
)

// Config holds the credentials for a server and the trusted authorities. The zero value is anonymous and trusts the
// system's. The tags are those of flags, whose names begin with the server's.
type Config struct {
	// Flags is the prefix of the flags that errors name: "ledger" for --ledger-token-file, and so on.
	Flags string `kong:"-"`
	// URL is the server's URL, for checks; empty: they are left out. A password in it is never printed.
	URL string `kong:"-"`
	// TokenFlag is the flag of TokenFile, for errors; empty: --<Flags>-token-file.
	TokenFlag string `kong:"-"`

	TokenFile string `placeholder:"FILE" help:"File that holds the bearer token, or the JSON that a token endpoint answered. It is read for every request, so replace it in place."`
	OAuth     OAuth  `embed:"" prefix:"oauth-"`
	// CAFile counts for the token endpoint in addition to the system's authorities.
	CAFile string `name:"ca-file" placeholder:"FILE" help:"PEM file of the authorities that sign the server's certificate, instead of the system's. It is read again when it changes."`
	// CertFile is sent to the server and to the token endpoint if they request a certificate.
	CertFile string `placeholder:"FILE" help:"PEM file of the client's certificate. It is read for every connection."`
	KeyFile  string `placeholder:"FILE" help:"PEM file of its private key."`
}

// OAuth is the client credentials grant (RFC 6749, section 4.4). The zero value is none.
type OAuth struct {
	TokenURL         string   `name:"token-url" placeholder:"URL" help:"Token endpoint for OAuth2 client credentials, instead of a token file."`
	ClientID         string   `name:"client-id" placeholder:"ID" help:"OAuth2 client id."`
	ClientSecretFile string   `placeholder:"FILE" help:"File that holds the OAuth2 client secret. It is read for every token."`
	Scopes           []string `sep:"," placeholder:"SCOPE" help:"OAuth2 scopes to request."`
	Audience         string   `placeholder:"AUDIENCE" help:"Audience to request, if the token endpoint needs one."`
}

// Check returns an error for settings that contradict each other or are incomplete; it names the flags. It reads no
// file.
func (c Config) Check() error {
	flag := func(name string) string { return "--" + c.Flags + "-" + name }
	server, err := url.Parse(c.URL)
	if err != nil { // not wrapped: the parser's error may repeat a password
		return fmt.Errorf("%s must be of the form http://host:port/prefix or https://host:port/prefix", flag("url"))
	}
	if CutOff(server) {
		return fmt.Errorf("%s has an @ behind its host, as where a password has a / in it: %s", flag("url"), Escaped)
	}
	if _, isToken := ParseClaims(c.TokenFile); isToken { // not opened: the error would print the token
		return fmt.Errorf("%s must be the name of a file that holds the token, and is a token", c.tokenFlag())
	}
	switch o := c.OAuth; {
	case c.TokenFile != "" && o.any():
		return fmt.Errorf("%s and %s are both given: choose one source of tokens", c.tokenFlag(), flag("oauth-token-url"))
	case o.any() && o.TokenURL == "":
		return fmt.Errorf("%s is missing: the other %s flags need it", flag("oauth-token-url"), flag("oauth-..."))
	case o.any() && o.ClientID == "":
		return fmt.Errorf("%s is missing: %s needs it", flag("oauth-client-id"), flag("oauth-token-url"))
	case o.any() && o.ClientSecretFile == "":
		return fmt.Errorf("%s is missing: %s needs it", flag("oauth-client-secret-file"), flag("oauth-token-url"))
	case server.User != nil && c.configured():
		return fmt.Errorf("%s has a user in it and %s is given: both can't be sent, choose one", flag("url"), c.tokenFlag())
	case c.CertFile != "" && c.KeyFile == "":
		return fmt.Errorf("%s is missing: %s needs it", flag("key-file"), flag("cert-file"))
	case c.KeyFile != "" && c.CertFile == "":
		return fmt.Errorf("%s is missing: %s needs it", flag("cert-file"), flag("key-file"))
	case server.Scheme == "http" && c.CertFile != "" && !c.OAuth.any():
		return fmt.Errorf("%s and %s are for TLS, and %s is http://", flag("cert-file"), flag("key-file"), flag("url"))
	case server.Scheme == "http" && c.CAFile != "" && !c.OAuth.any():
		return fmt.Errorf("%s is for TLS, and %s is http://", flag("ca-file"), flag("url"))
	}
	if !c.OAuth.any() {
		return nil
	}
	endpoint, err := url.Parse(c.OAuth.TokenURL)
	if err != nil || endpoint.Scheme != "http" && endpoint.Scheme != "https" || endpoint.Host == "" {
		return fmt.Errorf("%s must be of the form https://host/path", flag("oauth-token-url"))
	}
	if endpoint.User != nil || CutOff(endpoint) {
		return fmt.Errorf("%s must not contain a user: the credentials are in %s and %s",
			flag("oauth-token-url"), flag("oauth-client-id"), flag("oauth-client-secret-file"))
	}
	return nil
}

// Escaped says how a URL has a password.
const Escaped = "characters such as @ / ? # in a password are written as %40 %2F %3F %23"

// CutOff reports whether a URL has an @ behind its host. Its host, port and path are then probably parts of a user and
// a password, which have one of / ? # in them.
func CutOff(u *url.URL) bool {
	return strings.Contains(u.EscapedPath()+u.RawQuery+u.EscapedFragment(), "@")
}

func (o OAuth) any() bool {
	return o.TokenURL != "" || o.ClientID != "" || o.ClientSecretFile != "" || len(o.Scopes) > 0 || o.Audience != ""
}

func (c Config) configured() bool { return c.TokenFile != "" || c.OAuth.any() }

// tokenFlag returns the flag of the source of tokens.
func (c Config) tokenFlag() string {
	switch {
	case c.TokenFile == "":
		return "--" + c.Flags + "-oauth-token-url"
	case c.TokenFlag != "":
		return c.TokenFlag
	}
	return "--" + c.Flags + "-token-file"
}

// Access provides tokens and TLS settings. It is safe for concurrent use.
type Access struct {
	cfg         Config
	log         *slog.Logger
	secrets     secrets
	tokens      *tokens     // nil without OAuth
	authorities authorities // as read by New
	asked       atomic.Bool // the server requested a client certificate, but none is configured
}

// New checks the configuration and reads the files once; it sends nothing. The logger may be nil; it gets a warning if
// a secret would be sent unencrypted.
//
// Errors name the flag and the file, never its contents. A file that can't be used is a *ledger.Problem: at the start
// its name is probably wrong. Later it is retried, because files are replaced.
func New(cfg Config, logger *slog.Logger) (*Access, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	a := &Access{cfg: cfg, log: logger}
	if server, err := url.Parse(cfg.URL); err == nil && server.User != nil {
		a.secrets.addUser(server.User)
	}
	a.authorities = authorities{flag: a.Flag("ca-file"), path: cfg.CAFile}
	if _, err := a.authorities.load(); err != nil {
		return nil, unusable(a.Flag("ca-file"), err)
	}
	if cfg.CertFile != "" {
		if _, err := a.certificate(); err != nil {
			return nil, unusable(a.Flag("cert-file")+" and "+a.Flag("key-file"), err)
		}
	}
	switch {
	case cfg.TokenFile != "":
		if _, err := a.tokenOfFile(); err != nil {
			return nil, missing("token", cfg.tokenFlag(), err)
		}
	case cfg.OAuth.any():
		if _, err := a.clientSecret(); err != nil {
			return nil, missing("client secret", a.Flag("oauth-client-secret-file"), err)
		}
		var err error
		if a.tokens, err = newTokens(a); err != nil {
			return nil, err
		}
	}
	a.warnOfPlainText()
	return a, nil
}

func missing(secret, flag string, err error) error {
	return &ledger.Problem{
		What: "there is no " + secret + " to begin with",
		Do: "put the " + secret + " into the file, or correct " + flag + ", and start again; where something else writes " +
			"the file, let it do so before",
		Err: err,
	}
}

func unusable(flags string, err error) error {
	return &ledger.Problem{
		What: "there are no certificates to begin with",
		Do: "correct the files, or correct " + flags + ", and start again; where something else writes them, let it " +
			"finish before",
		Err: err,
	}
}

// warnOfPlainText warns about secrets sent over plain HTTP. They are not refused: within a cluster a proxy beside the
// program may encrypt the connection.
func (a *Access) warnOfPlainText() {
	if server, err := url.Parse(a.cfg.URL); err == nil && (a.Configured() || server.User != nil) && Exposed(server) {
		a.log.Warn("credentials are sent over plain HTTP to another machine: use https://", "flag", a.Flag("url"), "host",
			server.Host)
	}
	if endpoint, err := url.Parse(a.cfg.OAuth.TokenURL); err == nil && Exposed(endpoint) {
		a.log.Warn("the client secret is sent over plain HTTP to another machine: use https://",
			"flag", a.Flag("oauth-token-url"), "host", endpoint.Host)
	}
}

// Exposed reports whether requests to u can be read on the network.
func Exposed(u *url.URL) bool {
	if u.Scheme != "http" || u.Hostname() == "localhost" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return ip == nil || !ip.IsLoopback()
}

// Flag returns a flag as on the command line, such as --ledger-token-file for "token-file".
func (a *Access) Flag(name string) string { return "--" + a.cfg.Flags + "-" + name }

// Configured reports whether a token is configured.
func (a *Access) Configured() bool { return a.cfg.configured() }

// Token returns the bearer token to send now; empty if none is configured. A token from an endpoint is renewed before
// it expires, while callers use the old one.
//
// Errors, worth a retry: the file can't be read or holds no token; a *TokenError if the token endpoint returns none.
func (a *Access) Token(ctx context.Context) (string, error) {
	switch {
	case a.tokens != nil:
		return a.tokens.get(ctx)
	case a.cfg.TokenFile != "":
		return a.tokenOfFile()
	}
	return "", nil
}

// Renew returns another token after the server refused one, or "" if there is none.
//
// Errors: those of Token.
func (a *Access) Renew(ctx context.Context, refused string) (string, error) {
	switch {
	case a.tokens != nil:
		return a.tokens.renew(ctx, refused)
	case a.cfg.TokenFile != "":
		token, err := a.tokenOfFile()
		if err != nil || token == refused {
			return "", err
		}
		return token, nil
	}
	return "", nil
}

// Repeats reports whether data received from outside is a secret, or contains a long one. Data is refused rather than
// redacted, because a short password may be part of a name by chance.
func (a *Access) Repeats(data string) bool { return a.secrets.within(data) }

// Redact replaces every known secret in a text received from outside.
func (a *Access) Redact(text string) string { return a.secrets.redact(text) }

// Origin describes the source of tokens, such as "the file /run/secrets/token"; empty where none is configured.
func (a *Access) Origin() string {
	switch {
	case a.cfg.TokenFile != "":
		return "the file " + a.cfg.TokenFile
	case a.tokens != nil:
		return "the token endpoint " + a.tokens.endpoint
	}
	return ""
}

// Close cancels a token request in flight and closes idle connections to the token endpoint.
func (a *Access) Close() {
	if a.tokens != nil {
		a.tokens.close()
	}
}
