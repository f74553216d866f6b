package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
		return
	}
	contents, err := inspector.Contents(within)
	if err != nil {
		s.problem("contents", err.Error(), storedAdvice(err))
		return
	}
	c.stored.contents = contents
	c.stored.empty = !contents.Started && contents.Snapshot == nil
	c.reportIdentity(s)
	c.reportStoredScope(within, s, db)
	c.reportWatermark(ctx, s, db)
	c.reportStoredHistory(s)
	c.reportLeaders(s, server)
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
			"nothing more then", facts.Version, facts.Wanted)
		return facts, true
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
	contents, err := inspector.Contents(within)
	switch stored, here := contents.ParticipantID, c.scan.networkID; {
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
		s.ok("network's updates", "they are of this network, up to offset %d", contents.Watermark)
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
	stored, here := c.stored.contents.ParticipantID, c.ledger.participantID
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
	contents, scope := c.stored.contents, c.cfg.Scope
	if c.cfg.LedgerURL == "" && c.cfg.ScanURL != "" {
		return // nothing is to be read of the ledger
	}
	if contents.Snapshot != nil && contents.SnapshotScope != scope.Hash() {
		s.problem("scope", "the unfinished snapshot has another scope than these flags: `backfill` would refuse",
			"set the scope's flags as they were, or drop the snapshot with `backfill --restart`")
		return
	}
	for _, stored := range contents.Scopes {
		if stored.Hash() != scope.Hash() {
			c.reportOtherScope(ctx, s, db, strings.Join(differences(stored, scope), "; "))
			return
		}
	}
	if len(contents.Scopes) > 0 || contents.Snapshot != nil {
		s.ok("scope", "it holds what these flags ask for")
	}
}

// reportOtherScope reports that the scope of the flags is not the one in force.
func (c *checker) reportOtherScope(ctx context.Context, s section, db *store.Store, differences string) {
	if !c.cfg.ChangeScope {
		s.problem("scope", "it holds another scope than these flags, and `indexer run` would refuse: "+differences,
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
	stored := c.stored.contents.Scopes[0]
	then := ""
	if len(c.cfg.Scope.Lacks(stored)) > 0 {
		then += fmt.Sprintf("; what is taken away stays as history up to about offset %d, and is not active after that",
			c.stored.contents.Watermark)
	}
	if len(stored.Lacks(c.cfg.Scope)) > 0 {
		then += fmt.Sprintf("; what is added is active from about offset %d on, and has no events before",
			c.stored.contents.Watermark)
	}
	s.note("scope", "`indexer run` puts another scope in force than it holds: %s%s. Leave out --change-scope after that",
		differences, then)
}

// differences names the flags by which two scopes differ.
func differences(stored, flags ledger.Scope) (list []string) {
	set := func(items []string, none string) string {
		if len(items) == 0 {
			return none
		}
		return some(slices.Compact(slices.Sorted(slices.Values(items))))
	}
	for _, field := range []struct {
		flag        string
		stored, now string
	}{
		{"--parties", set(stored.Parties, "any"), set(flags.Parties, "any")},
		{"--templates", set(stored.Templates, "all"), set(flags.Templates, "all")},
		{"--interfaces", set(stored.Interfaces, "none"), set(flags.Interfaces, "none")},
		{"--shape", string(stored.Shape), string(flags.Shape)},
		{"--blobs", fmt.Sprint(stored.Blobs), fmt.Sprint(flags.Blobs)},
		{"--reassignments", fmt.Sprint(stored.Reassignments), fmt.Sprint(flags.Reassignments)},
		{"--topology", fmt.Sprint(stored.Topology), fmt.Sprint(flags.Topology)},
	} {
		if field.stored != field.now {
			list = append(list, fmt.Sprintf("%s was %s and is %s", field.flag, field.stored, field.now))
		}
	}
	if list == nil { // the difference is in the part of long lists that some leaves out
		list = []string{"--parties, --templates or --interfaces differ"}
	}
	return list
}

// reportWatermark compares the watermark with the ledger's beginning and end, and the last stored update with the
// ledger's.
func (c *checker) reportWatermark(ctx context.Context, s section, db *store.Store) {
	contents, l := c.stored.contents, &c.ledger
	if contents.Snapshot != nil {
		s.note("watermark", "none: a snapshot at offset %d is unfinished, with %d entries stored; `indexer run` waits "+
			"until `backfill` has finished it",
			contents.Snapshot.At, contents.Snapshot.Entries)
		return
	}
	if !contents.Started {
		s.ok("watermark", "none: nothing is stored yet")
		return
	}
	at := contents.Watermark
	text := fmt.Sprintf("offset %d, moved %s", at, contents.MovedAt.UTC().Format(time.RFC3339))
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
	contents, l := c.stored.contents, &c.ledger
	if !l.reads || len(contents.Scopes) == 0 || contents.ParticipantID != "" && l.participantID != "" &&
		contents.ParticipantID != l.participantID {
		s.ok("watermark", "%s", text)
		return
	}
	client := l.client
	if inForce := contents.Scopes[0]; inForce.Hash() != c.cfg.Scope.Hash() {
		var err error
		if client, err = participant.New(participant.Config{URL: c.cfg.LedgerURL, Access: c.cfg.LedgerAccess},
			inForce); err != nil {
			s.warn("watermark", text+"; the last stored update can't be looked for: "+err.Error(), "see what the database holds")
			return
		}
		defer client.Close()
		c.redact = append(c.redact, client.Access().Redact)
	}
	within, cancel := context.WithTimeout(ctx, searches*c.timeout)
	defer cancel()
	unknown, err := ingest.CheckLast(within, client, audit.New(db), contents.Watermark)
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

// reportStoredHistory reports the stored transaction history, and compares its network with that of the Scan service.
func (c *checker) reportStoredHistory(s section) {
	stored := c.stored.contents.History
	if stored == nil {
		if c.cfg.ScanURL != "" {
			s.ok("history", "none yet: nothing of a transaction history is stored")
		}
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

func (c *checker) reportLeaders(s section, server store.ServerFacts) {
	contents := c.stored.contents
	reportLeader(s, server, contents.Updates, "the updates", ", and `backfill` would refuse")
	if c.cfg.ScanURL != "" || contents.Transactions.Holder != "" {
		reportLeader(s, server, contents.Transactions, "the transaction history", "")
	}
}

func reportLeader(s section, server store.ServerFacts, lead store.Lead, of, also string) {
	switch {
	case lead.Held && lead.User != "" && lead.User != server.User && !server.Superuser:
		s.problem("leader", fmt.Sprintf("%s leads %s as database user %s, and these settings connect as %s: neither could "+
			"take over from the other",
			lead.Holder, of, lead.User, server.User), "let all processes that write one database use the same user")
	case lead.Held:
		s.note("leader", "%s leads %s: another process would stand by%s", lead.Holder, of, also)
	case lead.Holder != "":
		s.ok("leader", "nobody leads %s; %s did last", of, lead.Holder)
	default:
		s.ok("leader", "nobody leads %s", of)
	}
}
