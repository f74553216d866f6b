package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ledgerindexer/internal/config"
	"ledgerindexer/sandbox"
)

// secure are the flags for authentication and TLS.
type secure struct {
	Auth             bool          `help:"Require users' tokens. Users are indexer, which reads as any party or as --read-as says, and admin, the participant's administrator."`
	ReadAs           []string      `placeholder:"PARTY" help:"With --auth: user indexer reads as this party instead of any (the flag may be repeated)."`
	ClientSecretFile string        `type:"path" placeholder:"FILE" help:"With --auth: file with the secret of the OAuth2 client indexer, which gets the tokens of that user at /oauth/token."`
	WriteTokens      string        `type:"path" placeholder:"DIR" help:"With --auth: keep tokens of both users in DIR, in indexer.token and admin.token, and renew them in time."`
	TokenLifetime    time.Duration `default:"5m" help:"With --auth: how long a token is valid."`
	MaxTokenLifetime time.Duration `default:"5m" help:"With --auth: refuse tokens that live longer, as participants do; 0: none."`
	TLSCert          string        `type:"path" placeholder:"FILE" help:"Serve https: PEM file of the certificate and its intermediates."`
	TLSKey           string        `type:"path" placeholder:"FILE" help:"PEM file of the private key of --tls-cert."`
	ClientCA         string        `type:"path" placeholder:"FILE" help:"With --tls-cert: PEM file of the authorities; clients must have a certificate of one of them."`
}

const (
	userIndexer = "indexer" // reads; also the id of the OAuth2 client
	userAdmin   = "admin"
	tokenPath   = "/oauth/token"
)

// on reports whether one of the flags is set.
func (s *secure) on() bool {
	return s.Auth || len(s.ReadAs) > 0 || s.ClientSecretFile != "" || s.WriteTokens != "" || s.TLSCert != "" ||
		s.TLSKey != "" || s.ClientCA != ""
}

func (s *secure) check() error {
	switch {
	case !s.Auth && (len(s.ReadAs) > 0 || s.ClientSecretFile != "" || s.WriteTokens != ""):
		return errors.New("--read-as, --client-secret-file and --write-tokens are for --auth")
	case s.Auth && s.ClientSecretFile == "" && s.WriteTokens == "":
		return errors.New("--auth gives tokens to nobody: add --write-tokens, --client-secret-file, or both")
	case s.TokenLifetime < time.Second:
		return fmt.Errorf("--token-lifetime %s is too short: give at least 1s", s.TokenLifetime)
	case (s.TLSCert == "") != (s.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key belong together: give both")
	case s.ClientCA != "" && s.TLSCert == "":
		return errors.New("--client-ca is for https: give --tls-cert and --tls-key")
	}
	return nil
}

// authority returns an authority with the users and, if there is a secret, the client.
func (s *secure) authority(participantID string) (*sandbox.Authority, error) {
	if !s.Auth {
		return nil, nil
	}
	a := sandbox.NewAuthority(sandbox.AuthorityOptions{ParticipantID: participantID, Lifetime: s.TokenLifetime,
		MaxLifetime: s.MaxTokenLifetime})
	rights := []sandbox.Right{sandbox.CanReadAsAnyParty()}
	if len(s.ReadAs) > 0 {
		rights = nil
		for _, party := range s.ReadAs {
			rights = append(rights, sandbox.CanReadAs(party))
		}
	}
	a.SetUser(sandbox.User{ID: userIndexer, Rights: rights})
	a.SetUser(sandbox.User{ID: userAdmin, Rights: []sandbox.Right{sandbox.ParticipantAdmin()}})
	if s.ClientSecretFile != "" {
		secret, err := readSecret("--client-secret-file", s.ClientSecretFile)
		if err != nil {
			return nil, err
		}
		a.AddClient(userIndexer, secret, userIndexer)
	}
	return a, nil
}

// readSecret reads a secret from a file, without surrounding white space.
func readSecret(flag, file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", flag, err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", fmt.Errorf("read %s %s: it is empty; write the secret into it", flag, file)
	}
	return secret, nil
}

