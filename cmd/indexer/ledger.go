package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/participant"
)

// ledgerCommand prints what the ledger itself answers, one JSON document per line. It uses no database.
type ledgerCommand struct {
	Updates   ledgerUpdates   `cmd:"" help:"Print updates, page by page as they come."`
	Contracts ledgerContracts `cmd:"" help:"Print the contracts that are active at an offset, page by page as they come."`
	Contract  ledgerContract  `cmd:"" help:"Print the creation event of a contract."`
	Update    ledgerUpdate    `cmd:"" help:"Print an update."`
}

// ledgerList has the flags for the length and form of a list.
type ledgerList struct {
	Verbose     bool          `env:"-" help:"Ask for the labels of record fields and the like."`
	Deprecated  bool          `env:"-" help:"Ask in the form before release 3.5, with filter and verbose in place of the format."`
	Limit       *int          `env:"-" placeholder:"N" help:"Print at most this many. Default: all."`
	IdleTimeout time.Duration `env:"-" placeholder:"TIME" help:"How long the server waits for another one before it answers, up to 15s. Default: what the server is configured to."`
}

func (l ledgerList) Validate() error {
	switch {
	case l.Limit != nil && *l.Limit < 1:
		return fmt.Errorf("--limit must be at least 1, not %d", *l.Limit)
	case l.IdleTimeout < 0 || l.IdleTimeout > participant.MaxIdle:
		return fmt.Errorf("--idle-timeout must be at most %v, not %v: servers give up on a request soon after",
			participant.MaxIdle, l.IdleTimeout)
	}
	return nil
}

func (l ledgerList) options() participant.ListOptions {
	options := participant.ListOptions{StreamIdleTimeout: l.IdleTimeout}
	if l.Limit != nil {
		options.Limit = *l.Limit
	}
	return options
}

type ledgerUpdates struct {
	config.Ledger
	config.Scope
	ledgerList
	Transactions bool   `env:"-" default:"true" negatable:"" help:"Ask for transactions."`
	From         int64  `env:"-" default:"0" placeholder:"OFFSET" help:"Print the updates after this offset. Default: from the beginning of the ledger."`
	To           *int64 `env:"-" placeholder:"OFFSET" help:"Print the updates up to this offset. Default: until none has come for the idle timeout."`
	Descending   bool   `env:"-" help:"Begin with the last update. Needs --to."`
	Trees        bool   `env:"-" help:"Ask for transactions as trees, which servers up to 3.5 have, in the deprecated form."`
}

func (c *ledgerUpdates) Validate() error {
	switch {
	case c.From < 0:
		return fmt.Errorf("--from must be at least 0, not %d", c.From)
	case c.To != nil && *c.To < c.From:
		return fmt.Errorf("--to must be at least --from, which is %d, not %d", c.From, *c.To)
	case c.Descending && c.To == nil:
		return errors.New("--descending needs --to: there is no last update to begin with")
	case c.Trees && len(c.Templates) > 0:
		return errors.New("--trees goes without --templates: there are no trees of templates")
	case (c.Trees || c.Deprecated) && !(c.Transactions && c.Reassignments && c.Topology):
		return errors.New("--trees and --deprecated go without --no-transactions, --no-reassignments and --no-topology: " +
			"the deprecated form can't leave any out")
	case c.Deprecated && !c.Trees && c.Shape != string(ledger.ShapeACSDelta):
		return errors.New("--deprecated shows creations and archivals only, since that form has no shape: give --shape " +
			"acs-delta with it")
	case !c.Transactions && !c.Reassignments && !c.Topology:
		return errors.New("--no-transactions, --no-reassignments and --no-topology leave nothing to ask for")
	}
	return cmp.Or(c.Ledger.Validate(), c.Scope.Validate(), c.ledgerList.Validate())
}

func (c *ledgerUpdates) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	return withLedger(c.Ledger, c.Scope, logger, func(client *participant.Client) error {
		request := participant.UpdatesRequest{
			BeginExclusive: ledger.Offset(c.From), EndInclusive: (*ledger.Offset)(c.To), DescendingOrder: c.Descending,
			Trees: c.Trees,
		}
		formats, err := participant.FormatsOf(c.Scope.Domain(), c.Verbose)
		if err != nil {
			return err
		}
		if c.Trees || c.Deprecated {
			request.Filter, request.Verbose = formats.Filter(), &c.Verbose
		} else {
			request.UpdateFormat = updateFormat(formats, c.Transactions)
		}
		return client.Updates(ctx, request, c.options(), jsonLines(out))
	})
}

func updateFormat(formats participant.Formats, transactions bool) *participant.UpdateFormat {
	if !transactions {
		formats.Update.IncludeTransactions = nil
	}
	return &formats.Update
}

type ledgerContracts struct {
	config.Ledger
	config.Contracts
	ledgerList
	AtOffset   *int64 `env:"-" placeholder:"OFFSET" help:"The offset at which they are active. Default: the ledger's end."`
	AfterToken string `env:"-" placeholder:"TOKEN" help:"Continue after the entry with this streamContinuationToken, with the same offset and format."`
}

