package check

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"ledgerindexer/internal/access"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/participant"
)

// tokenState is what is known of the token before it is shown to the server.
type tokenState struct {
	configured bool
	unusable   bool // it is configured and can't be had
	expired    bool
	jwt        bool
	claims     access.Claims
}

// expirySoon is how long before its end a token that nothing renews is worth a warning.
const expirySoon = 15 * time.Minute

// checkToken looks at the token without the server.
func (c *checker) checkToken(ctx context.Context) tokenState {
	s := c.section(GroupToken)
	cfg := c.cfg.LedgerAccess
	cfg.Flags, cfg.URL = "ledger", c.cfg.LedgerURL
	state := tokenState{configured: cfg.TokenFile != "" || cfg.OAuth.TokenURL != ""}
	if c.ledger.endpoint.url == nil {
		cfg.URL = "" // what is wrong with it was said
	}
	who, err := access.New(cfg, nil)
	if err != nil {
		state.unusable = true
		if !c.ledger.tlsBad { // which was said
			reportUnusable(s, "token", err)
		}
		return state
	}
	defer who.Close()
	c.redact = append(c.redact, who.Redact)
	checkSecretFiles(s, cfg)
	if !state.configured {
		return state
	}
	token, ok := c.fetchToken(ctx, s, who)
	if !ok {
		state.unusable = true
		return state
	}
	state.claims, state.jwt = access.ParseClaims(token)
	c.reportClaims(s, who, &state)
	return state
}

// reportUnusable says which flag or file keeps a client from being made.
func reportUnusable(s section, topic string, err error) {
	do := "correct the flag or the file that is named"
	var p *ledger.Problem
	if errors.As(err, &p) {
		do = p.Do
	}
	s.problem(topic, err.Error(), do)
}

// fetchToken has the token as the clients have it. ok is false where there is none.
func (c *checker) fetchToken(ctx context.Context, s section, who *access.Access) (token string, ok bool) {
	within, cancel := c.step(ctx)
	defer cancel()
	token, err := who.Token(within)
	var e *access.TokenError
	switch {
	case err == nil:
		return token, true
	case errors.As(err, &e):
		do := e.Do
		if do == "" {
			do = "check " + who.Flag("oauth-token-url") + ", and with who runs the identity provider whether it works"
		}
		s.problem("token", who.Redact(e.What()), do)
	case timedOut(err):
		s.problem("token", fmt.Sprintf("%s does not answer within %v", who.Origin(), c.patience),
			"check "+who.Flag("oauth-token-url")+" and the way there")
	default:
		s.problem("token", who.Redact(err.Error()), "correct the flag or the file that is named")
	}
	return "", false
}

// checkSecretFiles warns where other users of the machine can read what should be secret.
func checkSecretFiles(s section, cfg access.Config) {
	for _, secret := range []struct{ path, name string }{
		{cfg.TokenFile, "the token"}, {cfg.OAuth.ClientSecretFile, "the client secret"}, {cfg.KeyFile, "the private key"},
	} {
		if secret.path == "" {
			continue
		}
		if info, err := os.Stat(secret.path); err == nil && info.Mode().Perm()&0o007 != 0 {
			s.warn("file", fmt.Sprintf("%s has mode %#o: every user of this machine can get at %s", secret.path, info.Mode().Perm(), secret.name),
				"let nobody but the indexer's user read it (in Kubernetes: defaultMode of the secret's volume)", "chmod 600 "+config.ShellWord(secret.path))
		}
	}
}

