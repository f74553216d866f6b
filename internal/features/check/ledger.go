package check

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/ledger"
	"ledgerindexer/participant"
)

type ledgerState struct {
	endpoint endpoint
	probed   *probe              // nil: it could not be tried
	client   *participant.Client // nil: there is no server to ask
	tlsBad   bool                // a TLS file can't be used
	because  string              // why the later steps are skipped; empty: they are not

	version       string
	participantID string
	survey        participant.Survey
	reported      bool              // the server's operations were reported
	user          *participant.User // nil: not known
	reads         bool              // the scope may be read
	proposal      *proposal         // of another scope; nil: none

	end     *ledger.Offset // nil: not known
	endless bool           // the server does not return its ledger end
	pruned  *ledger.Offset // nil: not known
}

const pathVersion = "/v2/version"

func (c *checker) checkLedger(ctx context.Context) {
	if c.cfg.LedgerURL == "" {
		c.section(GroupLedger).note("url", "not configured: give --ledger-url, such as https://participant.example.com:7575")
		c.ledger.because = "no --ledger-url"
		return
	}
	c.reachLedger(ctx)
	token := c.checkToken(ctx)
	if c.ledger.because == "" {
		c.askLedger(ctx, token)
	}
	if because := c.ledger.because; because != "" {
		if c.ledger.client != nil && !c.ledger.reported {
			c.section(GroupLedger).skip("offers", because)
		}
		c.section(GroupScope).skip("ledger", because)
		c.section(GroupPosition).skip("ledger", because)
	}
}

// reachLedger checks each step from the URL to a first answer.
func (c *checker) reachLedger(ctx context.Context) {
	s := c.section(GroupLedger)
	l := &c.ledger
	l.because = "there is no connection to the participant"
	u, ok := address(s, "--ledger-url", c.cfg.LedgerURL)
	if !ok {
		return
	}
	l.endpoint = endpoint{name: "the participant's JSON API", flags: "ledger", access: c.cfg.LedgerAccess, url: u}
	l.endpoint.access.Flags = l.endpoint.flags
	if l.tlsBad = !c.prepareTLS(s, &l.endpoint, c.cfg.LedgerURL); l.tlsBad {
		return
	}
	if l.probed, ok = c.connect(ctx, s, l.endpoint, pathVersion); !ok {
		return
	}
	c.clockOf("participant", l.probed)
	if c.usableAnswer(ctx, s, l.endpoint, l.probed) {
		l.because = ""
	}
}

// prepareTLS reads the TLS files. The token's files, and TLS files that are only for the token endpoint, are checked
// separately.
func (c *checker) prepareTLS(s section, e *endpoint, url string) bool {
	bare := e.access
	if e.url.Scheme == "http" && bare.OAuth.TokenURL != "" {
		bare.CAFile, bare.CertFile, bare.KeyFile = "", "", ""
	}
	bare.URL, bare.TokenFile, bare.OAuth = url, "", access.OAuth{}
	var err error
	if e.credentials, err = access.New(bare, nil); err != nil {
		reportUnusable(s, "tls", err)
		return false
	}
	return true
}

// usableAnswer checks the answer to the first request, which had no token. It returns false if other requests would
// fail the same way.
func (c *checker) usableAnswer(ctx context.Context, s section, e endpoint, v *probe) bool {
	switch {
	case c.reportDetour(s, e, v):
	case v.isHTML() && v.status != http.StatusUnauthorized && v.status != http.StatusForbidden:
		c.reportNoAPI(ctx, s, e, fmt.Sprintf("a web page answers (%s)", statusText(v.status)))
	default:
		return true
	}
	return false
}

// hasVersion reports whether an answer is that of a participant to /v2/version.
func hasVersion(v *probe) bool {
	var answer struct {
		Version string `json:"version"`
	}
	return v.status == http.StatusOK && json.Unmarshal([]byte(v.body), &answer) == nil && answer.Version != ""
}

// reportNoAPI reports that the server is not the API, and tries other paths of the same server.
func (c *checker) reportNoAPI(ctx context.Context, s section, e endpoint, what string) {
	if found := c.elsewhere(ctx, e); found != "" {
		s.problem("answer", what+"; there is a participant's JSON API at "+found, "use "+e.flag("url")+" "+found)
		return
	}
	s.problem("answer", fmt.Sprintf("%s: there is no JSON Ledger API at %s", what, shown(e.url)),
		"check host and port; where the API has a path prefix (participant: http-ledger-api.path-prefix; a proxy: its "+
			"own), write it after the port in "+e.flag("url"))
}

// elsewhere tries likely URLs of the API; it returns "" if it is at none of them.
func (c *checker) elsewhere(ctx context.Context, e endpoint) string {
	within, cancel := c.step(ctx)
	defer cancel()
	for _, path := range likelyPrefixes(e.url.Path) {
		u := *e.url
		u.User, u.Path, u.RawPath = nil, path, ""
		if v := send(within, u.JoinPath(pathVersion), e.credentials.TLS()); v.err == nil && hasVersion(v) {
			return shown(&u)
		}
	}
	return ""
}

// likelyPrefixes returns path prefixes to try: the path without the API's own part, none, and those that proxies often
// use.
func likelyPrefixes(path string) []string {
	var list []string
	if before, _, found := strings.Cut(path+"/", "/v2/"); found {
		list = append(list, before)
	}
	list = append(list, "", "/json-api", "/api/json-api", "/api/ledger", "/ledger-api")
	return slices.DeleteFunc(list, func(p string) bool { return strings.Trim(p, "/") == strings.Trim(path, "/") })
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
		for _, o := range l.offers() {
			if o.Presence == participant.Unknown {
				s.problem("answer", fmt.Sprintf("the server's operations are not known: %v", o.Err), "see whether the server is "+
					"overloaded or starting, and check again")
				return false
			}
		}
		c.reportNoAPI(ctx, s, l.endpoint, fmt.Sprintf("the server answers, and has no update stream (%s for %s)",
			statusText(l.probed.status), pathVersion))
		return false
	}
	c.reportVersion(s)
	if l.participantID != "" {
		s.ok("participant", "%s", l.participantID)
	} else {
		s.note("participant", "it does not return its id: another one behind the URL would not be noticed")
	}
	c.reportOffers(s)
	c.reportReady(ctx, s)
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

// reportReady checks the participant's own readiness, if it reports that.
func (c *checker) reportReady(ctx context.Context, s section) {
	within, cancel := c.step(ctx)
	defer cancel()
	v := send(within, c.ledger.endpoint.url.JoinPath("/readyz"), c.ledger.endpoint.credentials.TLS())
	switch {
	case v.err != nil || v.isHTML():
	case v.status == http.StatusOK:
		s.ok("ready", "the participant says that it is ready")
	case v.status == http.StatusServiceUnavailable:
		s.warn("ready", fmt.Sprintf("the participant says that it is not ready: %q", head(v.body, 200)),
			"see what it waits for; the indexer waits with it")
	}
}

// explained returns the finding's text and cure for an error of a client.
func explained(err error) (what, do string) {
	if p, ok := errors.AsType[*ledger.Problem](err); ok {
		return p.Error(), p.Do
	}
	if timedOut(err) {
		return "no answer came in time: " + err.Error(), "see whether the server is overloaded, and check again"
	}
	return err.Error(), "see what the server's log says, and check again"
}