func (c *ledgerContracts) Validate() error {
	switch {
	case c.AtOffset != nil && *c.AtOffset < 0:
		return fmt.Errorf("--at-offset must be at least 0, not %d", *c.AtOffset)
	case c.AfterToken != "" && c.AtOffset == nil:
		return errors.New("--after-token needs --at-offset: a token is good only at the offset that it was read at")
	}
	return cmp.Or(c.Ledger.Validate(), c.Contracts.Validate(), c.ledgerList.Validate())
}

func (c *ledgerContracts) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	scope := config.Scope{Contracts: c.Contracts, Shape: string(ledger.ShapeACSDelta)}
	return withLedger(c.Ledger, scope, logger, func(client *participant.Client) error {
		at, err := c.at(ctx, client)
		if err != nil {
			return err
		}
		request := participant.SnapshotRequest{ActiveAtOffset: at, StreamContinuationToken: c.AfterToken}
		formats, err := participant.FormatsOf(scope.Domain(), c.Verbose)
		if err != nil {
			return err
		}
		if c.Deprecated {
			request.Filter, request.Verbose = formats.Filter(), &c.Verbose
		} else {
			request.EventFormat = &formats.Event
		}
		return client.ActiveContracts(ctx, request, c.options(), jsonLines(out))
	})
}

func (c *ledgerContracts) at(ctx context.Context, client *participant.Client) (ledger.Offset, error) {
	if c.AtOffset != nil {
		return ledger.Offset(*c.AtOffset), nil
	}
	end, err := client.LedgerEnd(ctx)
	if errors.Is(err, ledger.ErrNotOffered) {
		return 0, &ledger.Problem{What: "the server does not report its ledger end", Do: "give the offset with --at-offset",
			Err: err}
	}
	return end, err
}

type ledgerContract struct {
	ID string `arg:"" help:"Contract id."`
	config.Ledger
	Parties []string `sep:"," placeholder:"PARTY" help:"Parties to ask as, one of which must be a stakeholder. Default: any party, which needs the right to read as any."`
}

func (c *ledgerContract) Validate() error {
	if c.ID == "" {
		return errors.New("the contract's id is empty")
	}
	return cmp.Or(c.Ledger.Validate(), config.Contracts{Parties: c.Parties}.Validate())
}

func (c *ledgerContract) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	scope := config.Scope{Contracts: config.Contracts{Parties: c.Parties}, Shape: string(ledger.ShapeACSDelta)}
	return withLedger(c.Ledger, scope, logger, func(client *participant.Client) error {
		_, answer, err := client.ContractByID(ctx, c.ID, c.Parties)
		if err != nil {
			return err
		}
		return jsonLines(out)(answer)
	})
}

type ledgerUpdate struct {
	ID string `arg:"" help:"Update id."`
	config.Ledger
	config.Scope
	Transactions bool `env:"-" default:"true" negatable:"" help:"Ask for transactions."`
	Verbose      bool `env:"-" help:"Ask for the labels of record fields and the like."`
}

func (c *ledgerUpdate) Validate() error {
	switch {
	case c.ID == "":
		return errors.New("the update's id is empty")
	case !c.Transactions && !c.Reassignments && !c.Topology:
		return errors.New("--no-transactions, --no-reassignments and --no-topology leave nothing to ask for")
	}
	return cmp.Or(c.Ledger.Validate(), c.Scope.Validate())
}

func (c *ledgerUpdate) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	return withLedger(c.Ledger, c.Scope, logger, func(client *participant.Client) error {
		formats, err := participant.FormatsOf(c.Scope.Domain(), c.Verbose)
		if err != nil {
			return err
		}
		_, answer, err := client.UpdateByID(ctx, c.ID, *updateFormat(formats, c.Transactions))
		if err != nil {
			return err
		}
		return jsonLines(out)(answer)
	})
}

// withLedger asks the participant. For an operation that it does not offer, the error is a *ledger.Problem.
func withLedger(l config.Ledger, scope config.Scope, logger *slog.Logger, ask func(*participant.Client) error) error {
	client, err := openLedger(l, scope.Domain(), logger)
	if err != nil {
		return err
	}
	defer client.Close()
	err = ask(client)
	var problem *ledger.Problem
	if errors.Is(err, ledger.ErrNotOffered) && !errors.As(err, &problem) {
		return &ledger.Problem{
			What: "the server does not offer what was asked for", Err: err,
			Do: "leave out --descending, --trees or --after-token where the release does not have it; " +
				"else check --ledger-url: it must be the base of the participant's JSON API, with its path prefix where it has one",
		}
	}
	return err
}

// jsonLines prints JSON documents, one per line. It changes only white space, and escapes characters that a terminal
// would interpret.
func jsonLines(out config.Output) func(ledger.JSON) error {
	return func(document ledger.JSON) error {
		if err := document.Compact(); err != nil {
			return err
		}
		_, err := out.Write(append(printableJSON(document), '\n'))
		return err
	}
}
