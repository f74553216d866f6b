package check

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"ledgerindexer/ledger"
	"ledgerindexer/participant"
)

// ledgerState is what the check knows of the participant.
type ledgerState struct {
	endpoint endpoint
	client   *participant.Client // nil: there is no server to ask
	because  string              // why the later steps are skipped; empty: they are not

	version       string
	participantID string
	survey        participant.Survey
	reported      bool              // the server's operations were reported
	user          *participant.User // nil: not known
	reads         bool              // the scope may be read

	end     *ledger.Offset // nil: not known
	endless bool           // the server does not return its ledger end
	pruned  *ledger.Offset // nil: not known
}

func (c *checker) checkLedger(ctx context.Context) {
	if c.cfg.LedgerURL == "" {
		c.section(GroupLedger).note("url", "not configured: give --ledger-url, such as https://participant.example.com:7575")
		c.ledger.because = "no --ledger-url"
		return
	}
	l := &c.ledger
	l.endpoint = endpoint{flags: "ledger", access: c.cfg.LedgerAccess}
	// the scope's own errors are reported with it
	anonymous, err := participant.New(l.endpoint.anonymous(c.cfg.LedgerURL), ledger.Scope{Shape: ledger.ShapeACSDelta})
	reached := c.reach(ctx, c.section(GroupLedger), &l.endpoint, c.cfg.LedgerURL, anonymous, err)
	c.clockOf("participant", l.endpoint)
	l.because = "there is no connection to the participant"
	if l.endpoint.url != nil {
		token := c.checkToken(ctx)
		if reached {
			l.because = ""
			c.askLedger(ctx, token)
		}
	}
	if because := c.ledger.because; because != "" {
		if c.ledger.client != nil && !c.ledger.reported {
			c.section(GroupLedger).skip("offers", because)
		}
		c.section(GroupScope).skip("ledger", because)
		c.section(GroupPosition).skip("ledger", because)
	}
}

// askLedger checks all that needs requests with the token.
func (c *checker) askLedger(ctx context.Context, token tokenState) {
	l := &c.ledger
	if token.unusable {
		l.because = "there is no token to ask with"
		return
	}
	var err error
	l.client, err = participant.New(participant.Config{URL: c.cfg.LedgerURL, Access: c.cfg.LedgerAccess}, c.cfg.Scope)
	if err != nil { // everything else was checked before
		l.because = "the scope is invalid"
		c.section(GroupScope).problem("scope", err.Error(), "correct the flag that is named")
		return
	}
	c.redact = append(c.redact, l.client.Access().Redact)
	c.survey(ctx)
	if !c.accepted(token) || !c.reportServer(ctx) {
		return
	}
	if token.configured {
		c.checkUser(ctx)
	}
	c.checkScope(ctx)
	c.checkPosition(ctx)
	c.reportSnapshot(ctx)
}

// survey requests everything that needs no right, concurrently.
func (c *checker) survey(ctx context.Context) {
	within, cancel := c.step(ctx)
	defer cancel()
	l := &c.ledger
	var wg sync.WaitGroup
	wg.Go(func() { l.survey = l.client.Survey(within) })
	wg.Go(func() { l.version, _ = l.client.Version(within) }) // after an error the survey says why
	wg.Go(func() { l.participantID, _, _ = l.client.Peek(within) })
	wg.Wait()
}

func (l *ledgerState) offers() []participant.Offer {
	s := l.survey
	return []participant.Offer{s.UpdatesPage, s.Updates, s.UpdatesFlats, s.SnapshotPage, s.Snapshot, s.LedgerEnd,
		s.PrunedOffsets,
		s.ContractByID, s.VettedPackages}
}

// reportServer reports the server's release, id and operations. It returns false if there is nothing to read.
func (c *checker) reportServer(ctx context.Context) bool {
	s, l := c.section(GroupLedger), &c.ledger
	l.reported = true
	// tryRead reports refusals
	offered := func(o participant.Offer) bool { return o.There() || o.Presence == participant.Refused }
	if !offered(l.survey.Updates) && !offered(l.survey.UpdatesFlats) {
		l.because = "the server offers no update stream"
		discovery, cancel := context.WithTimeout(ctx, discoveries*c.timeout)
		defer cancel()
		if _, err := l.client.Discover(discovery); err != nil {
			what, do := explained(err)
			s.problem("answer", what, do)
			return false
		}
		l.because = ""
	}
	c.reportVersion(s)
	if l.participantID != "" {
		s.ok("participant", "%s", l.participantID)
	} else {
		s.note("participant", "it does not return its id: another one behind the URL would not be noticed")
	}
	c.reportOffers(s)
	return true
}

