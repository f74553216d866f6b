package check

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/participant"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// checkSchema checks the rights, the schema's version, and the stored data.
func (c *checker) checkSchema(ctx context.Context, s section, db *store.Store, inspector *store.Inspector,
	server store.ServerFacts) {
	within, cancel := c.step(ctx)
	defer cancel()
	facts, readable := c.checkPair(within, s, "schema", inspector, server)
	if !readable {
		c.stored.empty = facts.Wanted > 0 && facts.Version == 0 && !c.cfg.NoMigrate
		c.stored.other = facts.Version > 0
		return
	}
	status, err := db.Status(within)
	if err != nil {
		s.problem("contents", err.Error(), storedAdvice(err))
		return
	}
	scope, known, err := db.Scope(within)
	if err != nil {
		what, do := explained(err)
		s.problem("scope", what, do)
		return
	}
	if known {
		c.stored.scope = &scope
	}
	c.stored.status = status
	c.stored.empty = !status.Started && status.Snapshot == nil
	c.reportIdentity(s)
	c.reportStoredScope(within, s, db)
	c.reportWatermark(ctx, s, db)
	c.reportStoredHistory(s)
	c.reportLeaders(s)
	reportReaders(within, s, db)
}

// reportReaders reports roles that were limited to parties and see more by now, such as by another role that they were
// given.
func reportReaders(ctx context.Context, s section, db *store.Store) {
	readers, err := db.Readers(ctx)
	if err != nil {
		s.warn("readers", err.Error(), storedAdvice(err))
		return
	}
	limited := 0
	for _, r := range readers {
		if !r.AllParties {
			limited++
		}
		if r.Unlimited != "" {
			s.warn("readers", fmt.Sprintf("role %s was changed since it was limited to parties: %s",
				pgx.Identifier{r.Role}.Sanitize(), r.Unlimited),
				"take that from it, or take its rights with `indexer revoke`; `indexer grants` lists who may read")
		}
	}
	if len(readers) > 0 {
		s.ok("readers", "%d roles were given rights, %d of them limited to parties", len(readers), limited)
	}
}

// checkPair checks the rights in a pair of schemas and its version. Not readable: nothing is stored, or it can't be
// read.
func (c *checker) checkPair(ctx context.Context, s section, name string, inspector *store.Inspector,
	server store.ServerFacts) (facts store.SchemaFacts, readable bool) {
	facts, err := inspector.Schema(ctx)
	if err != nil {
		s.problem(name, err.Error(), storedAdvice(err))
		return store.SchemaFacts{}, false
	}
	if !reportRights(s, server, facts) {
		s.skip(name, "the rights do not suffice")
		return store.SchemaFacts{}, false
	}
	reportLocks(s, server, facts)
	switch {
	case facts.Version > facts.Wanted:
		s.problem(name, fmt.Sprintf("version %d is newer than this program, which knows %d", facts.Version, facts.Wanted),
			"run the newer release of the indexer that migrated this database; schemas are not migrated back")
	case facts.Version < facts.Wanted && c.cfg.NoMigrate:
		s.problem(name, fmt.Sprintf("version %d is not this program's, %d, and --migrate leaves it: `indexer run` would "+
			"refuse it or wait", facts.Version, facts.Wanted),
			"run `indexer migrate`, or leave out --migrate")
	case facts.Version == 0:
		s.ok(name, "none yet: the first start makes it")
	case facts.Version < facts.Wanted:
		s.note(name, "version %d; `indexer run` or `indexer migrate` brings it to %d. Processes of the older release write "+
			"nothing more then, and what is stored is looked at after that", facts.Version, facts.Wanted)
	default:
		s.ok(name, "version %d", facts.Version)
		return facts, true
	}
	return facts, false
}

// checkNetworkPair checks the pair of schemas of a network's updates, where the flags ask for these, and whose they
// are.
func (c *checker) checkNetworkPair(ctx context.Context, s section, server store.ServerFacts) {
	db, err := store.Open(store.Config{URL: c.cfg.DatabaseURL, Schemas: config.NetworkSchemas})
	if err != nil {
		s.problem("network's schema", err.Error(), storedAdvice(err))
		return
	}
	defer db.Close()
	within, cancel := c.step(ctx)
	defer cancel()
	inspector, err := db.Inspect(within)
	if err != nil {
		s.problem("network's schema", err.Error(), storedAdvice(err))
		return
	}
	defer inspector.Close(ctx)
	if _, readable := c.checkPair(within, s, "network's schema", inspector, server); !readable {
		return
	}
	status, err := db.Status(within)
	switch stored, here := status.ParticipantID, c.scan.networkID; {
	case err != nil:
		s.problem("network's updates", err.Error(), storedAdvice(err))
	case stored == "":
		s.ok("network's updates", "none yet")
	case here == "":
		s.note("network's updates", "they are of the network of %s; which one --scan-url leads to is not known", stored)
	case stored != here:
		s.problem("network's updates", fmt.Sprintf("they are of the network of %s, and --scan-url leads to that of %s: "+
			"`indexer run` would refuse", stored, here),
			"correct --scan-url or --database-url; each network needs a database of its own")
	default:
		reportReaders(within, s, db)
		s.ok("network's updates", "they are of this network, up to offset %d", status.Watermark)
	}
}

