package check

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// storedState is what the check knows of the database.
type storedState struct {
	usable bool          // it was checked, and a daemon could write it
	empty  bool          // nothing is stored yet
	other  bool          // of another release: what it holds is not looked at
	status store.Status  // if the schema is of this release
	scope  *ledger.Scope // in force; nil: none is
}

func (c *checker) checkDatabase(ctx context.Context) {
	s := c.section(GroupDatabase)
	if c.cfg.DatabaseURL == "" {
		s.note("url", "not configured: give --database-url postgres://user@host/name, or INDEXER_DATABASE_URL with a "+
			"password in it")
		return
	}
	if err := config.CheckDatabaseURL(c.cfg.DatabaseURL); err != nil {
		reportUnusable(s, "url", err)
		return
	}
	db, err := store.Open(store.Config{URL: c.cfg.DatabaseURL, Schemas: c.cfg.Schemas})
	if err != nil { // its text may contain a password
		s.problem("url", "--database-url can't be understood", "write postgres://user@host:port/database, or keywords and "+
			"values as libpq takes them")
		return
	}
	defer db.Close()
	within, cancel := c.step(ctx)
	defer cancel()
	inspector, err := db.Inspect(within)
	if err != nil {
		c.reportNoDatabase(s, db, err)
		return
	}
	defer inspector.Close(ctx)
	problems := c.report.Problems
	server, ok := c.checkDatabaseServer(ctx, s, db, inspector)
	if !ok {
		return
	}
	c.checkSessions(ctx, s, db)
	if !c.readsNetwork() || c.cfg.LedgerURL != "" {
		c.checkSchema(ctx, s, db, inspector, server)
	} else if !c.cfg.Schemas.OfNetwork() {
		c.checkHistoryNotRead(ctx, s, db, inspector)
	}
	if c.readsNetwork() {
		c.checkNetworkPair(ctx, s, server)
	}
	c.checkSettings(s, server)
	c.stored.usable = c.report.Problems == problems
}

// reportNoDatabase reports why there is no connection.
func (c *checker) reportNoDatabase(s section, db *store.Store, err error) {
	var dns *net.DNSError
	var refusal *pgconn.PgError
	var verify *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	if reportPooled(s, err) {
		return
	}
	what, do := "no connection: "+err.Error(), "see what the database's log says"
	switch {
	case errors.As(err, &refusal):
		do = c.refusalAdvice(refusal)
	case errors.As(err, &dns):
		do = "check the host in --database-url, and that this machine's DNS (in a container: its network) knows it"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		do = "check host and port in --database-url, that PostgreSQL runs, and that it listens there (listen_addresses)"
	case errors.As(err, &verify), errors.As(err, &unknown), strings.Contains(err.Error(), "x509"):
		do = "give the PEM of the authority that signs the server's certificate with sslrootcert in --database-url, and a " +
			"host that the certificate is for"
	case strings.Contains(err.Error(), "server refused TLS connection"):
		do = "switch ssl on in the server, or, on a private network, use sslmode=disable in --database-url"
	case timedOut(err):
		what = fmt.Sprintf("%s does not answer within %v", db.Address(), c.timeout)
		do = "check host and port in --database-url, and the firewalls between here and there"
	}
	s.problem("connection", what, do)
}

// refusalAdvice returns the cure for a server's refusal of a connection.
func (c *checker) refusalAdvice(refusal *pgconn.PgError) string {
	switch refusal.Code {
	case "28P01":
		return "correct the password: in INDEXER_DATABASE_URL, PGPASSWORD or a pgpass file"
	case "28000":
		return "let the user in with a line in pg_hba.conf (it names host, database and user), and see that the role " +
			"exists and has LOGIN"
	case "3D000":
		return "create the database: CREATE DATABASE name OWNER user ENCODING 'UTF8' TEMPLATE template0"
	case "53300":
		return fmt.Sprintf("raise max_connections, or the role's or database's CONNECTION LIMIT: a process holds up to %d",
			c.connections())
	case "57P03":
		return "wait until the server has started or recovered, and check again"
	case "42501":
		return "grant the user CONNECT on the database"
	}
	return cmp.Or(store.Cure(refusal), "see what the database's log says")
}

