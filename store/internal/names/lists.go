package names

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/session"
)

// Lists of parties get numbers as templates do, but there may be as many as there are users. So not all of them are
// kept in memory: those of a batch that are not remembered are looked up in the database together.

// Turn takes the lock under which lists of parties are added, until the transaction ends.
func Turn(ctx context.Context, tx pgx.Tx) (err error) {
	defer pg.Wrap(&err, "wait for another process that adds lists of parties")
	_, err = tx.Exec(ctx, session.LockLists.Alone())
	return err
}

// listKey identifies a list of parties. It is a digest, in which each party stands after its length: lists are long.
type listKey [sha256.Size]byte

// keySpace is the room for the text that a key is the digest of, in bytes. Most texts fit, and need no allocation.
const keySpace = 512

func keyOf(parties []string) listKey {
	var space [keySpace]byte
	text := space[:0]
	for _, party := range parties {
		text = binary.AppendUvarint(text, uint64(len(party)))
		text = append(text, party...)
	}
	return sha256.Sum256(text)
}

// listNumbers gives lists of parties their numbers. It is safe for concurrent use.
type listNumbers struct {
	db    dbsqlc.DBTX
	write WriteFunc
	mu    sync.Mutex // of known
	known recent[listKey, int32]
}

// resolve gives lists their numbers, and adds those that are new, in a transaction before that of the rows that use
// them.
func (n *listNumbers) resolve(ctx context.Context, wanted []List) error {
	unknown := n.find(wanted)
	missing, err := FindLists(ctx, n.db, wanted, unknown)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		err := n.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
			return addLists(ctx, tx, wanted, missing)
		})
		if err != nil {
			return err
		}
	}
	n.keep(wanted, unknown)
	return nil
}

// find gives lists the numbers that are remembered, and returns the places of the other lists.
func (n *listNumbers) find(wanted []List) (unknown []int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for place := range wanted {
		number, known := n.known.get(wanted[place].key)
		if !known {
			unknown = append(unknown, place)
		}
		*wanted[place].Number = number
	}
	return unknown
}

// keep remembers the numbers of lists, which have to be committed.
func (n *listNumbers) keep(wanted []List, places []int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, place := range places {
		n.known.put(wanted[place].key, *wanted[place].Number)
	}
}

// FindLists gives the lists at some places the numbers that they have in the database, and returns the places of those
// that have none.
func FindLists(ctx context.Context, db dbsqlc.DBTX, lists []List, places []int) (missing []int, err error) {
	if len(places) == 0 {
		return nil, nil
	}
	rows, err := queries.PartyListsFind(ctx, db, dbsqlc.PartyListsFindParams(placedLists(lists, places)))
	if err != nil {
		return nil, fmt.Errorf("look for %d lists of parties: %w", len(places), err)
	}
	for _, row := range rows {
		if *lists[row.Place].Number = row.PartyListRef; row.PartyListRef == 0 {
			missing = append(missing, int(row.Place))
		}
	}
	return missing, nil
}

// addLists gives lists numbers, except for those that others have numbered meanwhile, whose numbers it finds.
func addLists(ctx context.Context, tx pgx.Tx, lists []List, places []int) error {
	if err := Turn(ctx, tx); err != nil {
		return err
	}
	added, err := queries.PartyListsAdd(ctx, tx, dbsqlc.PartyListsAddParams(placedLists(lists, places)))
	if err != nil {
		return fmt.Errorf("add %d lists of parties: %w", len(places), err)
	}
	for _, row := range added {
		*lists[row.Place].Number = row.PartyListRef
	}
	others := slices.DeleteFunc(slices.Clone(places), func(place int) bool { return *lists[place].Number != 0 })
	missing, err := FindLists(ctx, tx, lists, others)
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("%d lists of parties were neither added nor found", len(missing))
	}
	return err
}

// Add gives names and lists that have no number one, within a transaction that has locked the dictionaries. It
// remembers nothing.
func Add(ctx context.Context, tx pgx.Tx, wanted *References) (added bool, err error) {
	d := New(tx, nil)
	if err := d.load(ctx, tx); err != nil {
		return false, err
	}
	if !d.lookUp(wanted) {
		added = true
		if err := d.add(ctx, tx, wanted); err != nil {
			return false, err
		}
	}
	missing, err := FindLists(ctx, tx, wanted.Lists, wanted.Places())
	if err == nil && len(missing) > 0 {
		added = true
		err = addLists(ctx, tx, wanted.Lists, missing)
	}
	return added, err
}

// Places returns the places of all lists that were collected.
func (n *References) Places() []int {
	places := make([]int, len(n.Lists))
	for i := range places {
		places[i] = i
	}
	return places
}

// placedLists returns lists as statements take them.
func placedLists(lists []List, places []int) (placed struct {
	Places []int32
	Lists  []string
}) {
	for _, place := range places {
		placed.Places = append(placed.Places, int32(place))
		placed.Lists = append(placed.Lists, ArrayText(lists[place].Parties))
	}
	return placed
}

// ArrayText returns an array of texts as PostgreSQL writes it.
func ArrayText(list []string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, text := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		if text != "" && !strings.EqualFold(text, "NULL") && !strings.ContainsAny(text, "{},\"\\ \t\n\v\f\r") {
			b.WriteString(text)
			continue
		}
		b.WriteByte('"')
		_, _ = arrayEscapes.WriteString(&b, text) // a Builder takes everything
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}

var arrayEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
