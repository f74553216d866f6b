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

// checkScope tries to read the scope.
func (c *checker) checkScope(ctx context.Context) {
	s, l := c.section(GroupScope), &c.ledger
	s.ok("scope", "%s", describeScope(c.cfg.Scope))
	if left := c.cfg.Scope.LeftOut(); len(left) > 0 {
		s.ok("left out", "%s. Choose before the first start: to have it later takes another database or pair of schemas",
			strings.Join(left, "; "))
	}
	err := c.tryRead(ctx)
	if err == nil {
		l.reads = true
		s.ok("reading", "it may be read, and nothing in it is unknown to the participant")
	} else {
		c.reportUnreadable(s, err)
	}
	c.checkHosting(ctx, s)
}

// discoveries is the largest number of sequential requests of a discovery.
const discoveries = 8

// namedParties is how many parties a finding names.
const namedParties = 20

// tryRead reads as the daemon does, from the ledger end, so that next to nothing is returned.
func (c *checker) tryRead(ctx context.Context) error {
	client := c.ledger.client
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

// reportUnreadable reports why the scope can't be read. Where the user may not read as any party, it proposes those
// that the user may read as.
func (c *checker) reportUnreadable(s section, err error) {
	what, do := explained(err)
	problem, is := errors.AsType[*ledger.Problem](err)
	if !is || !forbidden(err) {
		s.problem("reading", what, do)
		return
	}
	what = problem.What // the server's message does not mention rights
	if u := c.ledger.user; u != nil && !u.ReadAsAnyParty && len(c.cfg.Scope.Parties) == 0 {
		if flag := partiesFlag(u.ReadAs); flag != "" {
			s.problem("reading", what, "grant the user CanReadAsAnyParty; or, while the database holds nothing, choose to read "+
				"as the parties that it may read as", flag)
			return
		}
	}
	s.problem("reading", what, do)
}

// forbidden reports whether a participant refused because of a missing right.
func forbidden(err error) bool {
	var e *participant.Error
	return errors.As(err, &e) && e.Status == http.StatusForbidden && e.Code != ""
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
