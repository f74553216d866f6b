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

// triedParties is for how many parties reading is tried one by one, where the server does not tell what the user may do.
const triedParties = 20

// discoveries is how many requests it takes at most to find out, one after the other, what a server has.
const discoveries = 8

// namedParties is how many parties are named with which something is wrong.
const namedParties = 20

// checkScope tries for real whether what is asked for may be read.
func (c *checker) checkScope(ctx context.Context) {
	s, l := c.section(GroupScope), &c.ledger
	s.ok("scope", "%s", describeScope(c.cfg.Scope))
	err := c.tryRead(ctx, l.client)
	if err == nil {
		l.reads = true
		s.ok("reading", "it may be read, and nothing in it is unknown to the participant")
	} else {
		c.reportUnreadable(ctx, s, err)
	}
	c.checkHosting(ctx, s)
}

// tryRead reads as the daemon does, from where at most what is new this moment comes.
func (c *checker) tryRead(ctx context.Context, client *participant.Client) error {
	discovery, cancel := context.WithTimeout(ctx, discoveries*c.patience)
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

// reportUnreadable says why the scope can't be read, and names what could.
func (c *checker) reportUnreadable(ctx context.Context, s section, err error) {
	what, do := explained(err)
	if !forbidden(err) {
		s.problem("reading", what, do)
		return
	}
	var p *ledger.Problem
	if errors.As(err, &p) {
		what = p.What // the server's own words say nothing about rights
	}
	if len(c.cfg.Scope.Parties) == 0 {
		if c.ledger.user == nil || c.ledger.user.ReadAsAnyParty { // it is not known to lack the right
			s.problem("reading", what, do)
			return
		}
		c.propose(s, what, "grant the user CanReadAsAnyParty", "read as the parties that it may read as", c.ledger.user.ReadAs)
		return
	}
	may, mayNot := c.tellApart(ctx)
	switch known := c.ledger.user != nil || len(may) > 0; {
	case len(mayNot) == 0:
		s.problem("reading", what, do)
	case !known: // it may be something else that keeps the user from everything
		s.problem("reading", "the user may not read as "+upTo(namedParties, mayNot), do)
	default:
		c.propose(s, "the user may not read as "+upTo(namedParties, mayNot), "grant the user CanReadAs for each of them", "leave them out", may)
	}
}

// proposal is the finding that says with which parties there would be nothing in the way.
type proposal struct {
	parties []string
	finding int    // its index
	grant   string // what to do in its place
}

// propose says which right is to be granted, or which parties to read as instead.
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

// keepScope takes a proposal back where `run` would refuse it, because the database holds another scope.
func (c *checker) keepScope() {
	p, contents := c.ledger.proposal, c.stored.contents
	if p == nil || len(contents.Scopes) == 0 && contents.Snapshot == nil {
		return
	}
	scope := c.cfg.Scope
	scope.Parties = p.parties
	held := contents.Snapshot != nil && contents.SnapshotScope == scope.Hash()
	for _, stored := range contents.Scopes {
		held = held || stored.Hash() == scope.Hash()
	}
	if held {
		return
	}
	f := &c.report.Findings[p.finding]
	f.Do, f.Paste = p.grant+": the database holds a scope already, so reading as other parties takes another database", nil
}

// forbidden says whether a participant says that a right is missing.
func forbidden(err error) bool {
	var e *participant.Error
	return errors.As(err, &e) && e.Status == http.StatusForbidden && e.Code != ""
}

// tellApart finds out as which of the scope's parties may be read: by what the server says of the user, else by trying.
// Parties of which it is not known are in neither list.
func (c *checker) tellApart(ctx context.Context) (may, mayNot []string) {
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
	within, cancel := context.WithTimeout(ctx, 6*c.patience) // for all of them, however slow the server
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

// checkHosting warns of parties that are not at home on this participant: what it shows for them is not complete.
func (c *checker) checkHosting(ctx context.Context, s section) {
	parties := slices.Compact(slices.Sorted(slices.Values(c.cfg.Scope.Parties)))
	if len(parties) == 0 {
		return
	}
	const most = 100 // which takes some requests
	within, cancel := c.step(ctx)
	defer cancel()
	hosted, err := c.ledger.client.Hosted(within, parties[:min(len(parties), most)])
	if err != nil {
		s.note("parties", "whether the participant hosts them is not told")
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
		s.warn("parties", "the participant does not know "+upTo(namedParties, unknown), "check the names in --parties: with an unknown party nothing comes, and no error")
	}
	if len(elsewhere) > 0 {
		s.warn("parties", "the participant does not host "+upTo(namedParties, elsewhere)+" (or the party belongs to another identity provider than the user)",
			"read a party from a participant that hosts it: what others see of it is not complete")
	}
	if len(unknown)+len(elsewhere) == 0 {
		s.ok("parties", "%s known to the participant and hosted there", fmt.Sprintf("%d of %d", len(hosted), len(parties)))
	}
}
