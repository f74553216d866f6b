package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/writing"
)

// vetting is what is vetted, as it is stored or as it was listed.
type vetting struct {
	serials  map[int32]int32 // topology serial by synchronizer
	bounds   map[vettedKey]bounds
	packages map[string]packageLabel // by package id
}

type vettedKey struct {
	synchronizerRef int32
	packageID       string
}

// bounds are from when (inclusive) until when (exclusive) a package may be used.
type bounds struct{ from, until pgtype.Timestamptz }

func (b bounds) equal(other bounds) bool {
	return sameTime(b.from, other.from) && sameTime(b.until, other.until)
}

func sameTime(a, b pgtype.Timestamptz) bool { return a.Valid == b.Valid && a.Time.Equal(b.Time) }

type packageLabel struct{ name, version string }

// or fills in what l does not say.
func (l packageLabel) or(other packageLabel) packageLabel {
	if l.name == "" {
		l.name = other.name
	}
	if l.version == "" {
		l.version = other.version
	}
	return l
}

// The changes of what is vetted, as they stand in the database.
const (
	changeVetted   = "vetted"
	changeUnvetted = "unvetted"
	changeChanged  = "changed" // other bounds
)

// SaveVettedPackages replaces what is known to be vetted by list, and keeps every change (interface.md,
// "VettedPackages"). The list is everything that the participant has vetted now: on a synchronizer that it does not
// name nothing is vetted any more. It returns how many packages were vetted, unvetted, or given other bounds since the
// last time. Where nothing changed nothing is written; what is stored comes in one transaction. Bounds are kept to the
// microsecond.
//
// Refused, with nothing stored: a list that names a synchronizer, or a package of one, twice; one of several
// participants, or of another than the database's; one with a topology serial lower than the stored one, which is an
// older answer than the last, because serials grow; a text that PostgreSQL can't hold. Other errors: ErrNotLeader, or
// the database's; then it is unknown whether the changes were stored, and saving the list again will tell.
func (l *UpdatesWriter) SaveVettedPackages(ctx context.Context, list []ledger.VettedPackages) (changes int, err error) {
	wanted := names.NewWanted()
	if err := checkVetted(list); err != nil {
		return 0, fmt.Errorf("the list of vetted packages can't be used: %w", err)
	}
	for i := range list {
		wanted.Synchronizer(list[i].SynchronizerID)
	}
	numbers, err := l.term.Resolve(ctx, wanted)
	if err == nil {
		err = l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
			var err error
			changes, err = l.saveVetting(ctx, tx, numbers, list)
			return err
		})
	}
	if err != nil {
		return 0, fmt.Errorf("save which packages are vetted: %w", session.Refused(err))
	}
	if changes > 0 {
		l.store.db.Config.Wrote("vetting_changes", changes)
	}
	return changes, nil
}

// checkVetted refuses a list that contradicts itself, and texts that PostgreSQL can't hold.
func checkVetted(list []ledger.VettedPackages) error {
	listed := map[string]bool{}
	for i := range list {
		v := &list[i]
		if err := rows.CheckTexts(v.SynchronizerID); err != nil {
			return fmt.Errorf("a synchronizer: %w", err)
		}
		if listed[v.SynchronizerID] {
			return fmt.Errorf("it names synchronizer %s twice", v.SynchronizerID)
		}
		if v.ParticipantID != list[0].ParticipantID {
			return fmt.Errorf("it is of several participants, %s and %s", list[0].ParticipantID, v.ParticipantID)
		}
		listed[v.SynchronizerID] = true
		packages := map[string]bool{}
		for j := range v.Packages {
			p := &v.Packages[j]
			if err := rows.CheckTexts(p.PackageID, p.PackageName, p.PackageVersion); err != nil {
				return fmt.Errorf("package %q of synchronizer %s: %w", p.PackageID, v.SynchronizerID, err)
			}
			if packages[p.PackageID] {
				return fmt.Errorf("it names package %s of synchronizer %s twice", p.PackageID, v.SynchronizerID)
			}
			packages[p.PackageID] = true
		}
	}
	return nil
}