func storedAdvice(err error) string {
	if timedOut(err) {
		return "see whether the database is overloaded, or a migration holds its tables, and check again"
	}
	return "if nobody changed the schema of the tables or its rights, report it with this message"
}

func reportRights(s section, server store.ServerFacts, facts store.SchemaFacts) bool {
	for _, schema := range facts.Schemas {
		if !schema.Owned {
			s.problem("rights", fmt.Sprintf("schema %s belongs to %s, and %s is not in that role: only the owner can migrate "+
				"and attach partitions",
				schema.Name, schema.Owner, server.User), "connect as "+schema.Owner+": all processes that write one database use "+
				"the same user")
			return false
		}
	}
	if facts.Foreign != "" {
		s.problem("rights", fmt.Sprintf("%s does not own %s.%s: only the owner can attach partitions", server.User,
			facts.Pair.Tables, facts.Foreign),
			"connect as the user that made the tables, or have them handed over (ALTER TABLE … OWNER TO)")
		return false
	}
	if len(facts.Schemas) < 2 && !server.MayCreateSchemas {
		s.problem("rights", fmt.Sprintf("%s may not make schemas in this database, which belongs to %s", server.User,
			server.DatabaseOwner),
			"let the user own the database, or grant it CREATE there",
			fmt.Sprintf("GRANT CREATE ON DATABASE %s TO %s;", sqlName(server.Database), sqlName(server.User)))
		return false
	}
	if len(facts.Schemas) == 1 && facts.Version == 0 {
		s.warn("rights", "there is a schema "+facts.Schemas[0].Name+" already, and it is not the indexer's",
			"use a database of its own, or other names (--tables-schema, --views-schema)")
		return true
	}
	s.ok("rights", "%s may make, or owns, schemas %s and %s", server.User, facts.Pair.Tables, facts.Pair.Views)
	return true
}

func sqlName(name string) string { return pgx.Identifier{name}.Sanitize() }

// reportIdentity compares the stored participant id with that of the participant.
func (c *checker) reportIdentity(s section) {
	stored, here := c.stored.status.ParticipantID, c.ledger.participantID
	switch {
	case stored == "" && c.stored.empty:
		s.ok("participant", "none yet: the database is free")
	case stored == "":
		s.note("participant", "the database does not know whose ledger it holds")
	case c.cfg.LedgerURL == "":
		s.ok("participant", "it holds the ledger of %s", stored)
	case here == "":
		s.note("participant", "it holds the ledger of %s; which participant --ledger-url leads to is not known", stored)
	case stored != here:
		s.problem("participant", fmt.Sprintf("it belongs to participant %s, and --ledger-url leads to %s: `indexer run` "+
			"would refuse", stored, here),
			"correct --ledger-url or --database-url: each participant needs a database or a pair of schemas (--tables-schema, "+
				"--views-schema) of its own")
	default:
		s.ok("participant", "it belongs to this participant")
	}
}

// reportStoredScope compares the stored scope with the flags.
func (c *checker) reportStoredScope(ctx context.Context, s section, db *store.Store) {
	status, scope := c.stored.status, c.cfg.Scope
	if c.cfg.LedgerURL == "" && c.cfg.ScanURL != "" {
		return // nothing is to be read of the ledger
	}
	if status.Snapshot != nil && status.SnapshotScope != scope.Hash() {
		s.problem("scope", "the unfinished snapshot has another scope than these flags: `backfill` would refuse",
			"set the scope's flags as they were, or drop the snapshot with `backfill --restart`")
		return
	}
	switch {
	case c.stored.scope != nil && c.stored.scope.Hash() != scope.Hash():
		c.reportOtherScope(ctx, s, db, *c.stored.scope)
	case c.stored.scope != nil || status.Snapshot != nil:
		s.ok("scope", "it holds what these flags ask for")
	}
}

