package check

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"ledgerindexer/ledger"
	"ledgerindexer/participant"
)

// triedParties is for how many parties reading is tried one by one, if the user's rights are not known.
const triedParties = 20

// discoveries is the largest number of sequential requests of a discovery.
const discoveries = 8

// namedParties is how many parties a finding names.
const namedParties = 20

// checkScope tries to read the scope.
func (c *checker) checkScope(ctx context.Context) {
	s, l := c.section(GroupScope), &c.ledger
	s.ok("scope", "%s", describeScope(c.cfg.Scope))
	if left := c.cfg.Scope.LeftOut(); len(left) > 0 {
		s.ok("left out", "%s. Choose before the first start: to have it later takes another database or pair of schemas",
			strings.Join(left, "; "))
	}
	err := c.tryRead(ctx, l.client)
	if err == nil {
		l.reads = true
		s.ok("reading", "it may be read, and nothing in it is unknown to the participant")
	} else {
		c.reportUnreadable(ctx, s, err)
	}
	c.checkHosting(ctx, s)
}

// tryRead reads as the daemon does, from the ledger end, so that next to nothing is returned.
func (c *checker) tryRead(ctx context.Context, client *participant.Client) error {
	discovery, cancel := context.WithTimeout(ctx, discoveries*c.timeout)
	defer cancel()
	if _, err := client.Discover(discovery); err != nil {
		return err
	}
	within, cancel := c.step(ctx)
	defer cancel()
	after, err := client.LedgerEnd(within)
	if err != nil && !errors.Is(err, ledger.ErrNotOffered) {
		return err
	}
	_, _, err = client.TailUpdates(within, after, 1, time.Millisecond)
	return err
}

func describeScope(scope ledger.Scope) string {
	parts := []string{"as any party"}
	if len(scope.Parties) > 0 {
		parts[0] = "as " + some(scope.Parties)
	}
	if len(scope.Templates) > 0 {
		parts = append(parts, "templates "+some(scope.Templates))
	} else {
		parts = append(parts, "every template")
	}
	if len(scope.Interfaces) > 0 {
		parts = append(parts, "views of "+some(scope.Interfaces))
	}
	parts = append(parts, string(scope.Shape))
	for _, part := range []struct {
		read bool
		name string
	}{{scope.Blobs, "blobs"}, {scope.Reassignments, "reassignments"}, {scope.Topology, "topology events"}} {
		if part.read {
			parts = append(parts, part.name)
		}
	}
	return strings.Join(parts, "; ")
}

// reportUnreadable reports why the scope can't be read, and proposes a scope that can.
func (c *checker) reportUnreadable(ctx context.Context, s section, err error) {
	what, do := explained(err)
	if !forbidden(err) {
		s.problem("reading", what, do)
		return
	}
	if p, ok := errors.AsType[*ledger.Problem](err); ok {
		what = p.What // the server's message does not mention rights
	}
	if len(c.cfg.Scope.Parties) == 0 {
		if c.ledger.user == nil || c.ledger.user.ReadAsAnyParty { // the user may have the right
			s.problem("reading", what, do)
			return
		}
		c.propose(s, what, "grant the user CanReadAsAnyParty", "read as the parties that it may read as",
			c.ledger.user.ReadAs)
		return
	}
	may, mayNot := c.readableParties(ctx)
	switch known := c.ledger.user != nil || len(may) > 0; {
	case len(mayNot) == 0:
		s.problem("reading", what, do)
	case !known: // the cause may be another one, which affects everything
		s.problem("reading", "the user may not read as "+upTo(namedParties, mayNot), do)
	default:
		c.propose(s, "the user may not read as "+upTo(namedParties, mayNot), "grant the user CanReadAs for each of them",
			"leave them out", may)
	}
}

// proposal is a finding that proposes other parties.
type proposal struct {
	parties []string
	finding int    // its index
	grant   string // what to do instead
}

