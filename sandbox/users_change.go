package sandbox

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// changesUsers reports whether a request creates a user, or gives one more rights.
func changesUsers(r *http.Request) bool {
	_, isRights := userRightsPath(r)
	return r.Method == http.MethodPost && (isRights || r.URL.Path == "/v2/users")
}

// changeUsers answers such a request.
func (s *Server) changeUsers(w http.ResponseWriter, r *http.Request) {
	if id, isRights := userRightsPath(r); isRights {
		s.grantRights(w, r, id)
		return
	}
	s.createUser(w, r)
}

// createUser implements POST /v2/users.
func (s *Server) createUser(w http.ResponseWriter, r *http.Request) {
	body, ok := s.body(w, r)
	if !ok {
		return
	}
	var d decoder
	o := d.object(body["user"], "user")
	u := User{
		ID: decode[string](&d, o["id"], "user.id"), PrimaryParty: decode[string](&d, o["primaryParty"], "user.primaryParty"),
		Deactivated: decode[bool](&d, o["isDeactivated"], "user.isDeactivated"), Rights: d.rights(body),
	}
	if !accepted(w, &d, nil) {
		return
	}
	switch {
	case !isUserID(u.ID):
		writeError(w, malformedUserID(u.ID))
	case u.ID == adminUser.ID || !callerOf(r).authority.createUser(u):
		writeError(w, refuse(10, "USER_ALREADY_EXISTS", "creating user failed, as user \"%s\" already exists",
			u.ID).about("USER", u.ID))
	default:
		writeValue(w, map[string]any{"user": s.shownUser(u)})
	}
}

// grantRights implements POST /v2/users/{user-id}/rights; the id is still escaped.
func (s *Server) grantRights(w http.ResponseWriter, r *http.Request, escaped string) {
	body, ok := s.body(w, r)
	if !ok {
		return
	}
	var d decoder
	id, rights := decode[string](&d, body["userId"], "userId"), d.rights(body)
	if body["userId"] == nil {
		d.fail("userId", errors.New("missing required field"))
	}
	if !accepted(w, &d, nil) {
		return
	}
	if named, err := url.PathUnescape(escaped); err != nil || named != id {
		writeError(w, invalidArgument("user-id of the path and of the body differ: %q", id))
		return
	}
	granted, ok := callerOf(r).authority.grantRights(id, rights)
	if !ok {
		writeError(w, refuse(11, "USER_NOT_FOUND", "granting rights failed for unknown user \"%s\"", id).about("USER", id))
		return
	}
	writeValue(w, map[string]any{"newlyGrantedRights": shownRights(granted)})
}

// rights reads the rights of a request.
func (d *decoder) rights(body object) (list []Right) {
	for _, item := range decode[[]object](d, body["rights"], "rights") {
		kind, value := d.variant(item["kind"], "rights.kind")
		right := Right{kind: kind, party: decode[string](d, d.object(d.object(value, kind)["value"], kind)["party"], "party")}
		switch ofParty := kind == "CanReadAs" || kind == "CanActAs" || kind == "CanExecuteAs"; {
		case ofParty && right.party == "":
			d.fail("rights", fmt.Errorf("%s needs a party", kind))
		case !ofParty && (right.party != "" || kind != "CanReadAsAnyParty" && kind != "ParticipantAdmin"):
			d.fail("rights", fmt.Errorf("no such right: %s", kind))
		}
		list = append(list, right)
	}
	return list
}

// createUser adds a user, and reports whether there was none with its id.
func (a *Authority) createUser(u User) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.users[u.ID]; ok {
		return false
	}
	a.users[u.ID] = known(u)
	a.announce()
	return true
}

// grantRights gives a user more rights, and returns those that it had not; ok is false where there is no such user.
func (a *Authority) grantRights(id string, rights []Right) (granted []Right, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	u, ok := a.users[id]
	if !ok {
		return nil, false
	}
	for _, right := range known(User{Rights: rights}).Rights {
		if !u.rights[right] {
			granted = append(granted, right)
		}
	}
	all := u.User
	all.Rights = append(append([]Right{}, u.Rights...), granted...)
	a.users[id] = known(all)
	a.announce()
	return granted, true
}
