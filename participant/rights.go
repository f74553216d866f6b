package participant

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"ledgerindexer/internal/access"
	"ledgerindexer/ledger"
)

// right is what the token's user must be allowed. The zero value is nothing but a valid token.
type right struct {
	admin    bool     // participant admin
	anyParty bool     // CanReadAsAnyParty
	parties  []string // CanReadAs or CanActAs for each; empty with anyParty
}

var participantAdmin = right{admin: true}

// readAs is the right to read as these parties, or as any where there are none.
func readAs(parties []string) right {
	parties = set(parties)
	return right{anyParty: len(parties) == 0, parties: parties}
}

// ofScope is the right to read the client's scope.
func (c *Client) ofScope() right { return readAs(c.scope.Parties) }

// missing is what a user lacks of a right.
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

// use is what the right is needed for.
func (r right) use() string {
	const shown = 3
	switch {
	case r.admin:
		return "change vetted packages, which takes a participant admin"
	case r.anyParty:
		return "read as any party"
	case len(r.parties) > shown:
		return fmt.Sprintf("read as %s and %d more parties", strings.Join(r.parties[:shown], ", "), len(r.parties)-shown)
	case len(r.parties) > 0:
		return "read as " + strings.Join(r.parties, ", ")
	}
	return "in"
}

// grant says what to do about a right that is missing.
func (r right) grant() string {
	switch {
	case r.admin:
		return "grant the user participant admin, or use the token of one who has it"
	case r.anyParty:
		return "grant the user CanReadAsAnyParty, or name the parties it may read as with --parties"
	}
	return "grant the user CanReadAs (or CanActAs) for each party of --parties"
}

// patience is how long is asked what rights there are: it is only to explain an error.
const patience = 10 * time.Second

// forbidden says which right is missing where the participant answered 403, which says nothing but that: it is a
// *ledger.Problem around err. Rights can be granted while nothing restarts, but nobody does so without being told.
func (c *Client) forbidden(ctx context.Context, err error, need right) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p := &ledger.Problem{Err: err}
	u, unknown := c.whoami(ctx)
	if unknown == nil {
		unknown = c.rightsOf(ctx, &u)
	}
	switch lacks := need.missing(u); {
	case unknown != nil: // not even who it is: the user may not be let in at all
		claims := c.claims(ctx)
		who := "the token's user"
		if id := cmp.Or(u.ID, claims.Subject); id != "" {
			who = "user " + c.clean(id)
		}
		p.What = fmt.Sprintf("the participant does not let %s %s", who, need.use())
		p.Do = "see that the user exists and is not deactivated"
		if len(claims.Audience) > 0 {
			p.Do += fmt.Sprintf(", and that the token's audience %q is this participant", access.Excerpt(strings.Join(claims.Audience, " ")))
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

// claims are what the token says of itself, as far as it can be read.
func (c *Client) claims(ctx context.Context) access.Claims {
	token, err := c.access.Token(ctx)
	if err != nil {
		return access.Claims{}
	}
	claims, _ := access.ParseClaims(token)
	return claims
}