// saveVetting compares the list with what is stored, and stores the difference.
func (l *UpdatesWriter) saveVetting(ctx context.Context, tx pgx.Tx, r names.Numbers, list []ledger.VettedPackages) (changes int, err error) {
	if err := l.store.db.Queries.VettingLock(ctx, tx); err != nil {
		return 0, fmt.Errorf("lock what is stored: %w", err)
	}
	if err := l.checkVettedOwner(ctx, tx, list); err != nil {
		return 0, err
	}
	stored, err := l.readVetting(ctx, tx)
	if err != nil {
		return 0, err
	}
	for i := range list {
		serial, known := stored.serials[r.Synchronizer(list[i].SynchronizerID)]
		if known && list[i].TopologySerial < serial {
			return 0, fmt.Errorf("the list is older than what is stored: on synchronizer %s it has topology serial %d, and %d was seen before",
				list[i].SynchronizerID, list[i].TopologySerial, serial)
		}
	}
	d := stored.differences(listedVetting(r, list))
	return len(d.changes), l.storeVetting(ctx, tx, d)
}

// checkVettedOwner refuses what another participant has vetted.
func (l *UpdatesWriter) checkVettedOwner(ctx context.Context, tx pgx.Tx, list []ledger.VettedPackages) error {
	owner, err := l.store.db.Queries.ParticipantGet(ctx, tx)
	if errors.Is(err, pgx.ErrNoRows) || len(list) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the stored participant: %w", err)
	}
	if list[0].ParticipantID != owner {
		return fmt.Errorf("the list is of participant %s, the database belongs to participant %s", list[0].ParticipantID, owner)
	}
	return nil
}

func newVetting() *vetting {
	return &vetting{serials: map[int32]int32{}, bounds: map[vettedKey]bounds{}, packages: map[string]packageLabel{}}
}

func listedVetting(r names.Numbers, list []ledger.VettedPackages) *vetting {
	v := newVetting()
	for i := range list {
		ref := r.Synchronizer(list[i].SynchronizerID)
		v.serials[ref] = list[i].TopologySerial
		for j := range list[i].Packages {
			p := &list[i].Packages[j]
			v.bounds[vettedKey{ref, p.PackageID}] = bounds{rows.Timestamp(p.ValidFrom), rows.Timestamp(p.ValidUntil)}
			v.packages[p.PackageID] = packageLabel{p.PackageName, p.PackageVersion}.or(v.packages[p.PackageID])
		}
	}
	return v
}

func (l *UpdatesWriter) readVetting(ctx context.Context, tx pgx.Tx) (*vetting, error) {
	q, v := l.store.db.Queries, newVetting()
	states, err := q.VettingStateList(ctx, tx)
	if err != nil {
		return nil, fmt.Errorf("read the topology serials: %w", err)
	}
	for _, s := range states {
		v.serials[s.SynchronizerRef] = s.TopologySerial
	}
	vetted, err := q.VettedPackageList(ctx, tx)
	if err != nil {
		return nil, fmt.Errorf("read what was vetted: %w", err)
	}
	for _, p := range vetted {
		v.bounds[vettedKey{p.SynchronizerRef, p.PackageID}] = bounds{p.ValidFrom, p.ValidUntil}
	}
	packages, err := q.PackageList(ctx, tx)
	if err != nil {
		return nil, fmt.Errorf("read the packages' names: %w", err)
	}
	for _, p := range packages {
		v.packages[p.PackageID] = packageLabel{p.PackageName, p.PackageVersion}
	}
	return v, nil
}

// vettingDifferences is what to write. What is the same is not in it.
type vettingDifferences struct {
	serials     dbsqlc.VettingStatesUpsertParams
	goneSerials []int32 // of synchronizers without vetting state
	vetted      dbsqlc.VettedPackagesUpsertParams
	unvetted    dbsqlc.VettedPackagesDeleteParams
	packages    dbsqlc.PackagesUpsertParams
	changes     []dbsqlc.VettingChanges
}

