package participant

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"

	"ledgerindexer/internal/base/jsonhttp"
)

// User is the user that the token belongs to, with its rights.
type User struct {
	ID          string
	Deactivated bool

	ReadAsAnyParty   bool // by CanReadAsAnyParty or CanActAsAnyParty
	ParticipantAdmin bool
	ReadAs           []string // parties of CanReadAs and CanActAs, sorted, without repetition
}

// User returns the token's user with its rights. It needs no Discover, and only a valid token.
//
// Errors: ledger.ErrNotOffered where the server has no user management, or does not authenticate users.
func (c *Client) User(ctx context.Context) (User, error) {
	u, err := c.whoami(ctx)
	if err == nil {
		err = c.rightsOf(ctx, &u)
	}
	if err != nil {
		return User{}, fmt.Errorf("ask whose token this is: %w", c.explain(ctx, err, purpose{about: aboutUser}))
	}
	return u, nil
}

func (c *Client) whoami(ctx context.Context) (User, error) {
	const operation = "authenticated-user"
	a, err := c.do(ctx, jsonhttp.Request{Operation: operation, Path: pathAuthenticatedUser, MaxBytes: tinyBody})
	if err != nil {
		return User{}, err
	}
	var answer struct {
		User struct {
			ID          string `json:"id"`
			Deactivated bool   `json:"isDeactivated"`
		} `json:"user"`
	}
	if err := json.Unmarshal(a.Body, &answer); err != nil {
		return User{}, c.misread(operation, a, err)
	}
	switch {
	case answer.User.ID == "":
		return User{}, contradiction(operation, "the answer names no user")
	case c.access.Repeats(answer.User.ID):
		return User{}, contradiction(operation, "the answer's user holds a secret that was sent")
	}
	return User{ID: answer.User.ID, Deactivated: answer.User.Deactivated}, nil
}

func (c *Client) rightsOf(ctx context.Context, u *User) error {
	const operation = "user-rights"
	a, err := c.do(ctx, jsonhttp.Request{Operation: operation, Path: pathUsers + "/" + segment(u.ID) + "/rights",
		MaxBytes: tinyBody})
	if err != nil {
		return err
	}
	type ofParty struct {
		Value struct {
			Party string `json:"party"`
		} `json:"value"`
	}
	var answer struct {
		Rights []struct {
			Kind struct { // a sum type, with the kinds that concern reading
				CanActAs          *ofParty  `json:"CanActAs"`
				CanReadAs         *ofParty  `json:"CanReadAs"`
				CanActAsAnyParty  *struct{} `json:"CanActAsAnyParty"`
				CanReadAsAnyParty *struct{} `json:"CanReadAsAnyParty"`
				ParticipantAdmin  *struct{} `json:"ParticipantAdmin"`
			} `json:"kind"`
		} `json:"rights"`
	}
	if err := json.Unmarshal(a.Body, &answer); err != nil {
		return c.misread(operation, a, err)
	}
	for _, r := range answer.Rights {
		for _, as := range []*ofParty{r.Kind.CanActAs, r.Kind.CanReadAs} {
			if as != nil && as.Value.Party != "" {
				u.ReadAs = append(u.ReadAs, as.Value.Party)
			}
		}
		u.ReadAsAnyParty = u.ReadAsAnyParty || r.Kind.CanReadAsAnyParty != nil || r.Kind.CanActAsAnyParty != nil
		u.ParticipantAdmin = u.ParticipantAdmin || r.Kind.ParticipantAdmin != nil
	}
	u.ReadAs = set(u.ReadAs)
	return nil
}

// segment escapes a user's id for a path. An id of dots only must not lead to another path.
func segment(id string) string {
	if strings.Trim(id, ".") == "" {
		return strings.ReplaceAll(id, ".", "%2E")
	}
	return url.PathEscape(id)
}
