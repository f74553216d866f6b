package check

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/participant"
)

// tokenState is what is known of the token before it is sent.
type tokenState struct {
	configured bool
	unusable   bool // it is configured and can't be read or fetched
	expired    bool
	jwt        bool
	claims     access.Claims
}

// expirySoon is the remaining lifetime below which a token that nothing renews gets a warning.
const expirySoon = 15 * time.Minute

// checkToken checks the token without the server.
func (c *checker) checkToken(ctx context.Context) tokenState {
	s := c.section(GroupToken)
	cfg := c.cfg.LedgerAccess
	cfg.Flags, cfg.URL = "ledger", c.cfg.LedgerURL
	state := tokenState{configured: c.ledger.endpoint.tokenConfigured()}
	credentials, err := access.New(cfg, nil)
	if err != nil {
		state.unusable = true
		reportUnusable(s, "token", err)
		return state
	}
	defer credentials.Close()
	c.redact = append(c.redact, credentials.Redact)
	checkSecretFiles(s, cfg)
	if !state.configured {
		return state
	}
	token, ok := c.fetchToken(ctx, s, credentials)
	if !ok {
		state.unusable = true
		return state
	}
	state.claims, state.jwt = access.ParseClaims(token)
	c.reportClaims(s, credentials, &state)
	return state
}

// reportUnusable reports the flag or file that prevents the creation of a client.
func reportUnusable(s section, topic string, err error) {
	do := "correct the flag or the file that is named"
	if p, ok := errors.AsType[*ledger.Problem](err); ok {
		do = p.Do
	}
	s.problem(topic, err.Error(), do)
}

// fetchToken reads or fetches the token as the clients do. ok is false where there is none.
func (c *checker) fetchToken(ctx context.Context, s section, credentials *access.Access) (token string, ok bool) {
	within, cancel := c.step(ctx)
	defer cancel()
	token, err := credentials.Token(within)
	var e *access.TokenError
	switch {
	case err == nil:
		return token, true
	case errors.As(err, &e):
		do := e.Do
		if do == "" {
			do = "check " + credentials.Flag("oauth-token-url") +
				", and ask the operator of the identity provider whether it works"
		}
		s.problem("token", credentials.Redact(e.What()), do)
	case timedOut(err):
		s.problem("token", fmt.Sprintf("%s does not answer within %v", credentials.Origin(), c.timeout),
			"check "+credentials.Flag("oauth-token-url")+" and the network in between")
	default:
		s.problem("token", credentials.Redact(err.Error()), "correct the flag or the file that is named")
	}
	return "", false
}

// checkSecretFiles warns of secrets that other users of the machine can read.
func checkSecretFiles(s section, cfg access.Config) {
	for _, secret := range []struct{ path, name string }{
		{cfg.TokenFile, "the token"}, {cfg.OAuth.ClientSecretFile, "the client secret"}, {cfg.KeyFile, "the private key"},
	} {
		if secret.path == "" {
			continue
		}
		if info, err := os.Stat(secret.path); err == nil && info.Mode().Perm()&0o007 != 0 {
			s.warn("file", fmt.Sprintf("%s has mode %#o: every user of this machine can read or change %s", secret.path,
				info.Mode().Perm(), secret.name),
				"let only the indexer's user read it (in Kubernetes: defaultMode of the secret's volume)",
				"chmod 600 "+config.ShellWord(secret.path))
		}
	}
}

func (c *checker) reportClaims(s section, credentials *access.Access, state *tokenState) {
	from := "from " + credentials.Origin()
	if !state.jwt {
		s.note("token", "%s; it is no JSON web token, so its claims can't be checked", from)
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
		s.note("token", "%s; it has no expiry", text)
	case left <= 0:
		state.expired = true
		do := "put a new token into the file; it is read again for every request, so nothing has to be restarted"
		if renewed {
			do = "set this machine's clock, or the token endpoint's: a token that was just issued has already expired"
		}
		s.problem("token", fmt.Sprintf("%s; it expired at %s, %s ago", text, claims.Expires.UTC().Format(time.RFC3339),
			span(-left)), do)
	case left < expirySoon && !renewed:
		s.warn("token", fmt.Sprintf("%s; it expires at %s, in %s", text, claims.Expires.UTC().Format(time.RFC3339),
			span(left)),
			"see that something puts a new token into the file in time, or use --ledger-oauth-token-url, which renews it "+
				"automatically")
	case renewed:
		s.ok("token", "%s; valid for %s, and renewed before it expires", text, span(left))
	default:
		s.ok("token", "%s; valid until %s, for %s", text, claims.Expires.UTC().Format(time.RFC3339), span(left))
	}
	if claims.Subject == "" {
		s.warn("subject", "the token names no user (sub), which a participant needs", "have it issued with the user's id "+
			"as its subject")
	}
}

