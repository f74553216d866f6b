package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/pg"
)

// Reader is a role of the database that may read, and what it sees.
type Reader struct {
	Role       string   `json:"role"`
	AllParties bool     `json:"all_parties"`       // sees everything
	Parties    []string `json:"parties,omitempty"` // else what these may see
	History    bool     `json:"history,omitempty"` // with Parties: the transaction history too
	OnlyKnown  bool     `json:"-"`                 // for Grant, with Parties: refuse those that nothing stored names

	GrantedAt time.Time `json:"granted_at,omitzero"` // of one that was granted
	// why the role sees more than its parties may; empty: it does not. The role was changed since
	Unlimited string `json:"unlimited,omitempty"`
}

// Granted is what Grant found.
type Granted struct {
	Unknown []string // parties that nothing stored names
}

// Grant lets a role read what analysts read: everything, or what parties may see. It replaces an earlier grant. The
// first limited role needs policies, for which each table is locked for a moment. The error is a *ledger.Problem if the
// role does not exist or can't be limited, or, with OnlyKnown, if nothing stored names a party.
func (s *Store) Grant(ctx context.Context, r Reader) (granted Granted, err error) {
	defer pg.Wrap(&err, "let role %s read", r.Role)
	err = s.changeAccess(ctx, func(tx pgx.Tx) error {
		if err := s.checkReader(ctx, tx, r); err != nil {
			return err
		}
		if _, err := s.removeReader(ctx, tx, r.Role); err != nil {
			return err
		}
		parties := slices.Compact(slices.Sorted(slices.Values(r.Parties)))
		add := dbsqlc.ReaderAddParams{Reader: r.Role, AllParties: r.AllParties, History: r.History, Parties: parties}
		if err := queries.ReaderAdd(ctx, tx, add); err != nil {
			return err
		}
		// removeReader holds the lock under which lists are numbered, so whoever numbers one later sees this reader and adds
		// the list to it.
		if err := queries.ReaderListsAdd(ctx, tx, r.Role); err != nil {
			return err
		}
		if granted.Unknown, err = s.unknownParties(ctx, tx, parties); err != nil {
			return err
		}
		if len(granted.Unknown) > 0 && r.OnlyKnown {
			return s.unknownParty(ctx, tx, granted.Unknown)
		}
		return s.settleAccess(ctx, tx)
	})
	return granted, err
}

// Revoke takes from a role what Grant gave it, and reports whether it was given anything. With the last role that is
// limited the policies go too.
func (s *Store) Revoke(ctx context.Context, role string) (revoked bool, err error) {
	defer pg.Wrap(&err, "take from role %s what it may read", role)
	err = s.changeAccess(ctx, func(tx pgx.Tx) error {
		if revoked, err = s.removeReader(ctx, tx, role); err != nil {
			return err
		}
		return s.settleAccess(ctx, tx)
	})
	return revoked, err
}

// Readers lists the roles that may read, by name.
func (s *Store) Readers(ctx context.Context) (list []Reader, err error) {
	defer pg.Wrap(&err, "list the roles that may read")
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		rows, err := queries.ReaderList(ctx, tx)
		if err != nil {
			return err
		}
		for _, row := range rows {
			r := Reader{Role: row.Reader, AllParties: row.AllParties, Parties: row.Parties, History: row.History,
				GrantedAt: row.GrantedAt.Time}
			if exists, err := roleExists(ctx, tx, r.Role); err != nil {
				return err
			} else if !exists {
				r.Unlimited = "there is no such role any more"
			} else if !r.AllParties {
				if r.Unlimited, err = s.whyUnlimited(ctx, tx, r.Role); err != nil {
					return err
				}
			}
			list = append(list, r)
		}
		return nil
	})
	return list, err
}