// reportOtherScope reports that the scope of the flags is not the one in force.
func (c *checker) reportOtherScope(ctx context.Context, s section, db *store.Store, stored ledger.Scope) {
	here, there := stored.Differences(c.cfg.Scope)
	if !c.cfg.ChangeScope {
		s.problem("scope", fmt.Sprintf("it holds another scope than these flags, and `indexer run` would refuse: "+
			"it has %s, these have %s", here, there),
			"set the flags as they were; or, if parties, templates or interfaces were added or taken away on purpose, start "+
				"`indexer run` once with --change-scope; or use a new "+
				"database or pair of schemas (--tables-schema, --views-schema)")
		return
	}
	if err := db.CheckChange(ctx, "", c.cfg.Scope); err != nil {
		what, do := explained(err)
		s.problem("scope", "`indexer run` would refuse: "+what, do)
		return
	}
	then := ""
	if len(c.cfg.Scope.Lacks(stored)) > 0 {
		then += fmt.Sprintf("; what is taken away stays as history up to about offset %d, and is not active after that",
			c.stored.status.Watermark)
	}
	if len(stored.Lacks(c.cfg.Scope)) > 0 {
		then += fmt.Sprintf("; what is added is active from about offset %d on, and has no events before",
			c.stored.status.Watermark)
	}
	s.note("scope", "`indexer run` puts another scope in force than it holds: %s in place of %s%s. Leave out "+
		"--change-scope after that", there, here, then)
}

// reportWatermark compares the watermark with the ledger's beginning and end, and the last stored update with the
// ledger's.
func (c *checker) reportWatermark(ctx context.Context, s section, db *store.Store) {
	status, l := c.stored.status, &c.ledger
	if status.Snapshot != nil {
		s.note("watermark", "none: a snapshot at offset %d is unfinished, with %d entries stored; `indexer run` waits "+
			"until `backfill` has finished it",
			status.Snapshot.At, status.Snapshot.Entries)
		return
	}
	if !status.Started {
		s.ok("watermark", "none: nothing is stored yet")
		return
	}
	at := status.Watermark
	text := fmt.Sprintf("offset %d, moved %s", at, status.UpdatedAt.UTC().Format(time.RFC3339))
	if l.end != nil && at > *l.end { // a daemon may have advanced since the end was requested: request it again
		within, cancel := c.step(ctx)
		defer cancel()
		_, end, err := l.client.Peek(within)
		if err != nil {
			s.warn("watermark", fmt.Sprintf("%s; whether that is above the ledger's end is not known: %v", text, err),
				"see whether the participant is overloaded, and check again")
			return
		}
		l.end = &end
	}
	switch {
	case l.end != nil && at > *l.end:
		s.problem("watermark", fmt.Sprintf("offset %d is above the ledger's end %d", at, *l.end),
			"the participant was restored from an older backup, or is another one: connect to the right one; if the backup is "+
				"to stay, run `indexer reanchor`")
	case l.pruned != nil && at < *l.pruned:
		s.problem("watermark", fmt.Sprintf("offset %d, and the participant is pruned up to %d: what is between can't be "+
			"had any more", at, *l.pruned),
			"seed an empty database with `backfill`, or read from a participant that still has it")
	default:
		if l.end != nil {
			text += fmt.Sprintf("; the ledger is %d offsets ahead", *l.end-at)
		}
		c.reportLastUpdate(ctx, s, db, text)
	}
}

// searches is how many times a step's timeout the search for the last offset in common may take.
const searches = 6

// reportLastUpdate reports the watermark, and whether the participant has the last update up to there: one that was
// restored from a backup may have come further since than it was.
func (c *checker) reportLastUpdate(ctx context.Context, s section, db *store.Store, text string) {
	status, l := c.stored.status, &c.ledger
	if !l.reads || c.stored.scope == nil || status.ParticipantID != "" && l.participantID != "" &&
		status.ParticipantID != l.participantID {
		s.ok("watermark", "%s", text)
		return
	}
	within, cancel := context.WithTimeout(ctx, searches*c.timeout)
	defer cancel()
	scope, upTo, err := c.scopeOfLastUpdate(within, db)
	if err != nil {
		s.problem("watermark", err.Error(), storedAdvice(err))
		return
	}
	client := l.client
	if scope.Hash() != c.cfg.Scope.Hash() {
		if client, err = participant.New(participant.Config{URL: c.cfg.LedgerURL, Access: c.cfg.LedgerAccess},
			scope); err != nil {
			s.warn("watermark", text+"; the last stored update can't be looked for: "+err.Error(), "see what the database holds")
			return
		}
		defer client.Close()
		c.redact = append(c.redact, client.Access().Redact)
	}
	unknown, err := ingest.CheckLast(within, client, audit.New(db), upTo)
	switch {
	case err != nil && ingest.Lasting(err):
		what, do := explained(err)
		s.problem("watermark", what, do)
	case err != nil:
		what, do := explained(err)
		s.warn("watermark", text+"; whether the ledger has the last stored update is not known: "+what, do)
	case unknown != nil:
		s.note("watermark", "%s; whether the ledger has the last stored update can't be found out: %v", text, unknown)
	default:
		s.ok("watermark", "%s", text)
	}
}

