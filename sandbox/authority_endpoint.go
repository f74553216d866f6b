package sandbox

import (
	"crypto/subtle"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"time"
)

// oauthClient is a client of the token endpoint; its tokens are for the user.
type oauthClient struct{ secret, user string }

// maxTokenRequest is the largest body of a request for a token, in bytes.
const maxTokenRequest = 64 << 10

// AddClient adds a client of the token endpoint, which gets tokens for the user, or
// replaces it, as when its secret is changed.
func (a *Authority) AddClient(id, secret, user string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clients[id] = oauthClient{secret, user}
}

// oauthError is an error of the token endpoint (RFC 6749, section 5.2).
type oauthError struct {
	Code        string `json:"error"`
	Description string `json:"error_description"`
	status      int
}

func refuseGrant(code, description string) *oauthError {
	e := &oauthError{Code: code, Description: description, status: http.StatusBadRequest}
	if code == "invalid_client" {
		e.status = http.StatusUnauthorized
	}
	return e
}

// ServeHTTP implements http.Handler: the token endpoint for the client credentials
// grant (RFC 6749, section 4.4), at any path.
func (a *Authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.opts.Fault != nil {
		if f := a.opts.Fault(r); f != nil {
			disturbed(w, r, f, a.serveToken)
			return
		}
	}
	a.serveToken(w, r)
}

func (a *Authority) serveToken(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Pragma", "no-cache")
	r.Body = http.MaxBytesReader(w, r.Body, maxTokenRequest)
	answer, refused := a.grant(r)
	if refused == nil {
		writeValue(w, answer)
		return
	}
	if refused.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="sandbox"`)
	}
	if refused.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", http.MethodPost)
	}
	body, err := json.Marshal(refused)
	if err != nil {
		panic(err) // of strings: can not happen
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(refused.status)
	w.Write(body)
}

func (a *Authority) grant(r *http.Request) (map[string]any, *oauthError) {
	if r.Method != http.MethodPost {
		e := refuseGrant("invalid_request", "the method must be POST")
		e.status = http.StatusMethodNotAllowed
		return nil, e
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil ||
		kind != "application/x-www-form-urlencoded" {
		return nil, refuseGrant("invalid_request", "the body must be application/x-www-form-urlencoded")
	}
	if err := r.ParseForm(); err != nil {
		return nil, refuseGrant("invalid_request", "the body can not be read as a form")
	}
	form := r.PostForm
	for name, values := range form {
		if len(values) > 1 {
			return nil, refuseGrant("invalid_request", "a parameter is repeated: "+name)
		}
	}
	id, secret, refused := credentials(r, form)
	if refused != nil {
		return nil, refused
	}

	a.mu.Lock()
	defer a.mu.Unlock()
	client, known := a.clients[id]
	switch kind := form.Get("grant_type"); {
	case subtle.ConstantTimeCompare([]byte(secret), []byte(client.secret)) == 0 || !known:
		return nil, refuseGrant("invalid_client", "the client is unknown or its secret is wrong")
	case kind == "":
		return nil, refuseGrant("invalid_request", "grant_type is missing")
	case kind != "client_credentials":
		return nil, refuseGrant("unsupported_grant_type", "the only grant type is client_credentials")
	}
	scope := form.Get("scope")
	answer := map[string]any{
		"access_token": a.issue(client.user, a.opts.Lifetime, form.Get("audience"), scope),
		"token_type":   "Bearer", "expires_in": int64(a.opts.Lifetime / time.Second),
	}
	if scope != "" {
		answer["scope"] = scope
	}
	return answer, nil
}

// credentials reads the client's id and secret.
func credentials(r *http.Request, form url.Values) (id, secret string, refused *oauthError) {
	id, secret, basic := r.BasicAuth()
	switch {
	case basic && form.Has("client_secret"):
		return "", "", refuseGrant("invalid_request", "the client authenticates in two ways at once")
	case basic:
		var err, err2 error
		id, err = url.QueryUnescape(id) // section 2.3.1: both are encoded as in a form
		secret, err2 = url.QueryUnescape(secret)
		if err != nil || err2 != nil {
			return "", "", refuseGrant("invalid_request", "the basic credentials are not form-encoded")
		}
		if form.Has("client_id") && form.Get("client_id") != id {
			return "", "", refuseGrant("invalid_request", "client_id is not that of the basic credentials")
		}
		return id, secret, nil
	case !form.Has("client_id"):
		return "", "", refuseGrant("invalid_client", "the client does not authenticate")
	}
	return form.Get("client_id"), form.Get("client_secret"), nil
}