// participantAudience is the prefix of an audience that names a participant.
const participantAudience = "https://daml.com/jwt/aud/participant/"

// reportAudience reports the token's audience. It returns false if the token is meant for another participant.
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
		s.note("audience", "%s: the participant must be configured to require it", head(some(state.claims.Audience), 200))
	case state.claims.Scope != "":
		s.note("audience", "none, but the scope %s: such tokens are deprecated from 3.5 on and end with 3.7, so plan for "+
			"one with an audience",
			head(state.claims.Scope, 100))
	default:
		s.note("audience", "the token has no audience (aud)")
	}
	return true
}

// accepted reports whether the server accepts the token. It returns false if no further request can succeed.
func (c *checker) accepted(state tokenState) bool {
	s, l := c.section(GroupToken), &c.ledger
	unauthenticated, forbidden, answered := count(l.offers())
	if unauthenticated > 0 && !l.survey.Updates.There() && !l.survey.UpdatesFlats.There() {
		l.because = "the server requires a token that it accepts"
		c.reportUnauthenticated(s, state)
		return false
	}
	if state.configured && !c.reportAudience(s, state) && answered == 0 {
		l.because = "the token is meant for another participant"
		return false
	}
	switch {
	case answered == 0 && forbidden == 0: // the cause is not the token
		return true
	case answered == 0 && !state.configured:
		l.because = "the server refuses everything"
		s.problem("token", "the server refuses everything (403), and no token is configured",
			"give a token with --ledger-token-file or --ledger-oauth-token-url; or see whether a proxy before the server lets "+
				"this machine in")
		return false
	case answered == 0 && c.refusedByProxy(s):
		l.because = "the server refuses everything"
		return false
	case answered == 0:
		l.because = "the server refuses everything to this user"
		s.problem("accepted", "the participant refuses the token's user everything (403)",
			"see that the user exists on this participant and is not deactivated, and that the token is meant for this "+
				"participant")
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

// refusedByProxy reports a problem if all refusals come from a proxy, and returns whether it did.
func (c *checker) refusedByProxy(s section) bool {
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

// count counts the answers by kind. An operation that does not exist counts for none: the token does not matter there.
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
			"give its file with --ledger-token-file, or have it fetched with --ledger-oauth-token-url, "+
				"--ledger-oauth-client-id and --ledger-oauth-client-secret-file")
	case state.expired:
		s.skip("accepted", "the token has expired, and the server refuses it (401)")
	case !state.jwt:
		s.problem("accepted", "the server refuses the token (401), which is no JSON web token as participants want it",
			c.opaqueAdvice())
	default:
		what := fmt.Sprintf("the server refuses the token (401); its audience is %q", head(some(state.claims.Audience), 200))
		do := "see that the participant's auth-services know who signed it, and that its audience is the one that they " +
			"want: " +
			participantAudience + "PARTICIPANT-ID unless a target-audience is configured there"
		if lives := state.claims.Lifetime(time.Now()); lives > participant.LongestToken {
			what += ", and it lives for " + span(lives)
			do += fmt.Sprintf("; or have tokens issued for %s at most, or max-token-lifetime of the participant's ledger-api "+
				"raised: it accepts no longer ones", span(participant.LongestToken))
		}
		s.problem("accepted", what, do)
	}
}

// opaqueAdvice returns the cure for a refused token that is no JSON web token.
func (c *checker) opaqueAdvice() string {
	if c.cfg.LedgerAccess.OAuth.TokenURL != "" {
		return "ask the operator of the identity provider whether it issues JSON web tokens for the participant: " +
			"some do so only with the right --ledger-oauth-audience or --ledger-oauth-scopes"
	}
	return "see that the file holds the access token itself: not a client secret, not an id, nothing before it such as " +
		"\"Bearer\""
}

// checkUser checks the token's user and its rights.
func (c *checker) checkUser(ctx context.Context) {
	s, l := c.section(GroupToken), &c.ledger
	within, cancel := c.step(ctx)
	defer cancel()
	user, err := l.client.User(within)
	switch {
	case errors.Is(err, ledger.ErrNotOffered):
		s.note("user", "the server does not report the token's user")
		return
	case err != nil:
		s.note("user", "the user's rights are not known: %v", err)
		return
	}
	l.user = &user
	if user.Deactivated {
		s.problem("user", "user "+user.ID+" is deactivated", "have an administrator of the participant activate it again")
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
		s.note("user", "%s, and administers the participant: the indexer does not need that, so a separate user would be "+
			"safer", text)
		return
	}
	s.ok("user", "%s", text)
}
