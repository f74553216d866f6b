package access

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Which texts are redacted before something is printed: see secrets.
const (
	// minSecret is the length of the shortest text that is redacted, in bytes. A shorter one would be redacted within
	// ordinary words, which would reveal it.
	minSecret = 4
	// remembered is how many secrets of each kind are redacted. Older ones are no longer in use.
	remembered = 16
)

// secrets holds the texts that must not be printed. The zero value is ready.
type secrets struct {
	mu       sync.RWMutex
	tokens   [][]string // each with its forms, the latest last
	clients  [][]string
	user     []string
	replacer *strings.Replacer // nil: there are none
}

// addToken adds a token, and the parts of a JWT, which a server may print separately.
func (s *secrets) addToken(token string) {
	s.add(&s.tokens, token, func() []string {
		forms := formsOf(token, "[token]")
		if _, isJWT := ParseClaims(token); isJWT {
			for _, part := range strings.Split(token, ".")[1:] {
				forms = append(forms, formsOf(part, "[token]")...)
			}
		}
		return forms
	})
}

// addClient adds a client secret, also as in the header of a token request.
func (s *secrets) addClient(id, secret string) {
	s.add(&s.clients, secret, func() []string {
		basic := base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(id) + ":" + url.QueryEscape(secret)))
		return append(formsOf(secret, "[secret]"), formsOf(basic, "[secret]")...)
	})
}

// addUser adds the password of a URL, also as in the header of a request.
func (s *secrets) addUser(user *url.Userinfo) {
	password, _ := user.Password()
	basic := base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user = append(formsOf(password, "[password]"), formsOf(basic, "[password]")...)
	s.rebuild()
}

// add adds a secret to its kind, unless it is there already.
func (s *secrets) add(kind *[][]string, secret string, forms func() []string) {
	known := func(list []string) bool { return len(list) > 0 && list[0] == secret }
	s.mu.RLock()
	there := slices.ContainsFunc(*kind, known)
	s.mu.RUnlock()
	if there || len(secret) < minSecret {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(*kind, known) {
		return
	}
	*kind = append(*kind, forms())
	*kind = (*kind)[max(0, len(*kind)-remembered):]
	s.rebuild()
}

// formsOf returns pairs of a text and its replacement: for the secret as it is, and encoded for forms, JSON and HTML.
func formsOf(secret, instead string) (pairs []string) {
	if len(secret) < minSecret {
		return nil
	}
	quoted, _ := json.Marshal(secret) // can't fail for a string
	for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret), html.EscapeString(secret),
		string(quoted[1 : len(quoted)-1])} {
		if !slices.Contains(pairs, form) {
			pairs = append(pairs, form, instead)
		}
	}
	return pairs
}

// rebuild rebuilds the replacer. Longer texts come first: a secret may be part of another.
func (s *secrets) rebuild() {
	type pair struct{ form, instead string }
	var all []pair
	for _, list := range slices.Concat(s.tokens, s.clients, [][]string{s.user}) {
		for i := 0; i+1 < len(list); i += 2 {
			all = append(all, pair{list[i], list[i+1]})
		}
	}
	slices.SortStableFunc(all, func(a, b pair) int { return len(b.form) - len(a.form) })
	var flat []string
	for _, p := range all {
		flat = append(flat, p.form, p.instead)
	}
	s.replacer = strings.NewReplacer(flat...)
}

// longSecret is the length, in bytes, from which a secret is not part of a name by chance.
const longSecret = 20

// within reports whether data equals a secret, or contains a long one.
func (s *secrets) within(data string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, forms := range slices.Concat(s.tokens, s.clients, [][]string{s.user}) {
		for i := 0; i < len(forms); i += 2 { // pairs of a form and its replacement
			if data == forms[i] || len(forms[i]) >= longSecret && strings.Contains(data, forms[i]) {
				return true
			}
		}
	}
	return false
}

func (s *secrets) redact(text string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.replacer == nil {
		return text
	}
	return s.replacer.Replace(text)
}