// propose reports which right to grant, or which parties to read as instead.
func (c *checker) propose(s section, what, grant, instead string, parties []string) {
	flag := partiesFlag(parties)
	if flag == "" {
		if len(c.cfg.Scope.Parties) == 0 {
			grant += ", or CanReadAs for each party that is to be read, and name these with --parties"
		}
		s.problem("reading", what, grant)
		return
	}
	c.ledger.proposal = &proposal{parties: parties, finding: len(c.report.Findings), grant: grant}
	s.problem("reading", what, grant+", or "+instead, flag)
}

// keepScope removes a proposal that `run` would refuse because the database holds another scope.
func (c *checker) keepScope() {
	p, contents := c.ledger.proposal, c.stored.contents
	if p == nil || len(contents.Scopes) == 0 && contents.Snapshot == nil {
		return
	}
	scope := c.cfg.Scope
	scope.Parties = p.parties
	isStored := contents.Snapshot != nil && contents.SnapshotScope == scope.Hash()
	for _, stored := range contents.Scopes {
		isStored = isStored || stored.Hash() == scope.Hash()
	}
	if isStored {
		return
	}
	f := &c.report.Findings[p.finding]
	f.Do, f.Paste = p.grant+": the database holds a scope already, so reading as other parties takes another database", nil
}

// forbidden reports whether a participant refused because of a missing right.
func forbidden(err error) bool {
	var e *participant.Error
	return errors.As(err, &e) && e.Status == http.StatusForbidden && e.Code != ""
}

// readableParties returns the parties of the scope that the user may and may not read as: by the user's rights, or,
// where these are not known, by trying. A party for which neither is known is in neither list.
func (c *checker) readableParties(ctx context.Context) (may, mayNot []string) {
	parties := slices.Compact(slices.Sorted(slices.Values(c.cfg.Scope.Parties)))
	if u := c.ledger.user; u != nil {
		for _, party := range parties {
			if u.ReadAsAnyParty || slices.Contains(u.ReadAs, party) {
				may = append(may, party)
			} else {
				mayNot = append(mayNot, party)
			}
		}
		return may, mayNot
	}
	within, cancel := context.WithTimeout(ctx, 6*c.timeout) // for all of them, however slow the server
	defer cancel()
	for _, party := range parties[:min(len(parties), triedParties)] {
		switch err := c.tryParty(within, party); {
		case err == nil:
			may = append(may, party)
		case forbidden(err):
			mayNot = append(mayNot, party)
		}
	}
	return may, mayNot
}

func (c *checker) tryParty(ctx context.Context, party string) error {
	scope := c.cfg.Scope
	scope.Parties = []string{party}
	client, err := participant.New(participant.Config{URL: c.cfg.LedgerURL, Access: c.cfg.LedgerAccess}, scope)
	if err != nil {
		return err
	}
	defer client.Close()
	c.redact = append(c.redact, client.Access().Redact)
	return c.tryRead(ctx, client)
}

// checkHosting warns of parties that this participant does not host: it does not have all of their contracts.
func (c *checker) checkHosting(ctx context.Context, s section) {
	parties := slices.Compact(slices.Sorted(slices.Values(c.cfg.Scope.Parties)))
	if len(parties) == 0 {
		return
	}
	const most = 100 // takes several requests
	within, cancel := c.step(ctx)
	defer cancel()
	hosted, err := c.ledger.client.Hosted(within, parties[:min(len(parties), most)])
	if err != nil {
		s.note("parties", "whether the participant hosts them is not known")
		return
	}
	var unknown, elsewhere []string
	for _, party := range parties[:min(len(parties), most)] {
		switch here, known := hosted[party]; {
		case !known:
			unknown = append(unknown, party)
		case !here:
			elsewhere = append(elsewhere, party)
		}
	}
	if len(unknown) > 0 {
		s.warn("parties", "the participant does not know "+upTo(namedParties, unknown), "check the names in --parties: "+
			"with an unknown party nothing comes, and no error")
	}
	if len(elsewhere) > 0 {
		s.warn("parties", "the participant does not host "+upTo(namedParties, elsewhere)+" (or the party belongs to "+
			"another identity provider than the user)",
			"read a party from a participant that hosts it: what others see of it is not complete")
	}
	if len(unknown)+len(elsewhere) == 0 {
		s.ok("parties", "%s known to the participant and hosted there", fmt.Sprintf("%d of %d", len(hosted), len(parties)))
	}
}
