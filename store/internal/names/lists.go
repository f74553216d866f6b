package names

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/session"
)

// Lists of parties get numbers as templates do, but there may be as many as there are users. So not all of them are
// kept in memory: those of a batch that are not remembered are looked up in the database together.

// Turn takes the lock under which lists of parties are added, until the transaction ends.
func Turn(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, session.LockLists.Alone()); err != nil {
		return fmt.Errorf("wait for another process that adds lists of parties: %w", err)
	}
	return nil
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

// List is a list of parties that needs a number.
type List struct {
	Parties []string
	key     listKey
}

// ListPlace is the place of a list of parties among those that need a number.
type ListPlace int32

// Nobody is the place of a list that was not served.
const Nobody ListPlace = -1

// listAddress is where a list is in memory. It stands for the list: package ledger gives equal lists of a page the same
// memory where it can (its lexicon), and a list is not changed after it was decoded. Two lists at one address are
// equal, and a list is known by its address in less time than its key is made; equal lists at several addresses only
// cost a key each. The pointer keeps the memory from being used for another list.
type listAddress struct {
	first  *string
	length int
}

func addressOf(list []string) listAddress { return listAddress{unsafe.SliceData(list), len(list)} }

// Parties collects a list of parties, and returns its place; nil is none.
func (n *Wanted) Parties(list []string) ListPlace {
	if list == nil {
		return Nobody
	}
	at := addressOf(list)
	place, has := n.places[at]
	if has {
		return place
	}
	key := keyOf(list)
	if place, has = n.placesByKey[key]; !has {
		place = ListPlace(len(n.Lists))
		n.Lists = append(n.Lists, List{list, key})
		n.placesByKey[key] = place
	}
	n.places[at] = place
	return place
}

// Parties returns the number of a list of parties that was collected; nil for nil.
func (r Numbers) Parties(list []string) *int32 {
	if list == nil {
		return nil
	}
	place, has := r.Wanted.places[addressOf(list)]
	if !has {
		if place, has = r.Wanted.placesByKey[keyOf(list)]; !has {
			return nil
		}
	}
	return r.at(place)
}

// at returns the number of the list at a place; nil where that is Nobody.
func (r Numbers) at(place ListPlace) *int32 {
	if place == Nobody {
		return nil
	}
	return r.Lists[place]
}

// listNumbers gives lists of parties their numbers. It is safe for concurrent use.
type listNumbers struct {
	queries *dbsqlc.Queries
	db      dbsqlc.DBTX
	write   WriteFunc
	mu      sync.Mutex // of known
	known   recent[listKey, *int32]
}

// resolve gives lists their numbers, by their places, and adds those that are new, in a transaction before that of the
// rows that use them.
func (n *listNumbers) resolve(ctx context.Context, wanted []List) ([]*int32, error) {
	found := make([]*int32, len(wanted))
	unknown := n.find(wanted, found)
	if len(unknown) == 0 {
		return found, nil
	}
	missing, err := FindLists(ctx, n.queries, n.db, wanted, unknown, found)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		err := n.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
			return addLists(ctx, n.queries, tx, wanted, missing, found)
		})
		if err != nil {
			return nil, err
		}
	}
	n.keep(wanted, unknown, found)
	return found, nil
}

// find adds the numbers that are remembered to found, and returns the places of the other lists.
func (n *listNumbers) find(wanted []List, found []*int32) (unknown []int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for place := range wanted {
		ref, known := n.known.get(wanted[place].key)
		if !known {
			unknown = append(unknown, place)
		}
		found[place] = ref
	}
	return unknown
}

// keep remembers the numbers of lists, which have to be committed.
func (n *listNumbers) keep(wanted []List, places []int, found []*int32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, place := range places {
		n.known.put(wanted[place].key, found[place])
	}
}

// FindLists finds the numbers that the lists at some places have in the database, and returns the places of those that
// have none.
func FindLists(ctx context.Context, q *dbsqlc.Queries, db dbsqlc.DBTX, lists []List, places []int,
	found []*int32) (missing []int, err error) {
	if len(places) == 0 {
		return nil, nil
	}
	rows, err := q.PartyListsFind(ctx, db, dbsqlc.PartyListsFindParams(placedLists(lists, places)))
	if err != nil {
		return nil, fmt.Errorf("look for %d lists of parties: %w", len(places), err)
	}
	for _, row := range rows {
		if ref := row.PartyListRef; ref == 0 {
			missing = append(missing, int(row.Place))
		} else {
			found[row.Place] = &ref
		}
	}
	return missing, nil
}

// addLists gives lists numbers, except for those that others have numbered meanwhile, and returns all the numbers.
func addLists(ctx context.Context, q *dbsqlc.Queries, tx pgx.Tx, lists []List, places []int, found []*int32) error {
	if err := Turn(ctx, tx); err != nil {
		return err
	}
	added, err := q.PartyListsAdd(ctx, tx, dbsqlc.PartyListsAddParams(placedLists(lists, places)))
	if err != nil {
		return fmt.Errorf("add %d lists of parties: %w", len(places), err)
	}
	for _, row := range added {
		ref := row.PartyListRef
		found[row.Place] = &ref
	}
	others := slices.DeleteFunc(slices.Clone(places), func(place int) bool { return found[place] != nil })
	missing, err := FindLists(ctx, q, tx, lists, others, found)
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("%d lists of parties were neither added nor found", len(missing))
	}
	return err
}

// Add gives names and lists that have no number one, within a transaction that has locked the dictionaries. It
// remembers nothing.
func Add(ctx context.Context, q *dbsqlc.Queries, tx pgx.Tx, wanted *Wanted) (added bool, err error) {
	d := New(q, tx, nil)
	if err := d.load(ctx, tx); err != nil {
		return false, err
	}
	if _, complete := d.lookUp(wanted); !complete {
		added = true
		if err := d.add(ctx, tx, wanted); err != nil {
			return false, err
		}
	}
	found := make([]*int32, len(wanted.Lists))
	missing, err := FindLists(ctx, q, tx, wanted.Lists, wanted.Places(), found)
	if err == nil && len(missing) > 0 {
		added = true
		err = addLists(ctx, q, tx, wanted.Lists, missing, found)
	}
	return added, err
}

// Places returns the places of all lists that were collected.
func (n *Wanted) Places() []int {
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
