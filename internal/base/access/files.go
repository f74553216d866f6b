package access

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"unicode"
)

// readFile reads a regular file, or a link to one.
func readFile(flag, path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // else opening a pipe waits for a writer
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
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	if len(text) > maxFile {
		return "", fmt.Errorf("%s: %s is larger than %d bytes", flag, path, maxFile)
	}
	return string(text), nil
}

// maxFile is the largest file that is read, in bytes; real ones have a few thousand.
const maxFile = 1 << 20

// tokenOfFile reads the bearer token. A missing or empty file is an ordinary error: it may be being replaced, and the
// next request reads it again.
func (a *Access) tokenOfFile() (string, error) {
	flag := a.cfg.tokenFlag()
	text, err := readFile(flag, a.cfg.TokenFile)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(text)
	if err := checkToken(token); err != nil {
		return "", fmt.Errorf("%s: %s %w", flag, a.cfg.TokenFile, err)
	}
	a.secrets.addToken(token)
	return token, nil
}

// checkToken returns why a text is no token.
func checkToken(token string) error {
	switch lines := strings.Count(token, "\n") + 1; {
	case token == "":
		return errors.New("is empty")
	case token == "null", strings.EqualFold(token, "Bearer"): // as a script writes it that found none
		return errors.New("holds no token, but what is written where one is missing")
	case strings.ContainsAny(token, "\"'`{}[]"):
		return errors.New("must hold the token and nothing else, and has quotes or brackets in it")
	case lines > 1:
		return fmt.Errorf("must hold the token and nothing else, and has %d lines", lines)
	case strings.ContainsAny(token, " \t"):
		return errors.New("must hold the token and nothing else, not even a Bearer before it, and has several words")
	case !sendable(token):
		return errors.New("must hold the token and nothing else, and has characters that a header can't hold")
	}
	return nil
}

// sendable reports whether a header can hold a token.
func sendable(token string) bool {
	for _, r := range token {
		if r <= ' ' || r > '~' {
			return false
		}
	}
	return token != ""
}

// clientSecret reads the OAuth2 client secret: one line, which may contain spaces.
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
