package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/participant"
)

// packagesCommand lists and changes the participant's vetted packages. It uses no database.
type packagesCommand struct {
	List  packagesList  `cmd:"" help:"List what the participant has vetted, on each synchronizer."`
	Vet   packagesVet   `cmd:"" help:"Vet packages, or give vetted ones other bounds. Shows what would change, and changes it only with --apply."`
	Unvet packagesUnvet `cmd:"" help:"Unvet packages. Shows what would change, and changes it only with --apply."`
}

// packagesFlags are those that the commands about packages share.
type packagesFlags struct {
	config.Ledger
	config.Admin
	Synchronizer string `env:"-" placeholder:"ID" help:"Synchronizer to list or to change. A change needs it if the participant is connected to several."`
	jsonFlag
}

// client returns a client for the participant, with the administrator's token if that is configured.
func (f *packagesFlags) client(logger *slog.Logger) (*participant.Client, error) {
	cfg := f.LedgerAccess
	if f.AdminTokenFile != "" {
		cfg.TokenFile, cfg.TokenFlag, cfg.OAuth = f.AdminTokenFile, "--admin-token-file", access.OAuth{}
	}
	client, err := participant.New(participant.Config{URL: f.LedgerURL, Access: cfg, Logger: logger},
		ledger.Scope{Shape: ledger.ShapeACSDelta})
	if err != nil {
		return nil, &config.UsageError{Err: err}
	}
	return client, nil
}

// readerOnly reports whether there is a token, and it is not the administrator's. Without any token the server may have
// no authentication.
func (f *packagesFlags) readerOnly() bool {
	return f.AdminTokenFile == "" && (f.LedgerAccess.TokenFile != "" || f.LedgerAccess.OAuth.TokenURL != "")
}

type packagesList struct {
	packagesFlags
	NamePrefix []string `env:"-" sep:"none" placeholder:"PREFIX" help:"Only packages whose name begins with it; may be repeated."`
}

func (c *packagesList) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	if slices.Contains(c.NamePrefix, "") {
		return &config.UsageError{Err: errors.New("--name-prefix must not be empty")}
	}
	client, err := c.client(logger)
	if err != nil {
		return err
	}
	defer client.Close()
	vetted, err := c.read(ctx, client)
	if err != nil {
		return err
	}
	return c.show(out, vetted)
}

// vettedList is what `packages list` prints.
type vettedList struct {
	ParticipantID string                  `json:"participant_id,omitempty"`
	Note          string                  `json:"note,omitempty"`
	Vetted        []ledger.VettedPackages `json:"vetted_packages"`
}

func (c *packagesList) read(ctx context.Context, client *participant.Client) (*vettedList, error) {
	id, _, err := client.Peek(ctx)
	if err != nil && id == "" && !errors.Is(err, ledger.ErrNotOffered) {
		return nil, c.explainRead(err)
	}
	filter := participant.VettingFilter{PackageNamePrefixes: c.NamePrefix}
	list := &vettedList{ParticipantID: id, Vetted: []ledger.VettedPackages{}}
	if id != "" {
		filter.ParticipantIDs = []string{id}
	} else {
		list.Note = "the participant does not report its id: what it knows of other participants is here too"
	}
	if c.Synchronizer != "" {
		filter.SynchronizerIDs = []string{c.Synchronizer}
	}
	vetted, err := client.ListVettedPackages(ctx, filter)
	switch {
	case errors.Is(err, ledger.ErrNotOffered):
		list.Note = "the server has no operation that lists packages: this is what a dry run of a change of nothing says"
		if vetted, err = c.dryRun(ctx, client); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, c.explainRead(err)
	}
	for _, state := range vetted {
		if id != "" && state.ParticipantID != id {
			continue // a server that takes no notice of the filter
		}
		sortPackages(&state)
		list.Vetted = append(list.Vetted, state)
	}
	slices.SortFunc(list.Vetted, func(a, b ledger.VettedPackages) int {
		return strings.Compare(a.SynchronizerID+"\x00"+a.ParticipantID, b.SynchronizerID+"\x00"+b.ParticipantID)
	})
	return list, nil
}

// dryRun requests an empty change on a synchronizer, whose answer has what is vetted there. By interface.md that is the
// operation Empty; real servers refuse it and take an Unvet of no packages.
func (c *packagesList) dryRun(ctx context.Context, client *participant.Client) ([]ledger.VettedPackages, error) {
	if c.readerOnly() {
		return nil, &ledger.Problem{
			What: "the server has no operation that lists packages, and a dry run of a change takes a participant administrator",
			Do:   "give the administrator's token with --admin-token-file",
		}
	}
	request := participant.VettingRequest{DryRun: true, SynchronizerID: c.Synchronizer}
	var past *ledger.VettedPackages
	var err error
	for _, nothing := range []participant.VettingChange{{}, {Unvet: &participant.Unvet{}}} {
		request.Changes = []participant.VettingChange{nothing}
		past, _, err = client.UpdateVettedPackages(ctx, request)
		var refused *participant.Error
		if !errors.As(err, &refused) || refused.Status != http.StatusBadRequest {
			break
		}
	}
	switch {
	case err != nil:
		return nil, c.explain(fmt.Errorf("dry run of a change of nothing: %w", err))
	case past == nil:
		return nil, nil // nothing was ever vetted there
	}
	past.Packages = slices.DeleteFunc(past.Packages, func(p ledger.VettedPackage) bool {
		return len(c.NamePrefix) > 0 && !slices.ContainsFunc(c.NamePrefix,
			func(prefix string) bool { return strings.HasPrefix(p.PackageName, prefix) })
	})
	return []ledger.VettedPackages{*past}, nil
}

// explainRead explains a failure to list, for which a reader's token is enough.
func (f *packagesFlags) explainRead(err error) error {
	if f.tokenMissing(err) && !f.readerOnly() {
		return &ledger.Problem{
			What: "the participant wants a token",
			Do: "give the file that holds it with --ledger-token-file or --admin-token-file, or have tokens fetched with " +
				"--ledger-oauth-token-url",
			Err: err,
		}
	}
	return withDetails(err)
}

// explain explains a refused change. If no token was sent, it names the administrator's: a reader's is not enough.
func (f *packagesFlags) explain(err error) error {
	if f.tokenMissing(err) {
		return &ledger.Problem{
			What: "the participant wants a token",
			Do:   "give the token of a participant administrator with --admin-token-file",
			Err:  err,
		}
	}
	return withDetails(err)
}

// tokenMissing reports whether the participant wants a token and was not sent the administrator's.
func (f *packagesFlags) tokenMissing(err error) bool {
	var refused *participant.Error
	return errors.As(err, &refused) && refused.Status == http.StatusUnauthorized && f.AdminTokenFile == ""
}

// withDetails adds details from the server's error to its message, such as the dependencies that are not vetted.
func withDetails(err error) error {
	var refused *participant.Error
	if !errors.As(err, &refused) {
		return err
	}
	var details []string
	for _, key := range slices.Sorted(maps.Keys(refused.Context)) {
		if value := refused.Context[key]; !slices.Contains(knownDetails, key) && !strings.Contains(refused.Cause, value) {
			details = append(details, printable(key+": "+value))
		}
	}
	if len(details) == 0 {
		return err
	}
	return fmt.Errorf("%w (%s)", err, strings.Join(details, "; "))
}

// knownDetails has the details that add nothing: those of every error, and those that the message contains.
var knownDetails = []string{"category", "definite_answer", "matchingPackages", "participant", "reason", "test", "tid"}
