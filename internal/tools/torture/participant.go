package torture

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"ledgerindexer/sandbox"
)

// The token that the programs show the participant.
const (
	tokenUser     = "indexer"
	tokenLifetime = time.Hour
)

// participant is the simulated participant at its address, with its tokens.
type participant struct {
	front
	plan      plan
	ledger    *sandbox.Ledger
	authority *sandbox.Authority
	tokenFile string
	ahead     atomic.Int64 // how far the clock of the tokens is, in nanoseconds
	version   string       // the release that is served now
}

// startParticipant serves a ledger. Tokens are put into a file in the folder.
func startParticipant(ctx context.Context, p plan, ledger *sandbox.Ledger, folder string) (*participant, error) {
	x := &participant{plan: p, ledger: ledger, tokenFile: filepath.Join(folder, "token")}
	x.authority = sandbox.NewAuthority(sandbox.AuthorityOptions{
		ParticipantID: ledger.ParticipantID(), Lifetime: tokenLifetime,
		Now: func() time.Time { return time.Now().Add(time.Duration(x.ahead.Load())) },
	})
	x.authority.SetUser(sandbox.User{ID: tokenUser, Rights: []sandbox.Right{sandbox.CanReadAsAnyParty()}})
	if err := x.writeToken(); err != nil {
		return nil, err
	}
	x.release(p.version)
	return x, x.open(ctx)
}

// release makes the participant answer as another release.
func (x *participant) release(version string) {
	options := x.plan.server(version)
	options.Authority, options.Fault = x.authority, x.fault
	x.version = version
	x.turnTo(sandbox.NewServer(x.ledger, options))
}

// writeToken atomically replaces the token in the file with a fresh one.
func (x *participant) writeToken() error {
	fresh := x.tokenFile + ".new"
	if err := os.WriteFile(fresh, []byte(x.authority.Token(tokenUser)), 0o600); err != nil {
		return fmt.Errorf("write a token: %w", err)
	}
	if err := os.Rename(fresh, x.tokenFile); err != nil {
		return fmt.Errorf("write a token: %w", err)
	}
	return nil
}

// strike adds to the front's strike the faults that only a participant has.
func (x *participant) strike(ctx context.Context, s fault) (bool, error) {
	if s.kind != expireToken {
		return x.front.strike(ctx, s)
	}
	before := x.refused.Load()
	x.ahead.Add(int64(tokenLifetime + time.Second))
	for deadline := time.Now().Add(faultTimeout); x.refused.Load() == before && ctx.Err() == nil &&
		time.Now().Before(deadline); {
		pause(ctx, 10*ms)
	}
	pause(ctx, s.long)
	return x.refused.Load() > before, x.writeToken()
}

// upgrade restarts the participant as the next release.
func (x *participant) upgrade(ctx context.Context, away time.Duration) error {
	x.close()
	pause(ctx, away)
	x.release(x.plan.next)
	return x.open(context.WithoutCancel(ctx))
}
