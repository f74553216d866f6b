package export

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"ledgerindexer/ledger"
)

// entriesAtOnce is how many entries a page of a snapshot has.
const entriesAtOnce = 1_000

var ofEntries = strings.Fields("of node_id ordinal reassignment_counter created_offset created_node_id workflow_id entry_extra kind raw")

// snapshotReader reads the entries of the snapshot that is carried at the floor, in the order of their offsets. An entry of an unknown kind
// comes at the place that its number says.
type snapshotReader struct {
	events
	entries *rows
	upTo    ledger.Offset
	read    int64                          // entries so far
	unknown map[int64]ledger.ContractEntry // the entries of unknown kinds that come later, by their number
}

// LedgerEnd implements ingest.SnapshotSource.
func (i *Import) LedgerEnd(context.Context) (ledger.Offset, error) { return i.End(), nil }

// PrunedOffset implements ingest.SnapshotSource.
func (i *Import) PrunedOffset(context.Context) (ledger.Offset, error) { return 0, ledger.ErrNotOffered }

// SnapshotOffset implements ingest.SnapshotSource: there is one snapshot.
func (i *Import) SnapshotOffset(_ context.Context, upTo ledger.Offset) (ledger.Offset, error) {
	return upTo, nil
}

// ReadSnapshot implements ingest.SnapshotSource.
func (i *Import) ReadSnapshot(ctx context.Context, at ledger.Offset, token ledger.Token) (ledger.SnapshotPage, error) {
	page, err := i.readSnapshot(ctx, at, token)
	return page, i.lasting(ctx, err)
}

func (i *Import) readSnapshot(ctx context.Context, at ledger.Offset, token ledger.Token) (page ledger.SnapshotPage, err error) {
	var behind int64
	var file string // of which so many entries were read
	if token != (ledger.Token{}) {
		if _, err := fmt.Sscanf(token.Value, "%d %s", &behind, &file); err != nil || token.Kind != ledger.TokenExport {
			return page, &ledger.Problem{
				What: fmt.Sprintf("the database holds an unfinished snapshot at offset %d that is not of an export", at),
				Do:   "finish it with `backfill`, or import into another database",
			}
		}
	}
	if i.snapshot == nil || i.snapshot.read != behind {
		i.closeSnapshot()
		if i.snapshot, err = i.openSnapshot(ctx, at); err != nil {
			return page, err
		}
	}
	s := i.snapshot
	if file != "" && file != s.entries.file.Name {
		return page, &ledger.Problem{
			What: fmt.Sprintf("the entries of the snapshot at offset %d in %s were exported again after a part of them had been imported: others may come first now", at, i.place),
			Do:   "import into a new database",
		}
	}
	for s.read < behind {
		if _, err := s.next(); err != nil {
			return page, err
		}
	}
	for len(page.Entries) < entriesAtOnce && page.Bytes < pageBytes && s.more() {
		entry, err := s.next()
		if err != nil {
			return page, err
		}
		page.Entries = append(page.Entries, entry)
		page.Bytes += 1_000
		if entry.Active != nil {
			page.Bytes += int64(len(entry.Active.Created.Argument) + len(entry.Active.Created.Blob))
		}
	}
	page.Next = ledger.Token{Kind: ledger.TokenExport, Value: fmt.Sprintf("%d %s", s.read, s.entries.file.Name)}
	if page.Last = !s.more(); page.Last {
		page.Next = ledger.Token{}
		i.closeSnapshot()
	}
	return page, nil
}

func (i *Import) closeSnapshot() {
	if i.snapshot != nil {
		i.snapshot.close()
	}
	i.snapshot = nil
}

