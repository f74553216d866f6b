package participant

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/ledger"
)

// right is what the token's user must be allowed to do. The zero value needs only a valid token.
type right struct {
	admin    bool     // participant admin
	anyParty bool     // CanReadAsAnyParty
	parties  []string // CanReadAs or CanActAs for each; empty with anyParty
}

var participantAdmin = right{admin: true}

// readAs returns the right to read as these parties, or as any party if there are none.
func readAs(parties []string) right {
	parties = set(parties)
	return right{anyParty: len(parties) == 0, parties: parties}
}

func (c *Client) scopeRight() right { return readAs(c.scope.Parties) }

// missing returns the part of a right that a user lacks.
func (r right) missing(u User) (lacks right) {
	lacks.admin = r.admin && !u.ParticipantAdmin
	if u.ReadAsAnyParty {
		return lacks
	}
	lacks.anyParty = r.anyParty
	for _, party := range r.parties {
		if !slices.Contains(u.ReadAs, party) {
			lacks.parties = append(lacks.parties, party)
		}
	}
	return lacks
}

func (r right) none() bool { return !r.admin && !r.anyParty && len(r.parties) == 0 }

// String names the rights as an operator grants them.
func (r right) String() string {
	switch {
	case r.admin:
		return "participant admin"
	case r.anyParty:
		return "CanReadAsAnyParty"
	case len(r.parties) > 1:
		return fmt.Sprintf("CanReadAs for party %s (and %d more)", r.parties[0], len(r.parties)-1)
	case len(r.parties) == 1:
		return "CanReadAs for party " + r.parties[0]
	}
	return "nothing but a valid token"
}

// use returns what the right allows, as the end of the sentence "does not let the user …".
func (r right) use() string {
	const maxNamed = 3
	switch {
	case r.admin:
		return "change vetted packages, which takes a participant admin"
	case r.anyParty:
		return "read as any party"
	case len(r.parties) > maxNamed:
		return fmt.Sprintf("read as %s and %d more parties", strings.Join(r.parties[:maxNamed], ", "),
			len(r.parties)-maxNamed)
	case len(r.parties) > 0:
		return "read as " + strings.Join(r.parties, ", ")
	}
	return "in"
}

// grant returns the cure for a missing right.
func (r right) grant() string {
	switch {
	case r.admin:
		return "grant the user participant admin, or use the token of one who has it"
	case r.anyParty:
		return "grant the user CanReadAsAnyParty, or name the parties it may read as with --parties"
	}
	return "grant the user CanReadAs (or CanActAs) for each party of --parties"
}

// rightsTimeout limits the requests for the user's rights: they only serve to explain an error.
const rightsTimeout = 10 * time.Second

// forbidden returns a *ledger.Problem around err, a 403 of the participant, that names the missing right: the answer
// itself does not.
func (c *Client) forbidden(ctx context.Context, err error, need right) error {
	ctx, cancel := context.WithTimeout(ctx, rightsTimeout)
	defer cancel()
	p := &ledger.Problem{Err: err}
	u, unknown := c.whoami(ctx)
	if unknown == nil {
		unknown = c.rightsOf(ctx, &u)
	}
	switch lacks := need.missing(u); {
	case unknown != nil: // the user may not be admitted at all
		claims := c.claims(ctx)
		who := "the token's user"
		if id := cmp.Or(u.ID, claims.Subject); id != "" {
			who = "user " + c.clean(id)
		}
		p.What = fmt.Sprintf("the participant does not let %s %s", who, need.use())
		p.Do = "see that the user exists and is not deactivated"
		if len(claims.Audience) > 0 {
			p.Do += fmt.Sprintf(", and that the token's audience %q is this participant",
				access.Excerpt(strings.Join(claims.Audience, " ")))
		}
		if !need.none() {
			p.Do = need.grant() + "; where that is so, " + p.Do
		}
	case lacks.none():
		p.What = fmt.Sprintf("the participant refuses user %s, who has the right that is needed (%s)", c.clean(u.ID), need)
		p.Do = "see whether the user was deactivated, or the rights were granted a moment ago: then start again"
	default:
		p.What = fmt.Sprintf("user %s lacks %s", c.clean(u.ID), lacks)
		p.Do = lacks.grant()
	}
	return p
}

func (c *Client) claims(ctx context.Context) access.Claims {
	token, err := c.access.Token(ctx)
	if err != nil {
		return access.Claims{}
	}
	claims, _ := access.ParseClaims(token)
	return claims
}