// differences leads from what v says to what now says.
func (v *vetting) differences(now *vetting) *vettingDifferences {
	var d vettingDifferences
	for ref, serial := range now.serials {
		if before, known := v.serials[ref]; !known || serial != before {
			d.serials.SynchronizerRefs = append(d.serials.SynchronizerRefs, ref)
			d.serials.TopologySerials = append(d.serials.TopologySerials, serial)
		}
	}
	for ref := range v.serials {
		if _, listed := now.serials[ref]; !listed {
			d.goneSerials = append(d.goneSerials, ref)
		}
	}
	for key, b := range now.bounds {
		before, known := v.bounds[key]
		if known && b.equal(before) {
			continue
		}
		d.vetted.SynchronizerRefs = append(d.vetted.SynchronizerRefs, key.synchronizerRef)
		d.vetted.PackageIds = append(d.vetted.PackageIds, key.packageID)
		d.vetted.ValidFroms = append(d.vetted.ValidFroms, b.from)
		d.vetted.ValidUntils = append(d.vetted.ValidUntils, b.until)
		if known {
			d.change(changeChanged, key, now, before, b)
		} else {
			d.change(changeVetted, key, now, bounds{}, b)
		}
	}
	for key, before := range v.bounds {
		if _, listed := now.bounds[key]; !listed {
			d.unvetted.SynchronizerRefs = append(d.unvetted.SynchronizerRefs, key.synchronizerRef)
			d.unvetted.PackageIds = append(d.unvetted.PackageIds, key.packageID)
			d.change(changeUnvetted, key, now, before, bounds{})
		}
	}
	for id, label := range now.packages {
		before, known := v.packages[id]
		if label = label.or(before); !known || label != before {
			d.packages.PackageIds = append(d.packages.PackageIds, id)
			d.packages.PackageNames = append(d.packages.PackageNames, label.name)
			d.packages.PackageVersions = append(d.packages.PackageVersions, label.version)
		}
	}
	return &d
}

func (d *vettingDifferences) change(kind string, key vettedKey, now *vetting, before, after bounds) {
	row := dbsqlc.VettingChanges{
		SynchronizerRef: key.synchronizerRef, PackageID: key.packageID, Change: kind,
		ValidFromBefore: before.from, ValidUntilBefore: before.until, ValidFrom: after.from, ValidUntil: after.until,
	}
	if serial, listed := now.serials[key.synchronizerRef]; listed {
		row.TopologySerial = &serial
	}
	d.changes = append(d.changes, row)
}

// storeVetting writes the differences.
func (l *UpdatesWriter) storeVetting(ctx context.Context, tx pgx.Tx, d *vettingDifferences) error {
	q := l.store.db.Queries
	for _, part := range []struct {
		what  string
		rows  int
		store func() error
	}{
		{"topology serials", len(d.serials.SynchronizerRefs), func() error { return q.VettingStatesUpsert(ctx, tx, d.serials) }},
		{"synchronizers without vetting state", len(d.goneSerials), func() error { return q.VettingStatesDelete(ctx, tx, d.goneSerials) }},
		{"vetted packages", len(d.vetted.PackageIds), func() error { return q.VettedPackagesUpsert(ctx, tx, d.vetted) }},
		{"unvetted packages", len(d.unvetted.PackageIds), func() error { return q.VettedPackagesDelete(ctx, tx, d.unvetted) }},
		{"names of packages", len(d.packages.PackageIds), func() error { return q.PackagesUpsert(ctx, tx, d.packages) }},
		{"changes", len(d.changes), func() error { return l.copyVettingChanges(ctx, tx, d.changes) }},
	} {
		if part.rows == 0 {
			continue
		}
		if err := part.store(); err != nil {
			return fmt.Errorf("%d %s: %w", part.rows, part.what, err)
		}
	}
	return nil
}

func (l *UpdatesWriter) copyVettingChanges(ctx context.Context, tx pgx.Tx, rows []dbsqlc.VettingChanges) error {
	next, err := l.store.db.Queries.VettingChangesNext(ctx, tx)
	if err != nil {
		return err
	}
	for i := range rows {
		rows[i].Seq, rows[i].SeenAt = next.Seq, next.SeenAt
	}
	return writing.CopyRows(ctx, tx, "vetting_changes", rows)
}
