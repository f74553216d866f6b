package sandbox

import (
	"net/http"
	"net/url"
	"strings"
)

// Right is one right of a user.
type Right struct {
	kind  string
	party string
}

// CanReadAs lets a user read what a party sees.
func CanReadAs(party string) Right { return Right{"CanReadAs", party} }

// CanActAs lets a user submit for a party, and read what it sees.
func CanActAs(party string) Right { return Right{"CanActAs", party} }

// CanExecuteAs lets a user execute prepared submissions of a party; it does not let it
// read anything.
func CanExecuteAs(party string) Right { return Right{"CanExecuteAs", party} }

// CanReadAsAnyParty lets a user read what every party sees.
func CanReadAsAnyParty() Right { return Right{kind: "CanReadAsAnyParty"} }

// ParticipantAdmin lets a user administer the participant; it does not let it read
// anything.
func ParticipantAdmin() Right { return Right{kind: "ParticipantAdmin"} }

// User is a user of the participant.
type User struct {
	// ID is 1 to 128 letters, digits and characters of @^$.!`-#+'~_|:().
	ID string
	// PrimaryParty gives no rights; empty: none.
	PrimaryParty string
	// Deactivated users are refused with 403.
	Deactivated bool
	// Rights are listed in this order.
	Rights []Right
}

// knownUser is a user with its rights made ready for asking. It is not changed.
type knownUser struct {
	User
	rights map[Right]bool
}

func known(u User) knownUser {
	k := knownUser{User: u, rights: map[Right]bool{}}
	k.Rights = nil
	for _, right := range u.Rights {
		if !k.rights[right] {
			k.rights[right] = true
			k.Rights = append(k.Rights, right)
		}
	}
	return k
}

// has reports whether the user has a right, or one that implies it.
func (u knownUser) has(right Right) bool {
	return u.rights[right] || right.kind == "CanReadAs" && (u.rights[CanActAs(right.party)] ||
		u.rights[CanReadAsAnyParty()])
}

// authenticatedUser implements GET /v2/authenticated-user.
func (s *Server) authenticatedUser(w http.ResponseWriter, r *http.Request) {
	c := callerOf(r)
	if c == nil {
		writeError(w, refuse(8, "INVALID_TOKEN", "The submitted request is missing a user-id: requests with an empty "+
			"user-id are only supported if there is an authenticated user"))
		return
	}
	writeValue(w, map[string]any{"user": s.shownUser(c.user.User)})
}

func (s *Server) shownUser(u User) map[string]any {
	user := map[string]any{
		"id": u.ID, "primaryParty": u.PrimaryParty, "isDeactivated": u.Deactivated,
		"metadata":           map[string]any{"resourceVersion": "0", "annotations": map[string]string{}},
		"identityProviderId": "",
	}
	if s.opts.Version != "3.4" {
		user["primaryPartyAuthentication"] = false
	}
	return user
}

// userOfRights returns the user whose rights a request asks for; it is still escaped.
func userOfRights(r *http.Request) (id string, ok bool) {
	id, ok = userRightsPath(r)
	return id, ok && r.Method == http.MethodGet
}

// userRightsPath returns the user of whose rights a path is; it is still escaped.
func userRightsPath(r *http.Request) (id string, ok bool) {
	id, ok = strings.CutPrefix(r.URL.EscapedPath(), "/v2/users/")
	if !ok {
		return "", false
	}
	id, ok = strings.CutSuffix(id, "/rights")
	return id, ok && id != "" && !strings.Contains(id, "/")
}

// adminUser is the user that every participant has from its first day.
var adminUser = known(User{ID: "participant_admin", Rights: []Right{ParticipantAdmin()}})

// userRights implements GET /v2/users/{user-id}/rights.
func (s *Server) userRights(w http.ResponseWriter, r *http.Request) {
	escaped, _ := userOfRights(r)
	id, err := url.PathUnescape(escaped)
	if err != nil || !isUserID(id) {
		writeError(w, malformedUserID(id))
		return
	}
	c := callerOf(r)
	user, ok := adminUser, id == adminUser.ID
	if c != nil {
		if id != c.user.ID && !c.user.has(ParticipantAdmin()) {
			writeError(w, permissionDenied())
			return
		}
		user, ok, _ = c.authority.user(id)
	}
	if !ok {
		writeError(w, refuse(11, "USER_NOT_FOUND", "list user rights failed for unknown user \"%s\"", id).about("USER", id))
		return
	}
	writeValue(w, map[string]any{"rights": shownRights(user.Rights)})
}

func shownRights(list []Right) []any {
	rights := make([]any, len(list))
	for i, right := range list {
		value := map[string]string{}
		if right.party != "" {
			value["party"] = right.party
		}
		rights[i] = map[string]any{"kind": map[string]any{right.kind: map[string]any{"value": value}}}
	}
	return rights
}

func malformedUserID(id string) *cantonError {
	return invalidArgument("Malformed user-id: %q is not 1 to 128 letters, digits and characters of %s", id, userIDSymbols)
}

const userIDSymbols = "@^$.!`-#+'~_|:()"

func isUserID(id string) bool {
	for _, c := range []byte(id) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && strings.IndexByte(userIDSymbols, c) < 0 {
			return false
		}
	}
	return id != "" && len(id) <= 128
}
