package sandbox

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"
)

// AuthorityOptions say which tokens an authority issues.
type AuthorityOptions struct {
	// ParticipantID is the participant that tokens are meant for.
	ParticipantID string
	// Lifetime is how long a token is valid, in whole seconds; default one hour.
	Lifetime time.Duration
	// MaxLifetime is the longest that a server lets a token live on, in whole seconds, as a participant's
	// max-token-lifetime; one that lives longer is refused. 0: any is taken.
	MaxLifetime time.Duration
	// Now is the clock of the authority and of the servers that use it; default time.Now.
	Now func() time.Time
	// Fault may disturb the answer of the token endpoint; nil answers normally.
	Fault func(*http.Request) *Fault
}

// Authority issues tokens, as an identity provider does, and knows users and their
// rights, as the participant does. It is the http.Handler of a token endpoint, at
// whatever path it is put. All methods are safe for concurrent use.
type Authority struct {
	opts AuthorityOptions
	key  []byte // signs and verifies

	mu      sync.Mutex
	users   map[string]knownUser
	clients map[string]oauthClient
	serial  int64            // of the last token, counted from 1
	revoked map[string]int64 // by user: tokens up to this serial are refused
	changed chan struct{}    // closed when users change, and replaced
}

// NewAuthority returns an authority that knows no users and no clients yet.
func NewAuthority(opts AuthorityOptions) *Authority {
	setDefault(&opts.Lifetime, time.Hour)
	if opts.Now == nil {
		opts.Now = time.Now
	}
	a := &Authority{
		opts: opts, key: make([]byte, sha256.Size),
		users: map[string]knownUser{}, clients: map[string]oauthClient{}, revoked: map[string]int64{},
		changed: make(chan struct{}),
	}
	_, _ = rand.Read(a.key) // which never fails
	return a
}

// SetUser adds a user or replaces it. Long polls of a user whose rights change, or who
// is deactivated, end with STALE_STREAM_AUTHORIZATION.
func (a *Authority) SetUser(u User) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.users[u.ID] = known(u)
	a.announce()
}

// DeleteUser makes the participant forget a user. Tokens for it can still be issued,
// as by an identity provider that has not heard of it, and are refused with 403.
func (a *Authority) DeleteUser(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.users, id)
	a.announce()
}

func (a *Authority) announce() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// user returns a user as it is now, and the channel that is closed when any user
// changes after that.
func (a *Authority) user(id string) (u knownUser, ok bool, changed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	u, ok = a.users[id]
	return u, ok, a.changed
}

// Revoke makes servers refuse all tokens issued to a user so far. Reads under way go
// on, as on a participant, which checks signatures when a request comes.
func (a *Authority) Revoke(user string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.revoked[user] = a.serial
}
