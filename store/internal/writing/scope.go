package writing

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/partitions"
)

// PutInForce puts a recorded scope in force, and forgets the scopes in which nothing is covered.
func PutInForce(ctx context.Context, tx pgx.Tx, scope string) error {
	if err := queries.ScopeChange(ctx, tx, scope); err != nil {
		return fmt.Errorf("put the scope in force: %w", err)
	}
	return ForgetScopes(ctx, tx)
}

// ForgetScopes forgets the scopes in which nothing is covered any more, except the one in force.
func ForgetScopes(ctx context.Context, tx pgx.Tx) error {
	if err := queries.ScopesForget(ctx, tx); err != nil {
		return fmt.Errorf("forget the scopes before: %w", err)
	}
	return nil
}

// LeaveScope ends the lifetimes of active contracts that the scope in force does not show, at an offset, which is the
// watermark.
func LeaveScope(ctx context.Context, tx pgx.Tx, set *partitions.Set, at int64) error {
	ends, err := queries.ScopeEndsAt(ctx, tx, at)
	if err != nil || !ends {
		return err
	}
	if err := set.Ensure(ctx, "lifetimes", slices.Values([]int64{at})); err != nil {
		return err
	}
	if err := queries.ScopeLeave(ctx, tx, at); err != nil {
		return fmt.Errorf("end what the scope does not show any more: %w", err)
	}
	return nil
}

// returnedAtOnce is how many lifetimes are read at once.
const returnedAtOnce = 10_000

// ReturnToScope corrects the lifetimes that LeaveScope ended at an offset, if the scope in force shows their contracts
// again: they get the end that the facts have, or become active. It reports whether there were any.
func ReturnToScope(ctx context.Context, tx pgx.Tx, set *partitions.Set, at int64) (returned bool, err error) {
	if err := queries.DerivePlainly(ctx, tx); err != nil {
		return false, fmt.Errorf("have contracts looked up by index: %w", err)
	}
	next := dbsqlc.ScopeReturningParams{At: at, AfterOffset: -1, AtMost: returnedAtOnce}
	for {
		list, err := queries.ScopeReturning(ctx, tx, next)
		if err != nil {
			return false, fmt.Errorf("look for what ended at offset %d with the scope: %w", at, err)
		}
		if len(list) == 0 {
			return returned, nil
		}
		returned = true
		moved, contracts := dbsqlc.ScopeReturnParams{At: at}, make([]string, 0, len(list))
		for _, l := range list {
			moved.ActivatedOffsets, moved.ActivatedNodeIds = append(moved.ActivatedOffsets, l.ActivatedOffset),
				append(moved.ActivatedNodeIds, l.ActivatedNodeID)
			moved.Ends, contracts = append(moved.Ends, l.Ended), append(contracts, l.ContractID)
		}
		ends := slices.DeleteFunc(slices.Clone(moved.Ends), func(end int64) bool { return end == 0 })
		if err := set.Ensure(ctx, "lifetimes", slices.Values(ends)); err != nil {
			return false, err
		}
		if err := queries.ScopeReturn(ctx, tx, moved); err != nil {
			return false, fmt.Errorf("move the end of %d lifetimes: %w", len(list), err)
		}
		// of those that ended while they were not known to be active
		if err := ForgetLookups(ctx, tx, contracts); err != nil {
			return false, err
		}
		next.AfterOffset, next.AfterNode = list[len(list)-1].ActivatedOffset, list[len(list)-1].ActivatedNodeID
	}
}