func (i *Import) openSnapshot(ctx context.Context, at ledger.Offset) (*snapshotReader, error) {
	m := &i.done[0]
	s := &snapshotReader{upTo: at, unknown: map[int64]ledger.ContractEntry{}}
	var err error
	if s.all, err = i.openRelations(ctx, m, -1, append(s.relations(), relationColumns{"snapshot_entries", ofEntries, &s.entries})); err != nil {
		return nil, err
	}
	if err := s.readUnknown(ctx, i, m); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// readUnknown reads all entries of unknown kinds, which are few and stand last in the file.
func (s *snapshotReader) readUnknown(ctx context.Context, i *Import, m *Manifest) error {
	r, err := i.relation(ctx, m, "snapshot_entries", ofEntries, s.upTo-1)
	if err != nil {
		return err
	}
	defer r.close()
	exacts, err := i.relation(ctx, m, "exact_payloads", ofExact, s.upTo-1)
	if err != nil {
		return err
	}
	defer exacts.close()
	of := events{exacts: exacts}
	if err := of.readExact(s.upTo); err != nil {
		return err
	}
	for r.has && r.at <= s.upTo {
		if r.text("of") == "unknown" {
			key := exactKey{at: r.at, node: -1, ordinal: int64(r.integer("ordinal"))}
			entry := ledger.ContractEntry{WorkflowID: r.word("workflow_id"), Unknown: &ledger.UnknownElement{Kind: r.text("kind"), Raw: of.exact.value(key, "raw", r.json("raw"))}}
			if entry.Extra, _, err = splitExtra(of.exact.value(key, "entry_extra", r.json("entry_extra"))); err != nil {
				return err
			}
			s.unknown[key.ordinal] = entry
		}
		if err := r.next(); err != nil {
			return err
		}
	}
	return nil
}

func (s *snapshotReader) more() bool {
	return s.entries.has && s.entries.at <= s.upTo && s.known() || len(s.unknown) > 0
}

// known reports whether the next entry in the file is of a known kind. None follows one that is not.
func (s *snapshotReader) known() bool { return s.entries.text("of") != "unknown" }

// next reads an entry. If only entries of unknown kinds with greater numbers are left, it is an empty one.
func (s *snapshotReader) next() (entry ledger.ContractEntry, err error) {
	entry, isUnknown := s.unknown[s.read]
	switch {
	case isUnknown:
		delete(s.unknown, s.read)
	case s.entries.has && s.entries.at <= s.upTo && s.known():
		entry, err = s.entry()
	case len(s.unknown) > 0:
		entry = ledger.ContractEntry{Empty: true}
	default:
		return entry, fmt.Errorf("%s has fewer entries than were stored before", s.entries.file.Name)
	}
	s.read++
	if err != nil {
		return entry, fmt.Errorf("read entry %d of the snapshot at offset %d from %s: %w", s.read, s.upTo, s.entries.file.Name, err)
	}
	return entry, nil
}

// entry reads the next entry in the file, with its event.
func (s *snapshotReader) entry() (entry ledger.ContractEntry, err error) {
	r := s.entries
	if err := s.readExact(r.at); err != nil {
		return entry, err
	}
	key := exactKey{at: r.at, node: r.integer("node_id"), ordinal: -1}
	of, extraField := r.text("of"), "entry_extra"
	if of == "assigned" {
		extraField = "assignment_entry_extra"
	}
	entry.WorkflowID, entry.Plain = r.word("workflow_id"), len(s.exact) == 0
	var variant ledger.JSON
	if entry.Extra, variant, err = splitExtra(s.exact.value(key, extraField, r.json("entry_extra"))); err != nil {
		return entry, err
	}
	if of == "created" {
		if !s.created.has || s.created.at != r.at || s.created.integer("node_id") != key.node {
			return entry, fmt.Errorf("the creation event at offset %d, node %d, is missing", r.at, key.node)
		}
		active := &ledger.ActiveContract{Gone: true, SynchronizerID: s.created.text("synchronizer_id"), Extra: variant}
		if counter := r.optionalBigint("reassignment_counter"); counter != nil {
			active.Gone, active.ReassignmentCounter = false, *counter
		}
		if active.Created, err = s.creation(); err != nil {
			return entry, err
		}
		entry.Active = active
		if err := s.created.next(); err != nil {
			return entry, err
		}
		return entry, r.next()
	}
	if !s.moves.has || s.moves.at != r.at || s.moves.integer("node_id") != key.node {
		return entry, fmt.Errorf("the reassignment at offset %d, node %d, is missing", r.at, key.node)
	}
	created := ledger.CreatedEvent{Offset: ledger.Offset(r.bigint("created_offset")), NodeID: r.integer("created_node_id"), ContractID: s.moves.unique("contract_id")}
	if of == "assigned" {
		created.WitnessParties = s.moves.list("witness_parties")
		entry.Assigned = &ledger.IncompleteAssigned{Apart: true, Created: created, Assigned: s.assigned(), Extra: variant}
	} else {
		entry.Unassigned = &ledger.IncompleteUnassigned{Apart: true, Created: created, Extra: variant}
		if entry.Unassigned.Unassigned, err = s.unassigned(); err != nil {
			return entry, err
		}
	}
	if err := s.moves.next(); err != nil {
		return entry, err
	}
	return entry, r.next()
}

// splitExtra splits the stored unknown members of an entry into those beside its variant and those in it.
func splitExtra(stored ledger.JSON) (entry, variant ledger.JSON, err error) {
	if stored == nil {
		return nil, nil, nil
	}
	var parts struct{ Entry, Variant json.RawMessage }
	if err := json.Unmarshal(stored, &parts); err != nil {
		return nil, nil, fmt.Errorf("what an entry says besides: %w", err)
	}
	return ledger.JSON(parts.Entry), ledger.JSON(parts.Variant), nil
}
