package participant

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
)

// User is who the token belongs to, and what it may do.
type User struct {
	ID           string
	PrimaryParty string // empty: none
	Deactivated  bool

	ReadAsAnyParty   bool // by CanReadAsAnyParty or CanActAsAnyParty
	ParticipantAdmin bool
	ReadAs           []string // parties of CanReadAs and CanActAs, sorted, without repetition
}

// User asks whose token this is and what rights the user has. It needs no Discover, and no right but a valid token.
//
// Errors: ledger.ErrNotOffered where the server has no user management, or does not ask who its users are.
func (c *Client) User(ctx context.Context) (User, error) {
	u, err := c.whoami(ctx)
	if err == nil {
		err = c.rightsOf(ctx, &u)
	}
	if err != nil {
		return User{}, fmt.Errorf("ask whose token this is: %w", c.explain(ctx, err, asked{about: aboutUser}))
	}
	return u, nil
}

func (c *Client) whoami(ctx context.Context) (User, error) {
	const operation = "authenticated-user"
	a, err := c.do(ctx, request{operation: operation, path: pathAuthenticatedUser, limit: tinyBody})
	if err != nil {
		return User{}, err
	}
	var told struct {
		User struct {
			ID           string `json:"id"`
			PrimaryParty string `json:"primaryParty"`
			Deactivated  bool   `json:"isDeactivated"`
		} `json:"user"`
	}
	if err := json.Unmarshal(a.Body, &told); err != nil {
		return User{}, c.misread(operation, a, err)
	}
	switch {
	case told.User.ID == "":
		return User{}, misled(operation, "the answer names no user")
	case c.access.Repeats(told.User.ID):
		return User{}, misled(operation, "the answer's user holds a secret that was sent")
	}
	return User{ID: told.User.ID, PrimaryParty: told.User.PrimaryParty, Deactivated: told.User.Deactivated}, nil
}

func (c *Client) rightsOf(ctx context.Context, u *User) error {
	const operation = "user-rights"
	a, err := c.do(ctx, request{operation: operation, path: pathUsers + "/" + segment(u.ID) + "/rights", limit: tinyBody})
	if err != nil {
		return err
	}
	type ofParty struct {
		Value struct {
			Party string `json:"party"`
		} `json:"value"`
	}
	var told struct {
		Rights []struct {
			Kind struct { // a sum type; kinds that are not here say nothing about reading
				CanActAs          *ofParty  `json:"CanActAs"`
				CanReadAs         *ofParty  `json:"CanReadAs"`
				CanActAsAnyParty  *struct{} `json:"CanActAsAnyParty"`
				CanReadAsAnyParty *struct{} `json:"CanReadAsAnyParty"`
				ParticipantAdmin  *struct{} `json:"ParticipantAdmin"`
			} `json:"kind"`
		} `json:"rights"`
	}
	if err := json.Unmarshal(a.Body, &told); err != nil {
		return c.misread(operation, a, err)
	}
	for _, r := range told.Rights {
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

// segment escapes a user's id for a path. Ids may hold most punctuation, and one of dots alone is no way up.
func segment(id string) string {
	if strings.Trim(id, ".") == "" {
		return strings.ReplaceAll(id, ".", "%2E")
	}
	return url.PathEscape(id)
}
