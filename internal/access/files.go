package access

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"unicode"
)

// longestFile bounds what is read of a file, in bytes; real ones are a few thousand.
const longestFile = 1 << 20

// readFile reads a regular file, or what a link to one leads to.
func readFile(flag, path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe's would wait for a writer otherwise
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s: %s is no regular file", flag, path)
	}
	text, err := io.ReadAll(io.LimitReader(f, longestFile+1))
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	if len(text) > longestFile {
		return "", fmt.Errorf("%s: %s is larger than %d bytes", flag, path, longestFile)
	}
	return string(text), nil
}

// tokenOfFile reads the bearer token. A file that is missing or empty for the moment while it is replaced is an error
// as others: it is read again with the next request.
func (a *Access) tokenOfFile() (string, error) {
	flag := a.cfg.tokenFlag()
	text, err := readFile(flag, a.cfg.TokenFile)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(text)
	switch {
	case token == "":
		return "", fmt.Errorf("%s: %s is empty", flag, a.cfg.TokenFile)
	case !sendable(token):
		return "", fmt.Errorf("%s: %s must hold one token and nothing else", flag, a.cfg.TokenFile)
	}
	a.secrets.addToken(token)
	return token, nil
}

// sendable says whether a token can stand in a header.
func sendable(token string) bool {
	for _, r := range token {
		if r <= ' ' || r > '~' {
			return false
		}
	}
	return token != ""
}

// clientSecret reads the secret of OAuth2. It may have spaces in it, but is one line.
func (a *Access) clientSecret() (string, error) {
	flag, path := a.Flag("oauth-client-secret-file"), a.cfg.OAuth.ClientSecretFile
	text, err := readFile(flag, path)
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(text)
	switch {
	case secret == "":
		return "", fmt.Errorf("%s: %s is empty", flag, path)
	case strings.ContainsFunc(secret, unicode.IsControl):
		return "", fmt.Errorf("%s: %s must hold one secret and nothing else", flag, path)
	}
	a.secrets.addClient(a.cfg.OAuth.ClientID, secret)
	return secret, nil
}