// scopeOfLastUpdate returns the scope in which the last update was stored, which is an earlier one where none was after
// a change, and the offset up to which the database holds what is of that scope.
func (c *checker) scopeOfLastUpdate(ctx context.Context, db *store.Store) (scope ledger.Scope, upTo ledger.Offset,
	err error) {
	scope, upTo = *c.stored.scope, c.stored.status.Watermark
	last, _, err := db.LastUpdate(ctx, upTo)
	if err != nil || last == 0 {
		return scope, upTo, err
	}
	earlier, inForce, end, err := db.ScopeAt(ctx, last-1)
	if err != nil || inForce {
		return scope, upTo, err
	}
	return earlier, min(upTo, end), nil
}

// reportStoredHistory reports the stored transaction history, and compares its network with that of the Scan service.
func (c *checker) reportStoredHistory(s section) {
	stored := c.stored.status.Transactions
	if stored == nil {
		if c.cfg.ScanURL != "" {
			s.ok("history", "none yet: nothing of a transaction history is stored")
		}
		return
	}
	if c.readsNetwork() {
		reportHistoryNotRead(s, c.stored.status)
		return
	}
	text := fmt.Sprintf("%s of the transaction history, moved %s", plural(int(stored.Records), "record"),
		stored.UpdatedAt.UTC().Format(time.RFC3339))
	if stored.Rereading {
		text += "; it is being read again from its beginning"
	}
	s.ok("history", "%s", text)
	switch here := c.scan.networkID; {
	case stored.NetworkID == "":
		s.note("network", "the database does not know of which network its transaction history is")
	case c.cfg.ScanURL == "":
		s.ok("network", "the transaction history is of the network of %s", stored.NetworkID)
	case here == "":
		s.note("network", "the transaction history is of the network of %s; which one --scan-url leads to is not known",
			stored.NetworkID)
	case stored.NetworkID != here:
		s.problem("network", fmt.Sprintf("the transaction history is of the network of %s, and --scan-url leads to that of "+
			"%s: `indexer run` would refuse", stored.NetworkID, here),
			"correct --scan-url or --database-url: each network needs a database or a pair of schemas (--tables-schema, "+
				"--views-schema) of its own")
	default:
		s.ok("network", "the transaction history is of this network")
	}
}

// checkHistoryNotRead looks for a transaction history in a pair of schemas into which nothing is to be read. Where that
// is not of this release it is not looked at.
func (c *checker) checkHistoryNotRead(ctx context.Context, s section, db *store.Store, inspector *store.Inspector) {
	within, cancel := c.step(ctx)
	defer cancel()
	facts, err := inspector.Schema(within)
	if err != nil || facts.Version != facts.Wanted {
		return
	}
	switch status, err := db.Status(within); {
	case err != nil:
		s.note("history", "whether schema %s holds a transaction history can't be found out: %v", facts.Pair.Views, err)
	case status.Transactions != nil:
		reportHistoryNotRead(s, status)
	}
}

// reportHistoryNotRead reports a stored transaction history that a daemon with these flags would leave as it is.
func reportHistoryNotRead(s section, status store.Status) {
	h, lead := status.Transactions, status.TransactionsLeader
	text := plural(int(h.Records), "record") + " of a transaction history"
	if !h.NewestRecord.IsZero() {
		text += ", the newest of " + h.NewestRecord.Format(time.RFC3339)
	}
	if lead.Leads {
		s.ok("history", "%s, which %s reads", text, lead.Holder)
		return
	}
	s.warn("history", text+": with these flags `indexer run` adds nothing to it any more",
		"to read it on, from a Scan of Splice 0.6 or earlier, run a daemon with --scan-history=transactions; else tell its "+
			"readers: the records that follow from the updates of the network are in network.transactions")
}

func (c *checker) reportLeaders(s section) {
	status := c.stored.status
	reportLeader(s, status.Leader, "the updates", ", and `backfill` would refuse")
	if c.cfg.ScanURL != "" || status.TransactionsLeader.Holder != "" {
		reportLeader(s, status.TransactionsLeader, "the transaction history", "")
	}
}

func reportLeader(s section, lead store.Leadership, of, also string) {
	switch {
	case lead.Leads:
		s.note("leader", "%s leads %s: another process would stand by%s", lead.Holder, of, also)
	case lead.Holder != "":
		s.ok("leader", "nobody leads %s; %s did last", of, lead.Holder)
	default:
		s.ok("leader", "nobody leads %s", of)
	}
}
