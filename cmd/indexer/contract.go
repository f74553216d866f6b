package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// contractCommand is `indexer contract`: it shows what the database holds of a contract, and what the ledger shows of
// it.
type contractCommand struct {
	ID string `arg:"" help:"Contract id."`
	config.Database
	LedgerURL    string        `placeholder:"URL" help:"Base URL of the participant, to ask it for the creation event; empty: don't."`
	LedgerAccess access.Config `embed:"" prefix:"ledger-"`
	Parties      []string      `sep:"," placeholder:"PARTY" help:"Parties to ask as. Default: those that the database was indexed for."`
	jsonFlag
}

func (c *contractCommand) Validate() error {
	if c.ID == "" {
		return errors.New("the contract's id is empty")
	}
	if err := c.Database.Validate(); err != nil || c.LedgerURL == "" {
		return err
	}
	if err := c.ledger().Validate(); err != nil {
		return err
	}
	return config.Contracts{Parties: c.Parties}.Validate()
}

func (c *contractCommand) ledger() config.Ledger {
	return config.Ledger{LedgerURL: c.LedgerURL, LedgerAccess: c.LedgerAccess}
}

// contractReport is what the command prints; its JSON form is for scripts.
type contractReport struct {
	ContractID string           `json:"contract_id"`
	Ledger     contractOnLedger `json:"ledger"`
	Database   contractStored   `json:"database"`
}

type contractOnLedger struct {
	Asked    bool           `json:"asked"`
	Parties  []string       `json:"querying_parties"` // empty: any
	Found    bool           `json:"found"`
	Contract *contractFacts `json:"contract,omitempty"`
	Error    string         `json:"error,omitempty"` // why it was not asked, or could not answer

	failed bool // the error is also the command's
}

// contractFacts is the content of a creation event.
type contractFacts struct {
	TemplateID      string      `json:"template_id"`
	PackageName     string      `json:"package_name"`
	CreatedAt       ledger.Time `json:"created_at"`
	Signatories     []string    `json:"signatories"`
	Observers       []string    `json:"observers"`
	WitnessParties  []string    `json:"witness_parties"`
	ContractKey     ledger.JSON `json:"contract_key"`
	ContractKeyHash *string     `json:"contract_key_hash"` // hexadecimal
	Payload         ledger.JSON `json:"payload"`
}

type contractStored struct {
	Address      string         `json:"address"`
	Watermark    *ledger.Offset `json:"watermark"` // null: nothing was indexed
	HistoryFloor ledger.Offset  `json:"history_floor"`
	StateFloor   *ledger.Offset `json:"state_floor"` // null: it is known at no offset what is active
	Known        bool           `json:"known"`
	// of the latest creation event, or else of the look-up
	Contract  *contractFacts           `json:"contract,omitempty"`
	Active    []store.ContractActive   `json:"active_on"`
	Lifetimes []store.ContractLifetime `json:"lifetimes"`
	Events    []store.ContractEvent    `json:"events"`
	Older     bool                     `json:"older_events_left_out"`
	Lookup    *store.ContractLookup    `json:"lookup,omitempty"`
	Redacted  *audit.RedactedBefore    `json:"redacted,omitempty"`
}

// Run prints a contract as in the ledger and in the database.
func (c *contractCommand) Run(ctx context.Context, logger *slog.Logger, db *store.Store, out config.Output) error {
	scope, indexed, err := db.Scope(ctx)
	if err != nil {
		return err
	}
	if !indexed {
		scope.Shape = ledger.ShapeACSDelta // the ledger is asked all the same
	}
	r := contractReport{ContractID: c.ID, Ledger: contractOnLedger{Parties: c.Parties}}
	if len(c.Parties) == 0 {
		r.Ledger.Parties = append([]string{}, scope.Parties...)
	}
	failed := c.askLedger(ctx, logger, db, scope, &r.Ledger)
	if _, ok := errors.AsType[*config.UsageError](failed); ok {
		return failed
	}
	history, err := db.ContractHistory(ctx, c.ID)
	if err != nil {
		return err
	}
	r.Database = newContractStored(db.Address(), &history)
	if r.Database.Redacted, err = audit.New(db).RedactedBefore(ctx, audit.Redaction{ContractID: c.ID}); err != nil {
		return err
	}
	switch err := c.show(out, &r); {
	case err != nil:
		return err
	case failed != nil:
		return failed
	case r.Ledger.Found || r.Database.Known:
		return nil
	case !r.Ledger.Asked:
		return fmt.Errorf("the database does not know contract %s, and the ledger was not asked", printable(brief(c.ID)))
	}
	return fmt.Errorf("neither the ledger nor the database knows contract %s", printable(brief(c.ID)))
}

// askLedger asks for the creation event. A ledger that can't answer is part of the report, and its error is returned.
func (c *contractCommand) askLedger(ctx context.Context, logger *slog.Logger, db *store.Store, scope ledger.Scope,
	r *contractOnLedger) error {
	if c.OfNetwork() {
		r.Error = "not asked: a Scan service can't be asked for a contract"
		return nil
	}
	if c.LedgerURL == "" {
		r.Error = "not asked: --ledger-url is not given"
		return nil
	}
	client, err := openLedger(c.ledger(), scope, logger)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, commandPatience)
	defer cancel()
	contract, err := func() (ledger.Contract, error) {
		if err := sameLedger(ctx, db, client, scope); err != nil {
			return ledger.Contract{}, err
		}
		r.Asked = true
		contract, _, err := client.ContractByID(ctx, c.ID, r.Parties)
		return contract, err
	}()
	switch {
	case err == nil:
		r.Found, r.Contract = true, newContractFacts(&contract)
	case errors.Is(err, ledger.ErrNotOffered):
		r.Asked, r.Error = false, "the server does not offer to look contracts up"
	case !errors.Is(err, ledger.ErrNotFound):
		r.Error, r.failed = errorText(err), true
		return err
	}
	return nil
}

func newContractFacts(c *ledger.Contract) *contractFacts {
	if c == nil {
		return nil
	}
	f := &contractFacts{
		TemplateID: c.TemplateID, PackageName: c.PackageName, CreatedAt: c.CreatedAt, Signatories: c.Signatories,
		Observers: c.Observers, WitnessParties: c.WitnessParties, ContractKey: c.ContractKey, Payload: c.Argument,
	}
	if c.ContractKeyHash != nil {
		f.ContractKeyHash = new(hex.EncodeToString(c.ContractKeyHash))
	}
	return f
}

func newContractStored(address string, h *store.ContractHistory) contractStored {
	s := contractStored{
		Address: address, Known: h.Known(), Contract: newContractFacts(h.Contract), Older: h.Older, Lookup: h.Lookup,
		Active:    append([]store.ContractActive{}, h.Active...), // not null in JSON
		Lifetimes: append([]store.ContractLifetime{}, h.Lifetimes...), Events: append([]store.ContractEvent{}, h.Events...),
	}
	if h.Started {
		s.Watermark, s.HistoryFloor, s.StateFloor = &h.Watermark, h.HistoryFloor, h.StateFloor
	}
	return s
}