func (c *checker) reportClaims(s section, who *access.Access, state *tokenState) {
	from := "from " + who.Origin()
	if !state.jwt {
		s.note("token", "%s; it is no JSON web token, so nothing can be told of it", from)
		return
	}
	claims := state.claims
	text := from
	if claims.Subject != "" {
		text += "; for user " + head(claims.Subject, 100)
	}
	if claims.Issuer != "" {
		text += "; issued by " + head(claims.Issuer, 100)
	}
	renewed := c.cfg.LedgerAccess.OAuth.TokenURL != ""
	left := time.Until(claims.Expires)
	switch {
	case claims.Expires.IsZero():
		s.note("token", "%s; it does not say that it ever expires", text)
	case left <= 0:
		state.expired = true
		do := "put a new token into the file; it is read again for every request, so nothing has to be restarted"
		if renewed {
			do = "set this machine's clock, or the token endpoint's: a token that was just issued has ended"
		}
		s.problem("token", fmt.Sprintf("%s; it expired at %s, %s ago", text, claims.Expires.UTC().Format(time.RFC3339), span(-left)), do)
	case left < expirySoon && !renewed:
		s.warn("token", fmt.Sprintf("%s; it expires at %s, in %s", text, claims.Expires.UTC().Format(time.RFC3339), span(left)),
			"see that something puts a new token into the file in time, or use --ledger-oauth-token-url, which renews by itself")
	case renewed:
		s.ok("token", "%s; valid for %s, and renewed before it ends", text, span(left))
	default:
		s.ok("token", "%s; valid until %s, for %s", text, claims.Expires.UTC().Format(time.RFC3339), span(left))
	}
	if claims.Subject == "" {
		s.warn("subject", "the token names no user (sub): a participant can't tell whose it is", "have it issued with the user's id as its subject")
	}
}

// participantAudience is how a token names the participant that it is for.
const participantAudience = "https://daml.com/jwt/aud/participant/"

// reportAudience says for whom the token is meant. It is false where it is meant for another participant.
func (c *checker) reportAudience(s section, state tokenState) bool {
	if !state.jwt {
		return true
	}
	id := c.ledger.participantID
	for _, audience := range state.claims.Audience {
		meant, found := strings.CutPrefix(audience, participantAudience)
		switch {
		case !found:
		case id != "" && meant != id:
			s.problem("audience", fmt.Sprintf("the token is meant for participant %s, and this one is %s", head(meant, 150), id),
				"use the token of this participant, or check --ledger-url")
			return false
		case id != "":
			s.ok("audience", "the token is meant for this participant")
			return true
		default:
			s.note("audience", "the token is meant for participant %s", head(meant, 150))
			return true
		}
	}
	switch {
	case len(state.claims.Audience) > 0:
		s.note("audience", "%s: the participant must be configured to want that", head(some(state.claims.Audience), 200))
	case state.claims.Scope != "":
		s.note("audience", "none, but the scope %s: such tokens are deprecated from 3.5 on and end with 3.7, so plan for one with an audience",
			head(state.claims.Scope, 100))
	default:
		s.note("audience", "the token names nobody whom it is meant for (aud)")
	}
	return true
}

// accepted says what the server made of the token. It is false where it will answer nothing.
func (c *checker) accepted(state tokenState) bool {
	s, l := c.section(GroupToken), &c.ledger
	unauthenticated, forbidden, answered := count(l.offers())
	if unauthenticated > 0 && !l.survey.Updates.There() && !l.survey.UpdatesFlats.There() {
		l.because = "the server lets nobody in without a token that it accepts"
		c.reportUnauthenticated(s, state)
		return false
	}
	if state.configured && !c.reportAudience(s, state) && answered == 0 {
		l.because = "the token is meant for another participant"
		return false
	}
	switch {
	case answered == 0 && forbidden == 0: // what is wrong then is not the token
		return true
	case answered == 0 && !state.configured:
		l.because = "the server refuses everything"
		s.problem("token", "the server refuses everything (403), and no token is configured",
			"give a token with --ledger-token-file or --ledger-oauth-token-url; or see whether a proxy before the server lets this machine in")
		return false
	case answered == 0 && c.refusedOnTheWay(s):
		l.because = "the server refuses everything"
		return false
	case answered == 0:
		l.because = "the server refuses everything to this user"
		s.problem("accepted", "the participant refuses the token's user everything (403)",
			"see that the user exists on this participant and is not deactivated, and that the token is meant for this participant")
		return false
	case !state.configured && l.endpoint.url.User != nil:
		s.note("token", "none; the user and password of --ledger-url are sent")
	case !state.configured:
		s.ok("token", "none is configured, and the server asks for none")
	default:
		s.ok("accepted", "the server accepts the token")
	}
	return true
}

