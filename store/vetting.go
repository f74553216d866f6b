package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/session"
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
// the database's; then it is unknown whether the changes were stored, and saving the list again makes it certain.
func (l *UpdatesWriter) SaveVettedPackages(ctx context.Context, list []ledger.VettedPackages) (int, error) {
	changes := int64(0)
	wanted := names.NewReferences()
	if err := checkVetted(list); err != nil {
		return 0, fmt.Errorf("the list of vetted packages can't be used: %w", err)
	}
	for i := range list {
		wanted.Synchronizer(list[i].SynchronizerID)
	}
	err := l.term.Resolve(ctx, wanted)
	if err == nil {
		err = l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
			var err error
			changes, err = l.saveVetting(ctx, tx, wanted, list)
			return err
		})
	}
	if err != nil {
		return 0, fmt.Errorf("save which packages are vetted: %w", session.Refused(err))
	}
	if changes > 0 {
		l.store.db.Config.Wrote("vetting_changes", int(changes))
	}
	return int(changes), nil
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

func (l *UpdatesWriter) saveVetting(ctx context.Context, tx pgx.Tx, r *names.References,
	list []ledger.VettedPackages) (changes int64, err error) {
	if err := queries.VettingLock(ctx, tx); err != nil {
		return 0, fmt.Errorf("lock what is stored: %w", err)
	}
	if err := l.checkVettedOwner(ctx, tx, list); err != nil {
		return 0, err
	}
	if err := l.checkVettedSerials(ctx, tx, r, list); err != nil {
		return 0, err
	}
	var states dbsqlc.VettingStatesReplaceParams
	var named dbsqlc.PackagesNameParams
	var vetted dbsqlc.VettedPackagesReplaceParams
	for i := range list {
		ref := *r.Synchronizer(list[i].SynchronizerID)
		states.SynchronizerRefs = append(states.SynchronizerRefs, ref)
		states.TopologySerials = append(states.TopologySerials, list[i].TopologySerial)
		for j := range list[i].Packages {
			p := &list[i].Packages[j]
			vetted.SynchronizerRefs = append(vetted.SynchronizerRefs, ref)
			vetted.PackageIds = append(vetted.PackageIds, p.PackageID)
			vetted.ValidFroms = append(vetted.ValidFroms, rows.Timestamp(p.ValidFrom))
			vetted.ValidUntils = append(vetted.ValidUntils, rows.Timestamp(p.ValidUntil))
			named.PackageNames = append(named.PackageNames, p.PackageName)
			named.PackageVersions = append(named.PackageVersions, p.PackageVersion)
		}
	}
	named.PackageIds = vetted.PackageIds
	// The changes carry the serials, so these come first.
	if err := queries.VettingStatesReplace(ctx, tx, states); err != nil {
		return 0, fmt.Errorf("%d topology serials: %w", len(list), err)
	}
	if err := queries.PackagesName(ctx, tx, named); err != nil {
		return 0, fmt.Errorf("names of %d packages: %w", len(named.PackageIds), err)
	}
	if changes, err = queries.VettedPackagesReplace(ctx, tx, vetted); err != nil {
		return 0, fmt.Errorf("%d vetted packages: %w", len(vetted.PackageIds), err)
	}
	return changes, nil
}

func (l *UpdatesWriter) checkVettedSerials(ctx context.Context, tx pgx.Tx, r *names.References,
	list []ledger.VettedPackages) error {
	states, err := queries.VettingStateList(ctx, tx)
	if err != nil {
		return fmt.Errorf("read the topology serials: %w", err)
	}
	stored := map[int32]int32{}
	for _, s := range states {
		stored[s.SynchronizerRef] = s.TopologySerial
	}
	for i := range list {
		serial, known := stored[*r.Synchronizer(list[i].SynchronizerID)]
		if known && list[i].TopologySerial < serial {
			return fmt.Errorf("the list is older than what is stored: on synchronizer %s it has topology serial %d, and %d "+
				"was seen before",
				list[i].SynchronizerID, list[i].TopologySerial, serial)
		}
	}
	return nil
}

func (l *UpdatesWriter) checkVettedOwner(ctx context.Context, tx pgx.Tx, list []ledger.VettedPackages) error {
	owner, err := queries.ParticipantGet(ctx, tx)
	if err != nil {
		return fmt.Errorf("read the stored participant: %w", err)
	}
	if len(list) > 0 && owner != "" && list[0].ParticipantID != owner {
		return fmt.Errorf("the list is of participant %s, the database belongs to participant %s", list[0].ParticipantID,
			owner)
	}
	return nil
}