// checkDatabaseServer checks all that does not need our schema. ok is false if nothing can be read at all.
func (c *checker) checkDatabaseServer(ctx context.Context, s section, db *store.Store,
	inspector *store.Inspector) (store.ServerFacts, bool) {
	within, cancel := c.step(ctx)
	defer cancel()
	server, err := inspector.Server(within)
	if err != nil {
		if !reportPooled(s, err) {
			s.problem("server", err.Error(), "see what the database's log says")
		}
		return server, false
	}
	s.ok("connection", "%s, as %s", db.Address(), server.User)
	c.reportTransport(s, server.Transport)
	if server.VersionNumber < store.MinServerVersion {
		s.problem("version", "PostgreSQL "+server.Version+" is too old", "use PostgreSQL 15 or later")
	} else {
		s.ok("version", "PostgreSQL %s", server.Version)
	}
	if server.Encoding != "UTF8" {
		s.problem("encoding", "the database has the encoding "+server.Encoding,
			"make another one, with the encoding UTF8",
			"CREATE DATABASE "+sqlName(server.Database+"_utf8")+" OWNER "+sqlName(server.User)+
				" ENCODING 'UTF8' TEMPLATE template0;")
	} else {
		s.ok("encoding", "UTF8")
	}
	switch {
	case server.InRecovery:
		s.problem("writable", "the server is a standby, which can't be written", "connect to the primary "+
			"(target_session_attrs=read-write in --database-url finds it among several hosts)")
	case server.ReadOnly:
		s.problem("writable", "transactions of this user are read-only: default_transaction_read_only is on ("+
			server.Settings["default_transaction_read_only"].Source+")",
			"switch it off where it is set", "ALTER ROLE "+sqlName(server.User)+" SET default_transaction_read_only = off;")
	default:
		s.ok("writable", "it takes writes")
	}
	if need := c.connections(); server.FreeConnections < need {
		s.warn("connections", fmt.Sprintf("%d more can be made, and a process needs up to %d", max(0, server.FreeConnections),
			need),
			"raise max_connections, or the role's or database's CONNECTION LIMIT, before you start another process")
	} else {
		s.ok("connections", "%d more can be made; a process needs up to %d", server.FreeConnections, need)
	}
	c.clocks = append(c.clocks, clock{of: "database", ahead: server.ClockAhead})
	return server, true
}

// connections returns how many connections a process would hold with these settings.
func (c *checker) connections() int {
	streams := 0
	if c.cfg.LedgerURL != "" {
		streams++
	}
	if c.readsTransactions() {
		streams++
	}
	if c.readsNetwork() {
		// the network's pair of schemas has a pool of its own, and two leaders
		return store.Connections(streams) + store.Connections(2)
	}
	return store.Connections(max(1, streams))
}

func (c *checker) reportTransport(s section, t store.Transport) {
	switch {
	case t.TLS != "" && t.Verified:
		s.ok("tls", "%s, and the server's certificate is checked", t.TLS)
	case t.TLS != "":
		s.note("tls", "%s, but the server's certificate is not checked: sslmode=verify-full in --database-url does so", t.TLS)
	case t.Local:
		s.ok("tls", "none, and none is needed: the server is on this machine")
	default:
		s.warn("tls", "the connection is not encrypted", "use sslmode=verify-full (with sslrootcert) in --database-url, "+
			"unless the network is a private one")
	}
}

// checkSessions looks for a pooler with which the leader's lock would be lost.
func (c *checker) checkSessions(ctx context.Context, s section, db *store.Store) {
	within, cancel := c.step(ctx)
	defer cancel()
	switch err := db.CheckSessions(within); {
	case reportPooled(s, err):
	case err != nil:
		s.problem("pooler", "a second session beside the first can't be opened: "+err.Error(),
			fmt.Sprintf("see that %d connections can be open at once; a pooler may allow fewer", c.connections()))
	default:
		s.ok("pooler", "none, or one in session mode: sessions live as long as connections")
	}
}

// reportPooled reports sessions that don't live as long as connections, and returns whether err is about that.
func reportPooled(s section, err error) bool {
	var problem *ledger.Problem
	pooled := errors.Is(err, store.ErrPooled) && errors.As(err, &problem)
	if pooled {
		s.problem("pooler", problem.What, problem.Do)
	}
	return pooled
}