// refusedOnTheWay reports refusals that are not a participant's, where all are of that kind.
func (c *checker) refusedOnTheWay(s section) bool {
	var problem *ledger.Problem
	for _, o := range c.ledger.offers() {
		if o.Presence == participant.Refused && !errors.As(o.Err, &problem) {
			return false
		}
	}
	if problem == nil {
		return false
	}
	s.problem("accepted", problem.Error(), problem.Do)
	return true
}

// count tells how the operations were answered. What is missing is an answer too, but not one that a token decides.
func count(offers []participant.Offer) (unauthenticated, forbidden, answered int) {
	for _, o := range offers {
		var e *participant.Error
		switch {
		case o.Presence == participant.Present:
			answered++
		case errors.As(o.Err, &e) && e.Status == http.StatusUnauthorized:
			unauthenticated++
		case o.Presence == participant.Refused:
			forbidden++
		}
	}
	return unauthenticated, forbidden, answered
}

func (c *checker) reportUnauthenticated(s section, state tokenState) {
	switch {
	case !state.configured:
		s.problem("token", "the server wants a token, and none is configured",
			"give its file with --ledger-token-file, or have it fetched with --ledger-oauth-token-url, --ledger-oauth-client-id and --ledger-oauth-client-secret-file")
	case state.expired:
		s.skip("accepted", "the token has expired, and the server refuses it (401)")
	case !state.jwt:
		s.problem("accepted", "the server refuses the token (401), which is no JSON web token as participants want it",
			c.opaqueAdvice())
	default:
		s.problem("accepted", fmt.Sprintf("the server refuses the token (401); its audience is %q", head(some(state.claims.Audience), 200)),
			"see that the participant's auth-services know who signed it, and that its audience is the one that they want: "+
				participantAudience+"PARTICIPANT-ID unless a target-audience is configured there")
	}
}

// opaqueAdvice is for a token that is no JSON web token, and refused.
func (c *checker) opaqueAdvice() string {
	if c.cfg.LedgerAccess.OAuth.TokenURL != "" {
		return "see with who runs the identity provider that it issues JSON web tokens for the participant: " +
			"some do so only with the right --ledger-oauth-audience or --ledger-oauth-scopes"
	}
	return "see that the file holds the access token itself: not a client secret, not an id, nothing before it such as \"Bearer\""
}

// checkUser asks whose token it is and what the user may do.
func (c *checker) checkUser(ctx context.Context) {
	s, l := c.section(GroupToken), &c.ledger
	within, cancel := c.step(ctx)
	defer cancel()
	user, err := l.client.User(within)
	switch {
	case errors.Is(err, ledger.ErrNotOffered):
		s.note("user", "the server does not tell whose token it is")
		return
	case err != nil:
		s.note("user", "it can't be found out what the user may do: %v", err)
		return
	}
	l.user = &user
	if user.Deactivated {
		s.problem("user", "user "+user.ID+" is deactivated", "have it activated again by who administers the participant")
		return
	}
	text := "user " + user.ID
	switch {
	case user.ReadAsAnyParty:
		text += " may read as any party"
	case len(user.ReadAs) == 0:
		text += " may read as no party"
	default:
		text += fmt.Sprintf(" may read as %s", some(user.ReadAs))
	}
	if user.ParticipantAdmin {
		s.note("user", "%s, and administers the participant: the indexer does without, so a user of its own would be safer", text)
		return
	}
	s.ok("user", "%s", text)
}
