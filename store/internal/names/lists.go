package names

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/dbsqlc"
)

// Lists of parties are numbered as templates are, and there may be as many as there are users: the lists of a batch are
// looked for in what is remembered, and the rest in the database, all of them at once.

// ListsClass is the class of the advisory lock of those who add lists: the one after those of package lead.
const ListsClass = 0x4c4b

// listKey identifies a list of parties: each party stands behind its length.
type listKey = string

// keySpace is enough for the keys of most lists: they are made, and looked up, without an allocation.
const keySpace = 512

func appendListKey(to []byte, parties []string) []byte {
	for _, party := range parties {
		to = binary.AppendUvarint(to, uint64(len(party)))
		to = append(to, party...)
	}
	return to
}

// wantedList is a list that needs a number, and its place among those that do.
type wantedList struct {
	Place   int
	Parties []string
}

// listAddress is where a list is in memory. It stands for the list: package ledger gives equal lists of a page the same memory where
// it can (its lexicon), and a list is not changed after it was decoded. Two lists at one address are equal, and a list is known by its
// address in less time than its key is made; equal lists at several addresses only cost a key each. The pointer keeps the memory from
// being used for another list.
type listAddress struct {
	first  *string
	length int
}

func addressOf(list []string) listAddress { return listAddress{unsafe.SliceData(list), len(list)} }

// Parties collects a list of parties; nil is none.
func (n Wanted) Parties(list []string) {
	if list == nil {
		return
	}
	at := addressOf(list)
	if _, seen := n.places[at]; seen {
		return
	}
	var space [keySpace]byte
	key := appendListKey(space[:0], list)
	wanted, has := n.Lists[string(key)]
	if !has {
		wanted = wantedList{len(n.Lists), list}
		n.Lists[string(key)] = wanted
	}
	n.places[at] = wanted.Place
}

// Parties is the number of a list of parties that was collected; nil for nil.
func (r Numbers) Parties(list []string) *int32 {
	if list == nil {
		return nil
	}
	if place, seen := r.Wanted.places[addressOf(list)]; seen {
		return r.Lists[place]
	}
	var space [keySpace]byte
	if wanted, has := r.Wanted.Lists[string(appendListKey(space[:0], list))]; has {
		return r.Lists[wanted.Place]
	}
	return nil
}

// listNumbers gives lists of parties their numbers. It is safe for concurrent use.
type listNumbers struct {
	queries *dbsqlc.Queries
	db      dbsqlc.DBTX
	write   WriteFunc
	known   listCache
}

// resolve gives lists their numbers, by their places, and adds those that are new, in a transaction before that of the rows that use
// them.
func (n *listNumbers) resolve(ctx context.Context, wanted map[listKey]wantedList) ([]*int32, error) {
	found := make([]*int32, len(wanted))
	unknown := n.known.find(wanted, found)
	if len(unknown) == 0 {
		return found, nil
	}
	slices.Sort(unknown) // the same batches make the same numbers
	q := n.queries
	missing, err := FindLists(ctx, q, n.db, wanted, unknown, found)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		err := n.write(ctx, func(ctx context.Context, tx pgx.Tx) error { return addLists(ctx, q, tx, wanted, missing, found) })
		if err != nil {
			return nil, err
		}
	}
	n.known.keep(unknown, wanted, found)
	return found, nil
}

// FindLists finds the numbers that lists have in the database, and returns the keys of those that have none.
func FindLists(
	ctx context.Context, q *dbsqlc.Queries, db dbsqlc.DBTX, lists map[listKey]wantedList, keys []listKey, found []*int32,
) (missing []listKey, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	rows, err := q.PartyListsFind(ctx, db, dbsqlc.PartyListsFindParams(placedLists(lists, keys)))
	if err != nil {
		return nil, fmt.Errorf("look for %d lists of parties: %w", len(keys), err)
	}
	for _, row := range rows {
		key, ref := keys[row.Place], row.PartyListRef
		if ref == 0 {
			missing = append(missing, key)
		} else {
			found[lists[key].Place] = &ref
		}
	}
	return missing, nil
}

// addLists numbers lists, but for those that others have numbered meanwhile, and finds the numbers.
func addLists(
	ctx context.Context, q *dbsqlc.Queries, tx pgx.Tx, lists map[listKey]wantedList, keys []listKey, found []*int32,
) error {
	if err := q.PartyListsTurn(ctx, tx, ListsClass); err != nil {
		return fmt.Errorf("wait for another process that adds lists of parties: %w", err)
	}
	added, err := q.PartyListsAdd(ctx, tx, dbsqlc.PartyListsAddParams(placedLists(lists, keys)))
	if err != nil {
		return fmt.Errorf("add %d lists of parties: %w", len(keys), err)
	}
	for _, row := range added {
		ref := row.PartyListRef
		found[lists[keys[row.Place]].Place] = &ref
	}
	others := slices.DeleteFunc(slices.Clone(keys), func(key listKey) bool { return found[lists[key].Place] != nil })
	missing, err := FindLists(ctx, q, tx, lists, others, found)
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("%d lists of parties were neither added nor found", len(missing))
	}
	return err
}

// Add gives names and lists that have no number one, within a transaction that has locked the dictionaries. It remembers nothing.
func Add(ctx context.Context, q *dbsqlc.Queries, tx pgx.Tx, wanted Wanted) (added bool, err error) {
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
	missing, err := FindLists(ctx, q, tx, wanted.Lists, slices.Sorted(maps.Keys(wanted.Lists)), found)
	if err == nil && len(missing) > 0 {
		added = true
		err = addLists(ctx, q, tx, wanted.Lists, missing, found)
	}
	return added, err
}

// placedLists are lists as statements take them.
func placedLists(lists map[listKey]wantedList, keys []listKey) (placed struct {
	Places []int32
	Lists  []string
}) {
	for i, key := range keys {
		placed.Places = append(placed.Places, int32(i))
		placed.Lists = append(placed.Lists, ArrayText(lists[key].Parties))
	}
	return placed
}

// ArrayText is an array of texts as PostgreSQL writes it.
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

// The most bytes of keys that are remembered, with what each entry of a map costs beside its key.
const (
	knownListBytes = 8 << 20
	knownListCosts = 64
)

// listCache remembers numbers of lists, in two generations: when the younger one has half of the bytes, it becomes the older
// one, and what was in that and was not asked for since is forgotten.
type listCache struct {
	mu             sync.Mutex
	younger, older map[listKey]*int32
	bytes          int // of the younger one
}

// find adds the numbers that are remembered to found, and returns the keys of the other lists.
func (c *listCache) find(wanted map[listKey]wantedList, found []*int32) (unknown []listKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, list := range wanted {
		ref, known := c.younger[key]
		if !known {
			if ref, known = c.older[key]; known {
				c.put(key, ref)
			}
		}
		if known {
			found[list.Place] = ref
		} else {
			unknown = append(unknown, key)
		}
	}
	return unknown
}

// keep remembers numbers, which have to be committed.
func (c *listCache) keep(keys []listKey, wanted map[listKey]wantedList, found []*int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		if _, known := c.younger[key]; !known {
			c.put(key, found[wanted[key].Place])
		}
	}
}

// put remembers a number in the younger generation, unless the list is so long that it would take the place of many.
func (c *listCache) put(key listKey, ref *int32) {
	cost := len(key) + knownListCosts
	if cost > knownListBytes/16 {
		return
	}
	if c.bytes += cost; c.younger == nil || c.bytes > knownListBytes/2 {
		c.younger, c.older, c.bytes = map[listKey]*int32{}, c.younger, cost
	}
	c.younger[key] = ref
}
