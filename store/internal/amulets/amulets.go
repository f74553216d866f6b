// Package amulets reads the updates that the records of the transaction history follow from. Storing records and
// redacting use it.
package amulets

import (
	"context"
	"fmt"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
)

var queries = dbsqlc.New()

// Updates reads which updates after one offset up to another move amulets, in order, with the records that were noted
// of them.
func Updates(ctx context.Context, db dbsqlc.DBTX, after, to ledger.Offset) (list []ledger.TransferUpdate, err error) {
	exercises, err := queries.TransferExercises(ctx, db, dbsqlc.TransferExercisesParams{
		FromExclusive: int64(after), ToInclusive: int64(to), Choices: ledger.TransferChoices(),
	})
	if err != nil {
		return nil, fmt.Errorf("read the updates after offset %d that move amulets: %w", after, err)
	}
	byOffset := map[int64]int{}
	var contracts []string
	for i := range exercises {
		x := &exercises[i]
		at, ok := byOffset[x.LedgerOffset]
		if !ok {
			at = len(list)
			byOffset[x.LedgerOffset] = at
			u, err := update(x)
			if err != nil {
				return nil, err
			}
			list = append(list, u)
		}
		list[at].Exercises = append(list[at].Exercises, ledger.TransferExercise{
			NodeID: x.NodeID, LastDescendant: x.LastDescendantNodeID, ContractID: x.ContractID, Module: x.ModuleName,
			Entity: x.EntityName,
			Choice: x.Choice, Argument: x.ChoiceArgument, Result: x.ExerciseResult,
		})
	}
	wanted := map[int64]int{} // places in the list
	var first, last int64
	for i := range list {
		if list[i].WantsAmulets() {
			last = int64(list[i].Offset)
			if wanted[last] = i; first == 0 {
				first = last
			}
		}
		for k := range list[i].Exercises {
			if e := &list[i].Exercises[k]; e.WantsContract() {
				contracts = append(contracts, e.ContractID)
			}
		}
	}
	if len(wanted) == 0 {
		return list, nil
	}
	if err := addAmulets(ctx, db, list, wanted, first, last); err != nil {
		return nil, fmt.Errorf("read the amulets of %d updates: %w", len(wanted), err)
	}
	return list, addContracts(ctx, db, list, contracts)
}

// Window is Updates for at most so many updates after an offset, up to another one. It says up to where it has read.
func Window(ctx context.Context, db dbsqlc.DBTX, after, upTo ledger.Offset,
	atMost int32) (list []ledger.TransferUpdate, to ledger.Offset, err error) {
	end, err := queries.UpdatesWindow(ctx, db, dbsqlc.UpdatesWindowParams{
		FromExclusive: int64(after), ToInclusive: int64(upTo), Beyond: atMost - 1,
	})
	if err != nil {
		return nil, after, fmt.Errorf("look for the updates after offset %d: %w", after, err)
	}
	to = ledger.Offset(end)
	list, err = Updates(ctx, db, after, to)
	return list, to, err
}

// Records returns the records that follow from updates, in order.
func Records(updates []ledger.TransferUpdate) (list []ledger.Record) {
	for i := range updates {
		list = append(list, updates[i].Records()...)
	}
	return list
}

func update(x *dbsqlc.TransferExercisesRow) (u ledger.TransferUpdate, err error) {
	u = ledger.TransferUpdate{Offset: ledger.Offset(x.LedgerOffset), EffectiveAt: x.EffectiveAt.Time.UTC()}
	if x.UpdateID != nil {
		u.ID = *x.UpdateID
	}
	if x.SynchronizerID != nil {
		u.SynchronizerID = *x.SynchronizerID
	}
	if x.Noted != nil {
		if u.Noted, err = ledger.DecodeRecords(x.Noted); err != nil {
			err = fmt.Errorf("update %s at offset %d: %w", u.ID, u.Offset, err)
		}
	}
	return u, err
}

// addAmulets adds the amulets that the wanted updates move. Payloads of archived ones are put to them here, because
// PostgreSQL would compare each with all lifetimes that its update ends.
func addAmulets(ctx context.Context, db dbsqlc.DBTX, list []ledger.TransferUpdate,
	wanted map[int64]int, first, last int64) error {
	amulets, err := queries.TransferAmulets(ctx, db, dbsqlc.TransferAmuletsParams{FirstOffset: first, LastOffset: last})
	if err != nil {
		return err
	}
	ended, err := queries.EndedAmulets(ctx, db, dbsqlc.EndedAmuletsParams{FirstOffset: first, LastOffset: last})
	if err != nil {
		return err
	}
	payloads := map[string][]byte{}
	for _, e := range ended {
		payloads[e.ContractID] = e.Payload
	}
	var others []string
	for _, a := range amulets {
		if _, ok := wanted[a.LedgerOffset]; ok && !a.Created && payloads[a.ContractID] == nil {
			others = append(others, a.ContractID)
		}
	}
	if err := addPayloads(ctx, db, payloads, others); err != nil {
		return err
	}
	for _, a := range amulets {
		at, ok := wanted[a.LedgerOffset]
		if !ok {
			continue
		}
		if !a.Created {
			a.Payload = payloads[a.ContractID]
		}
		u := &list[at]
		u.Amulets = append(u.Amulets, ledger.TransferAmulet{NodeID: a.NodeID, ContractID: a.ContractID, Created: a.Created,
			Payload: a.Payload})
	}
	return nil
}

// addContracts adds the payloads of contracts to the exercises that want them.
func addContracts(ctx context.Context, db dbsqlc.DBTX, list []ledger.TransferUpdate, contracts []string) error {
	payloads := map[string][]byte{}
	if err := addPayloads(ctx, db, payloads, contracts); err != nil {
		return err
	}
	for i := range list {
		for k := range list[i].Exercises {
			if e := &list[i].Exercises[k]; e.WantsContract() {
				e.Contract = payloads[e.ContractID]
			}
		}
	}
	return nil
}

// addPayloads adds the payloads of contracts that are known, wherever they were created.
func addPayloads(ctx context.Context, db dbsqlc.DBTX, payloads map[string][]byte, contracts []string) error {
	if len(contracts) == 0 {
		return nil
	}
	found, err := queries.TransferContracts(ctx, db, contracts)
	if err != nil {
		return fmt.Errorf("look for %d contracts: %w", len(contracts), err)
	}
	for _, c := range found {
		payloads[c.ContractID] = c.Payload
	}
	return nil
}