func (c *checker) reportVersion(s section) {
	l := &c.ledger
	major, minor, ok := release(l.version)
	switch {
	case l.version == "":
		s.note("version", "the server does not return its release")
	case !ok:
		s.note("version", "release %s, which is not understood", head(l.version, 40))
	case major < 3 || major == 3 && minor < 3:
		s.problem("version", "release "+l.version+" is older than those supported (3.4 to 3.6)", "read from a participant "+
			"of release 3.4 or later")
	case major == 3 && minor == 3 && c.cfg.Scope.Shape == ledger.ShapeLedgerEffects:
		s.problem("version", "release "+l.version+" does not say which of the contracts it shows with --shape "+
			"ledger-effects are active",
			"use --shape acs-delta, or a participant of release 3.4 or later")
	case major == 3 && minor == 3:
		s.warn("version", "release "+l.version+" is older than those tested (3.4 to 3.6)", "prefer a participant of "+
			"release 3.4 or later")
	case major > 3 || minor > 6:
		s.warn("version", "release "+l.version+" is newer than those known (3.4 to 3.6)",
			"look for a newer release of the indexer; this one stores unknown kinds raw, and stops at JSON that it can't "+
				"understand")
	default:
		s.ok("version", "release %s", l.version)
	}
}

// release reads the first two numbers of a version.
func release(version string) (major, minor int, ok bool) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return 0, 0, false
	}
	major, err := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return major, minor, err == nil && err2 == nil
}

func (c *checker) reportOffers(s section) {
	l := &c.ledger
	tail := l.survey.Updates
	if !tail.There() {
		tail = l.survey.UpdatesFlats
	}
	switch pages := l.survey.UpdatesPage; {
	case pages.There():
		s.ok("updates", "in pages of up to 2,000 from %s; waits for news at %s", pages.Path, tail.Path)
	case pages.Presence == participant.Unknown:
		unclear(s, "updates", "whether updates come in pages", pages)
	default:
		s.note("updates", "in lists of up to 200 from %s: the server has no pages (3.5 and later do), so catching up takes "+
			"more requests", tail.Path)
	}
	for _, missing := range []struct {
		offer  participant.Offer
		topic  string
		effect string
	}{
		{l.survey.LedgerEnd, "ledger-end", "reading continues until nothing more comes, and a backfill needs --at-offset"},
		{l.survey.ContractByID, "lookups", "contracts from before the start can't be looked up"},
		{l.survey.VettedPackages, "packages", "it is not recorded which packages are vetted"},
	} {
		switch o := missing.offer; {
		case o.Presence == participant.Absent:
			s.note(missing.topic, "the server does not have %s: %s", o.Path, missing.effect)
		case o.Presence == participant.Unknown:
			unclear(s, missing.topic, "whether the server has "+o.Path, o)
		case !o.There():
			s.note(missing.topic, "a proxy refuses %s (403), which counts as missing: %s", o.Path, missing.effect)
		}
	}
}

// reportSnapshot reports how snapshots are served: in pages, or in lists with continuation tokens or without.
func (c *checker) reportSnapshot(ctx context.Context) {
	s, l := c.section(GroupLedger), &c.ledger
	pages, lists := l.survey.SnapshotPage, l.survey.Snapshot
	switch {
	case pages.Presence == participant.Unknown:
		unclear(s, "snapshot", "how snapshots are served", pages)
		return
	case pages.There():
		s.ok("snapshot", "in pages from %s; an interrupted backfill continues where it stopped", pages.Path)
		return
	case lists.Presence == participant.Unknown:
		unclear(s, "snapshot", "whether the server serves snapshots", lists)
		return
	case !lists.There():
		s.warn("snapshot", "the server serves no snapshots: there can be no backfill",
			"start at the ledger's beginning, or read from another participant")
		return
	}
	also := ""
	if pages.Err != nil {
		also = "; " + pages.Err.Error()
	}
	const without = "with 200 contracts or more a backfill needs http-list-max-elements-limit raised, or --templates; " +
		"and it needs more updates than contracts, to be certain that the list was not cut"
	switch tokens, unknown := c.listTokens(ctx); {
	case unknown != "":
		s.note("snapshot", "in lists from %s; whether they have continuation tokens is not known: %s. Releases from 3.5 on "+
			"give them; without, %s%s",
			lists.Path, unknown, without, also)
	case tokens:
		s.ok("snapshot", "in lists of up to 200 from %s, with continuation tokens; an interrupted backfill continues where "+
			"it stopped%s",
			lists.Path, also)
	default:
		s.note("snapshot", "in one answer from %s, without continuation tokens (3.5 and later have them): %s%s", lists.Path,
			without, also)
	}
}

// listTokens reports whether lists of what is active have continuation tokens, or else why that is unknown.
func (c *checker) listTokens(ctx context.Context) (has bool, unknown string) {
	l := &c.ledger
	switch {
	case !l.reads:
		return false, "what is to be read can't be read"
	case l.end == nil:
		return false, "the ledger's end, at which to ask for one, is not known"
	}
	within, cancel := c.step(ctx)
	defer cancel()
	has, known, err := l.client.ListTokens(within, *l.end)
	switch {
	case err != nil:
		return false, err.Error()
	case !known:
		return false, fmt.Sprintf("at the ledger's end %d no contract of what is to be read is active, and an empty list "+
			"shows nothing", *l.end)
	}
	return has, ""
}

// unclear warns of an operation that may exist or not.
func unclear(s section, topic, what string, o participant.Offer) {
	s.warn(topic, fmt.Sprintf("%s is not known: %v", what, o.Err), "see whether the server is overloaded or starting, "+
		"and check again")
}
