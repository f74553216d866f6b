package participant

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"ledgerindexer/internal/jsonhttp"
	"ledgerindexer/ledger"
)

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
	UpdateID     string        `json:"updateId"`
	UpdateFormat *UpdateFormat `json:"updateFormat"`
}

// ContractByID reads a contract by its id, and the answer as the server sent it (interface.md, endpoint 3). Where
// querying parties are given, one of them must be a stakeholder of the contract, and the right to read as all of them is
// needed; none means any party, and needs the right to read as any. A contract that came by party replication or the
// repair service is not to be asked for: the server takes its own package for the representative one (rule 1).
//
// Errors: a *RequestError where an id is empty or no UTF-8 text; ledger.ErrNotFound where the server does not know the
// contract, or does not show it to the querying parties; ledger.ErrNotOffered where it (3.3) does not have the
// operation; a *ledger.Problem where a right is missing, or the server takes the id for no contract id; a
// *ledger.DecodeError where the answer can't be understood; an *Error, which may be tried again, for the rest, and where
// another contract came than was asked for.
func (c *Client) ContractByID(
	ctx context.Context, contractID string, queryingParties []string,
) (ledger.Contract, ledger.JSON, error) {
	const operation = "contract-by-id"
	r := rules{section: sectionContract}
	r.id("contractId", contractID)
	r.ids("queryingParties", queryingParties)
	if r.err != nil {
		return ledger.Contract{}, nil, r.err
	}
	contract, body, err := lookUp(ctx, c, request{
		operation: operation, path: pathContractByID, limit: smallBody,
		body: contractRequest{ContractID: contractID, QueryingParties: queryingParties},
	}, func() asked {
		return asked{about: aboutContract, need: readAs(queryingParties)}
	}, func(a jsonhttp.Answer) (ledger.Contract, error) {
		contract, err := ledger.DecodeContract(a.Body)
		switch {
		case err != nil:
			err = c.decoded(operation, a, err)
		case contract.ContractID != contractID:
			err = misled(operation, "the answer is of another contract, %s", shown(contract.ContractID))
		}
		return contract, err
	})
	if err != nil {
		return ledger.Contract{}, nil, fmt.Errorf("look up contract %s: %w", shown(contractID), err)
	}
	return contract, body, nil
}

// UpdateByID reads an update by its id, in a format, and the answer as the server sent it (interface.md, endpoint 5).
// Events that the format does not match are left out of it.
//
// Errors: ledger.ErrNotFound where the server does not know the update, or nothing of it matches the format; and the
// others of ContractByID.
func (c *Client) UpdateByID(ctx context.Context, updateID string, format UpdateFormat) (ledger.Update, ledger.JSON, error) {
	const operation = "update-by-id"
	r := rules{section: sectionUpdate}
	r.id("updateId", updateID)
	r.updateFormat("updateFormat", &format)
	if r.err != nil {
		return ledger.Update{}, nil, r.err
	}
	update, body, err := lookUp(ctx, c, request{
		operation: operation, path: pathUpdateByID,
		body: updateRequest{UpdateID: updateID, UpdateFormat: &format},
	}, func() asked {
		return asked{about: aboutUpdate, need: format.needs()}
	}, func(a jsonhttp.Answer) (ledger.Update, error) {
		update, err := ledger.DecodeUpdate(a.Body)
		switch {
		case err != nil:
			err = c.decoded(operation, a, err)
		case update.ID != updateID:
			err = misled(operation, "the answer is of another update, %s", shown(update.ID))
		}
		return update, err
	})
	if err != nil {
		return ledger.Update{}, nil, fmt.Errorf("look up update %s: %w", shown(updateID), err)
	}
	return update, body, nil
}

// UpdateOfScope is UpdateByID in the format of the client's scope: the update as the update stream shows it.
func (c *Client) UpdateOfScope(ctx context.Context, updateID string) (ledger.Update, ledger.JSON, error) {
	return c.UpdateByID(ctx, updateID, *c.format.update)
}

// lookUp asks for one thing by its id. Before anything is said of it, also that it was not found, the participant must
// be certain to be the one that was found first: on another one the id means nothing.
func lookUp[T any](
	ctx context.Context, c *Client, r request, q func() asked, decode func(jsonhttp.Answer) (T, error),
) (T, ledger.JSON, error) {
	var found T
	a, err := c.do(ctx, r)
	if err != nil {
		err = c.explain(ctx, err, q())
	} else {
		found, err = decode(a)
	}
	if err == nil || errors.Is(err, ledger.ErrNotFound) {
		err = cmp.Or(c.same(ctx), err)
	}
	return found, a.Body, err
}