// withTokens serves the authority's token endpoint beside the participant.
func withTokens(a *sandbox.Authority, participant http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == tokenPath {
			a.ServeHTTP(w, r)
			return
		}
		participant.ServeHTTP(w, r)
	})
}

func (s *secure) tokenFile(user string) string { return filepath.Join(s.WriteTokens, user+".token") }

// writeTokens replaces the tokens in the files atomically.
func (s *secure) writeTokens(a *sandbox.Authority) error {
	if err := os.MkdirAll(s.WriteTokens, 0o700); err != nil {
		return fmt.Errorf("--write-tokens: %w", err)
	}
	for _, user := range []string{userIndexer, userAdmin} {
		if err := replaceFile(s.tokenFile(user), a.Token(user)+"\n"); err != nil {
			return fmt.Errorf("--write-tokens: %w", err)
		}
	}
	return nil
}

// replaceFile replaces a file atomically; only its owner may read it.
func replaceFile(name, text string) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // return the first error
	}
	return err
}

// keepTokens writes new tokens at every tick, until the context is done.
func (s *secure) keepTokens(ctx context.Context, a *sandbox.Authority, tick <-chan time.Time) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick:
			if err := s.writeTokens(a); err != nil {
				return err
			}
		}
	}
}

// tlsConfig returns nil where plain http is served.
func (s *secure) tlsConfig() (*tls.Config, error) {
	if s.TLSCert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(s.TLSCert, s.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("read --tls-cert and --tls-key: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if s.ClientCA != "" {
		text, err := os.ReadFile(s.ClientCA)
		if err != nil {
			return nil, fmt.Errorf("read --client-ca: %w", err)
		}
		config.ClientCAs = x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("read --client-ca %s: there is no PEM certificate in it", s.ClientCA)
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return config, nil
}

// howToConnect returns the flags for the indexer, to be pasted. It names files, never their contents.
func (s *secure) howToConnect(url string, scan bool, parties []string) string {
	if !s.on() {
		return ""
	}
	common := s.address("ledger", url)
	var text strings.Builder
	if !s.Auth {
		fmt.Fprintf(&text, "flags of indexer:\n    %s\n", common)
	}
	if s.WriteTokens != "" {
		fmt.Fprintf(&text, "flags of indexer, with a token from a file:\n    %s --ledger-token-file %s\n", common,
			config.ShellWord(s.tokenFile(userIndexer)))
	}
	if s.ClientSecretFile != "" {
		fmt.Fprintf(&text, "flags of indexer, with tokens by OAuth2:\n    %s --ledger-oauth-token-url %s "+
			"--ledger-oauth-client-id %s --ledger-oauth-client-secret-file %s\n",
			common, url+tokenPath, userIndexer, config.ShellWord(s.ClientSecretFile))
	}
	if s.WriteTokens != "" {
		fmt.Fprintf(&text, "and of indexer packages, to change what is vetted:\n    --admin-token-file %s\n",
			config.ShellWord(s.tokenFile(userAdmin)))
	}
	if scan {
		fmt.Fprintf(&text, "and of indexer check and indexer run, for the updates of its network:\n    %s\n",
			s.address("scan", url+scanPath))
	}
	if len(s.ReadAs) > 0 {
		fmt.Fprintf(&text, "and of indexer check, indexer run and backfill, to read as the parties that the user may:\n    "+
			"--parties=%s\n",
			config.ShellWord(strings.Join(s.ReadAs, ",")))
	}
	if s.Auth && len(parties) > 0 {
		const shown = 3
		fmt.Fprintf(&text, "some parties of the ledger, for --read-as here and --parties there:\n")
		for _, party := range parties[:min(len(parties), shown)] {
			fmt.Fprintf(&text, "    %s\n", config.ShellWord(party))
		}
	}
	return text.String()
}

// address returns the flags for a server's URL and trusted authorities.
func (s *secure) address(server, url string) string {
	text := "--" + server + "-url " + url
	if s.TLSCert != "" {
		text += " --" + server + "-ca-file " + config.ShellWord(s.TLSCert)
	}
	if s.ClientCA != "" {
		text += " --" + server + "-cert-file CERTIFICATE --" + server + "-key-file KEY"
	}
	return text
}