// checkReader refuses a role that there is not, and, for one that is to be limited, one that can't be.
func (s *Store) checkReader(ctx context.Context, tx pgx.Tx, r Reader) error {
	exists, err := roleExists(ctx, tx, r.Role)
	if err != nil {
		return err
	}
	name := pgx.Identifier{r.Role}.Sanitize()
	if !exists {
		return &ledger.Problem{
			What: "there is no such role",
			Do:   fmt.Sprintf("have somebody who may create roles run: CREATE ROLE %s LOGIN PASSWORD '...'", name),
		}
	}
	if r.AllParties {
		return nil
	}
	why, err := s.whyUnlimited(ctx, tx, r.Role)
	if err != nil || why == "" {
		return err
	}
	return &ledger.Problem{
		What: "it can't be limited to parties: " + why,
		Do: fmt.Sprintf("take that from it, or use a role that has no other rights: CREATE ROLE ... LOGIN PASSWORD "+
			"'...'; what was granted to %s stays as it is", name),
	}
}

func roleExists(ctx context.Context, tx pgx.Tx, role string) (exists bool, err error) {
	err = tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)", role).Scan(&exists)
	return exists, err
}

// whyUnlimitedSQL says why policies don't limit a role: because of its own rights, or those of a role that it is a
// member of and could become. Its own rights to what analysts read don't count, because Grant revokes them.
const whyUnlimitedSQL = `
WITH RECURSIVE becomes (oid) AS (
    SELECT r.oid FROM pg_roles r WHERE r.rolname = $1
    UNION
    SELECT m.roleid FROM pg_auth_members m JOIN becomes b ON b.oid = m.member
), reasons (oid, place, reason) AS (
    SELECT r.oid, 1, CASE WHEN r.rolsuper THEN 'is a superuser'
        WHEN r.rolbypassrls THEN 'has BYPASSRLS'
        WHEN r.rolcreaterole THEN 'has CREATEROLE, and could make itself a member of others'
        WHEN r.rolreplication THEN 'has REPLICATION, and could copy the database'
        WHEN r.rolname LIKE 'pg\_%' THEN 'is one of PostgreSQL''s own roles'
        WHEN EXISTS (SELECT FROM pg_database d WHERE d.datname = current_database() AND d.datdba = r.oid)
            THEN 'owns the database'
        WHEN EXISTS (SELECT FROM pg_namespace n WHERE n.nspname IN ($2, $3) AND n.nspowner = r.oid)
            OR EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = $2::text::regnamespace AND c.relowner = r.oid)
                THEN 'owns the indexer''s tables'
        WHEN r.rolname <> $1 AND EXISTS (SELECT FROM readers x WHERE x.reader = r.rolname)
            THEN 'may read by a grant of its own' END
    FROM pg_roles r JOIN becomes b ON b.oid = r.oid
    UNION ALL
    SELECT b.oid, 2, 'may use schema ' || $2 FROM becomes b
    WHERE has_schema_privilege(b.oid, $2::text::regnamespace, 'USAGE')
        OR has_schema_privilege(b.oid, $2::text::regnamespace, 'CREATE')
    UNION ALL
    SELECT b.oid, 3, 'has rights to ' || c.oid::regclass::text
    FROM becomes b JOIN pg_class c ON c.relnamespace = $2::text::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
    WHERE has_table_privilege(b.oid, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
       OR c.relkind <> 'v' AND NOT c.relname = ANY ($4::text[]) AND has_table_privilege(b.oid, c.oid, 'SELECT')
    UNION ALL
    SELECT b.oid, 4,
        'may read ' || quote_ident(n.nspname) || '.' || quote_ident(c.relname) || ', which shows what its owner sees'
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace CROSS JOIN LATERAL aclexplode(c.relacl) a
    JOIN pg_roles r ON r.rolname = $1 JOIN becomes b ON b.oid = a.grantee AND b.oid <> r.oid
        OR a.grantee = 0 AND b.oid = r.oid
    WHERE n.nspname = ANY ($5::text[]) AND c.relkind IN ('r', 'p', 'v', 'm') AND a.privilege_type = 'SELECT'
      AND NOT (c.relkind = 'v' AND coalesce('security_invoker=true' = ANY (c.reloptions), false))
)
SELECT CASE WHEN r.rolname = $1 THEN 'it '
    ELSE 'it is a member of ' || quote_ident(r.rolname) || ', which ' END || x.reason
FROM reasons x JOIN pg_roles r ON r.oid = x.oid
WHERE x.reason IS NOT NULL
ORDER BY x.place, r.rolname <> $1, r.rolname, x.reason LIMIT 1`

