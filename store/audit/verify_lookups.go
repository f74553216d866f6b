package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ledgerindexer/ledger"
)

// lookupsAtOnce is how many contracts are read from the database at once.
const lookupsAtOnce = 500

// lookups looks up the looked-up contracts again. It skips those that the participant does not return any more because
// they were pruned since.
func (u *Updates) lookups(ctx context.Context) error {
	u.result.Lookups = 0 // derived may have called lookups before, to repair names
	after := ""
	for {
		ids, err := u.Database.AnsweredLookups(ctx, after, lookupsAtOnce)
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			u.Begin(Progress{Step: "looked-up contracts", Done: u.result.Lookups})
			if err := u.lookup(ctx, id); err != nil {
				return fmt.Errorf("look up contract %s: %w", id, err)
			}
		}
		after = ids[len(ids)-1]
	}
}

func (u *Updates) lookup(ctx context.Context, id string) error {
	var contract ledger.Contract
	err := Retry(ctx, u.Logger, func() (err error) {
		contract, _, err = u.Source.ContractByID(ctx, id, u.Scope.Parties)
		return err
	})
	if errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrNotOffered) {
		return nil
	}
	if err == nil {
		err = u.sameLedger(ctx)
	}
	if err != nil {
		return err
	}
	u.result.Lookups++
	_, err = u.compared(ctx, func(found Found) error { return u.Database.CompareLookup(ctx, contract, found) },
		func() error {
			return u.Repairer.RepairLookup(ctx, ledger.Lookup{ContractID: id, At: time.Now(), Status: ledger.LookupFound,
				Contract: &contract})
		})
	return err
}
