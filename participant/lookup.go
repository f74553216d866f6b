package participant

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// The paths of look-ups by id.
const (
	pathContractByID = "/v2/contracts/contract-by-id"
	pathUpdateByID   = "/v2/updates/update-by-id"
)

// contractRequest is the body of /v2/contracts/contract-by-id.
type contractRequest struct {
	ContractID      string   `json:"contractId"`
	QueryingParties []string `json:"queryingParties"`
}

// updateRequest is the body of /v2/updates/update-by-id.
type updateRequest struct {
	UpdateID     string         `json:"updateId"`
	UpdateFormat jsontext.Value `json:"updateFormat"`
}

// ContractByID looks a contract up (interface.md, endpoint 3). It returns the contract and the answer as the server
// sent it. If querying parties are given, one of them must be a stakeholder of the contract, and the right to read as
// each of them is needed; without them, the right to read as any party. Don't look up a contract that came by party
// replication or the repair service: the server reports a wrong representative package for it (rule 1).
//
// Errors: ledger.ErrNotFound where the server does not know the contract, or does not show it to the querying parties;
// ledger.ErrNotOffered where it (3.3) does not have the operation; a *ledger.Problem where a right is missing, or the
// server does not accept the contract id; a *ledger.DecodeError where the answer can't be understood; an *Error, which
// may be tried again, for the rest, and where the answer is about another contract.
func (c *Client) ContractByID(
	ctx context.Context, contractID string, queryingParties []string,
) (ledger.Contract, ledger.JSON, error) {
	const operation = "contract-by-id"
	contract, body, err := lookUp(ctx, c, jsonhttp.Request{
		Operation: operation, Path: pathContractByID, MaxBytes: smallBody,
		Body: contractRequest{ContractID: contractID, QueryingParties: queryingParties},
	}, func() purpose {
		return purpose{about: aboutContract, need: readAs(queryingParties)}
	}, func(a jsonhttp.Answer) (ledger.Contract, error) {
		contract, err := ledger.DecodeContract(a.Body)
		switch {
		case err != nil:
			err = c.decodeError(operation, a, err)
		case contract.ContractID != contractID:
			err = contradiction(operation, "the answer is of another contract, %s", ledger.Quoted(contract.ContractID))
		}
		return contract, err
	})
	if err != nil {
		return ledger.Contract{}, nil, fmt.Errorf("look up contract %s: %w", ledger.Quoted(contractID), err)
	}
	return contract, body, nil
}

// UpdateOfScope looks an update up (interface.md, endpoint 5). It returns the update as the update stream of the
// client's scope returns it, and the answer as the server sent it.
//
// Errors: ledger.ErrNotFound where the server does not know the update, or nothing of it is in the scope; and the
// others of ContractByID.
func (c *Client) UpdateOfScope(ctx context.Context, updateID string) (ledger.Update, ledger.JSON, error) {
	const operation = "update-by-id"
	update, body, err := lookUp(ctx, c, jsonhttp.Request{
		Operation: operation, Path: pathUpdateByID,
		Body: updateRequest{UpdateID: updateID, UpdateFormat: c.format.Update},
	}, func() purpose {
		return purpose{about: aboutUpdate, need: c.scopeRight()}
	}, func(a jsonhttp.Answer) (ledger.Update, error) {
		update, err := ledger.DecodeUpdate(a.Body)
		switch {
		case err != nil:
			err = c.decodeError(operation, a, err)
		case update.ID != updateID:
			err = contradiction(operation, "the answer is of another update, %s", ledger.Quoted(update.ID))
		}
		return update, err
	})
	if err != nil {
		return ledger.Update{}, nil, fmt.Errorf("look up update %s: %w", ledger.Quoted(updateID), err)
	}
	return update, body, nil
}

// lookUp requests one contract or update by its id. It checks the participant's identity before it returns any result,
// also "not found": another participant may not know the id.
func lookUp[T any](
	ctx context.Context, c *Client, r jsonhttp.Request, q func() purpose, decode func(jsonhttp.Answer) (T, error),
) (T, ledger.JSON, error) {
	var found T
	a, err := c.do(ctx, r)
	if err != nil {
		err = c.explain(ctx, err, q())
	} else {
		found, err = decode(a)
	}
	if err == nil || errors.Is(err, ledger.ErrNotFound) {
		err = cmp.Or(c.checkIdentity(ctx), err)
	}
	return found, a.Body, err
}