// whyUnlimited returns why a role would see more than its parties may; empty: it would not.
func (s *Store) whyUnlimited(ctx context.Context, tx pgx.Tx, role string) (why string, err error) {
	pair := s.db.Config.Schemas
	schemas, err := s.readSchemas(ctx, tx)
	if err != nil {
		return "", err
	}
	reasons, err := pg.Column[string](ctx, tx, whyUnlimitedSQL, role, pair.Tables, pair.Views, readableNames(), schemas)
	return strings.Join(reasons, ""), err
}

// removeReader takes from a role what was granted to it, and reports whether anything was. It first takes the lock
// under which lists of parties are numbered, and keeps it until the transaction ends: numbering a list also adds it to
// its readers, which would deadlock with a grant.
func (s *Store) removeReader(ctx context.Context, tx pgx.Tx, role string) (removed bool, err error) {
	if err := names.Turn(ctx, tx); err != nil {
		return false, err
	}
	n, err := queries.ReaderRemove(ctx, tx, role)
	if err != nil {
		return false, err
	}
	exists, err := roleExists(ctx, tx, role)
	if err != nil || !exists {
		return n > 0, err
	}
	return n > 0, s.takeRights(ctx, tx, role)
}

func (s *Store) unknownParties(ctx context.Context, tx pgx.Tx, parties []string) (unknown []string, err error) {
	return pg.Column[string](ctx, tx, "SELECT p.party FROM unnest($1::text[]) p (party) WHERE NOT EXISTS (SELECT FROM "+
		pgx.Identifier{s.db.Config.Schemas.Views}.Sanitize()+".parties x WHERE x.party = p.party) ORDER BY 1", parties)
}

// likeliestPartiesSQL lists the stored parties that may be meant by a name: those of the same hint, then those whose
// hints share at least a third of their pairs of letters.
const likeliestPartiesSQL = `
WITH asked AS (
    SELECT lower(split_part($1, '::', 1)) AS hint
), pairs AS (
    SELECT DISTINCT substr(' ' || a.hint || ' ', i, 2) AS pair FROM asked a, generate_series(1, length(a.hint) + 1) i
)
SELECT p.party
FROM asked a CROSS JOIN VIEWS.parties p CROSS JOIN LATERAL (
    SELECT p.hint = split_part($1, '::', 1) AS same, (
        SELECT count(DISTINCT substr(' ' || lower(p.hint) || ' ', i, 2)) FROM generate_series(1, length(p.hint) + 1) i
        WHERE substr(' ' || lower(p.hint) || ' ', i, 2) IN (SELECT x.pair FROM pairs x)
    ) * 2.0 / (length(p.hint) + length(a.hint) + 2) AS alike
) l
WHERE l.same OR l.alike > 0.33
ORDER BY l.same DESC, l.alike DESC, p.party LIMIT 3`

// unknownParty refuses parties that nothing stored names.
func (s *Store) unknownParty(ctx context.Context, tx pgx.Tx, unknown []string) error {
	query := strings.ReplaceAll(likeliestPartiesSQL, "VIEWS", pgx.Identifier{s.db.Config.Schemas.Views}.Sanitize())
	likely, err := pg.Column[string](ctx, tx, query, unknown[0])
	if err != nil {
		return fmt.Errorf("look for parties with names like %s: %w", unknown[0], err)
	}
	quoted := func(parties []string, separator string) string {
		var list []string
		for _, party := range parties {
			list = append(list, strconv.Quote(party))
		}
		return strings.Join(list, separator)
	}
	meant := "names are whole, as in " + s.db.Config.Schemas.Views + ".parties (hint::fingerprint)"
	if len(likely) > 0 {
		meant = "perhaps " + quoted(likely, " or ") + " is meant"
	}
	party, it := "party", "it"
	if len(unknown) > 1 {
		party, it = "any of the parties", "them"
	}
	return &ledger.Problem{
		What: fmt.Sprintf("nothing that is stored names %s %s: the role would see nothing of %s", party,
			quoted(unknown, ", "), it),
		Do: fmt.Sprintf("%s; with --anyway the role sees what comes of %s later", meant, it),
	}
}
