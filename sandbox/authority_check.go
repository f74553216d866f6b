package sandbox

import (
	"context"
	"crypto/subtle"
	"maps"
	"net/http"
	"strings"
)

// caller is whom a request comes from. Where a handler finds none, it may do everything:
// the server asks for no user's token.
type caller struct {
	authority *Authority
	user      knownUser // as it was when the request came
	token     payload
}

type callerKey struct{}

func withCaller(r *http.Request, c *caller) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
}

func callerOf(r *http.Request) *caller {
	c, _ := r.Context().Value(callerKey{}).(*caller)
	return c
}

// versionPath is open to all, but for a user that is not let in at all.
const versionPath = "/v2/version"

// authenticated finds out whom a request comes from; one that is refused has been
// answered when ok is false.
func (s *Server) authenticated(w http.ResponseWriter, r *http.Request) (c *caller, ok bool) {
	token, ok := bearerToken(r)
	if !ok {
		writeText(w, http.StatusBadRequest, "Invalid value for: header Authorization")
		return nil, false
	}
	open := r.URL.Path == versionPath
	var refused *cantonError
	switch {
	case s.opts.Authority != nil:
		if c, refused = s.opts.Authority.caller(token); refused == nil && !open {
			refused = c.valid(s.history.ParticipantID())
		}
	case s.opts.Token != "" && !open && subtle.ConstantTimeCompare([]byte(token), []byte(s.opts.Token)) == 0:
		refused = unauthenticated()
	}
	if refused != nil {
		writeError(w, refused)
		return nil, false
	}
	return c, true
}

// bearerToken returns a request's token; another scheme counts as none. It is not ok if
// the scheme is there and the token is not.
func bearerToken(r *http.Request) (token string, ok bool) {
	const scheme = "bearer"
	header := r.Header.Get("Authorization")
	if len(header) < len(scheme) || !strings.EqualFold(header[:len(scheme)], scheme) {
		return "", true
	}
	return strings.CutPrefix(header[len(scheme):], " ")
}

// caller finds the user of a token. Of a token that is not accepted there is none; a
// user that the participant does not let in is refused.
func (a *Authority) caller(token string) (*caller, *cantonError) {
	p, ok := a.verify(token)
	if !ok || !accepts(p.Audience) {
		return nil, nil
	}
	u, ok, _ := a.user(p.Subject)
	if !ok || u.Deactivated {
		return nil, permissionDenied().with("ledger_api_error", "invalid token")
	}
	return &caller{authority: a, user: u, token: p}, nil
}

// accepts reports whether an audience is that of participants, be it this one or not.
func accepts(audience string) bool {
	id, ok := strings.CutPrefix(audience, participantAudience)
	return ok && id != ""
}

// valid refuses a request without an accepted token, or with one for another participant.
func (c *caller) valid(participant string) *cantonError {
	switch {
	case c == nil:
		return unauthenticated()
	case c.token.Audience != participantAudience+participant:
		return permissionDenied()
	}
	return nil
}

// allowed reports whether the user of a request has all of the rights; if not the
// request has been answered.
func allowed(w http.ResponseWriter, r *http.Request, needed ...Right) bool {
	c := callerOf(r)
	if c == nil {
		return true
	}
	for _, right := range needed {
		if !c.user.has(right) {
			writeError(w, permissionDenied())
			return false
		}
	}
	return true
}

// administrators lets nobody else at an operation.
func administrators(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if allowed(w, r, ParticipantAdmin()) {
			next(w, r)
		}
	}
}

// needs returns the rights to read what the format asks for.
func (f *eventFormat) needs() (list []Right) {
	if f == nil {
		return nil
	}
	for party := range f.ByParty {
		list = append(list, CanReadAs(party))
	}
	if f.Any != nil {
		list = append(list, CanReadAsAnyParty())
	}
	return list
}

// needs returns the rights to read what the format asks for.
func (f *updateFormat) needs() []Right {
	if f == nil {
		return nil
	}
	list := append(f.Transactions.needs(), f.Reassignments.needs()...)
	if f.Topology {
		list = append(list, readAsEach(f.TopologyParties)...)
	}
	return list
}

// readAsEach returns the rights to read for the parties, or for all where none is named.
func readAsEach(parties []string) (list []Right) {
	if len(parties) == 0 {
		return []Right{CanReadAsAnyParty()}
	}
	for _, party := range parties {
		list = append(list, CanReadAs(party))
	}
	return list
}

// watch refuses a running read if its user's rights are not those that it began
// with. The channel is closed when it is time to watch again.
func (c *caller) watch() (<-chan struct{}, *cantonError) {
	if c == nil {
		return nil, nil
	}
	now, ok, changed := c.authority.user(c.user.ID)
	if !ok || now.Deactivated || !maps.Equal(now.rights, c.user.rights) {
		return nil, refuse(2, "STALE_STREAM_AUTHORIZATION", "Stale stream authorization. Retry quickly.")
	}
	return changed, nil
}

// expired refuses to deliver more if the token ended since the read began.
func (c *caller) expired() *cantonError {
	if c == nil || c.token.valid(c.authority.opts.Now()) {
		return nil
	}
	return refuse(2, "ACCESS_TOKEN_EXPIRED", "JWT token has expired")
}
