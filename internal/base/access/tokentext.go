package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// readToken returns the token that the text of a file holds: by itself, in quotes, behind "Bearer", or as a token
// endpoint answers it. The error says why there is none, and nothing of the text.
func readToken(text string) (string, error) {
	text = strings.TrimPrefix(text, "\ufeff")
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return "", errors.New("is no text in UTF-8: write it so, without a byte order mark")
	}
	token := strings.TrimSpace(text)
	if strings.HasPrefix(token, "{") {
		return tokenOfAnswer(token)
	}
	token = strings.TrimSpace(unquoted(token))
	for _, before := range []string{"Authorization:", "Bearer "} { // a header, or the part of one
		if len(token) > len(before) && strings.EqualFold(token[:len(before)], before) {
			token = strings.TrimSpace(unquoted(strings.TrimSpace(token[len(before):])))
		}
	}
	if joined := strings.Join(strings.Fields(token), ""); joined != token {
		if _, isJWT := ParseClaims(joined); isJWT && !strings.ContainsAny(token, " \t") { // of one, wrapped into lines
			token = joined
		}
	}
	return token, checkToken(token)
}

// unquoted takes one pair of quotes away.
func unquoted(token string) string {
	for _, quote := range []string{`"`, "'"} {
		if inner, ok := strings.CutPrefix(token, quote); ok {
			if inner, ok = strings.CutSuffix(inner, quote); ok {
				return inner
			}
		}
	}
	return token
}

// tokenOfAnswer returns the token of a token endpoint's answer (RFC 6749, section 5.1).
func tokenOfAnswer(text string) (string, error) {
	var answer struct {
		Token string `json:"access_token"`
		Type  string `json:"token_type"`
	}
	switch err := json.Unmarshal([]byte(text), &answer); {
	case err != nil: // the error may quote the token
		return "", errors.New("begins as JSON and is none, or its access_token is no text")
	case answer.Token == "":
		return "", errors.New("is JSON without an access_token: write the token alone")
	case answer.Type != "" && !strings.EqualFold(answer.Type, "Bearer"):
		return "", errors.New("is an answer with a token of another type than Bearer")
	}
	return answer.Token, checkToken(answer.Token)
}

// checkToken returns why a text is no token.
func checkToken(token string) error {
	switch lines := strings.Count(token, "\n") + 1; {
	case token == "":
		return errors.New("is empty")
	case lines > 1:
		return fmt.Errorf("must hold one token and nothing else, and has %d lines", lines)
	case strings.ContainsAny(token, " \t"):
		return errors.New("must hold one token and nothing else, and has several words")
	case strings.ContainsAny(token, "\"'`{}[]"):
		return errors.New("must hold one token and nothing else, and has quotes or brackets in it")
	case strings.EqualFold(token, "Bearer"), token == "null": // as a script writes it that found none
		return errors.New("holds no token, but what is written where one is missing")
	case !sendable(token):
		return errors.New("must hold one token and nothing else, and has characters that a header can't hold")
	}
	return nil
}
