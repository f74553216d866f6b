package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/alecthomas/kong"

	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/participant"
)

// changeFlags are those that vet and unvet share.
type changeFlags struct {
	packagesFlags
	Refs           []string `arg:"" name:"ref" help:"Package: its id (64 hex digits), name, or name:version."`
	All            bool     `env:"-" help:"Show the packages that stay as they are too."`
	Apply          bool     `env:"-" help:"Make the change. Without it nothing is changed."`
	ExpectedSerial string   `env:"-" placeholder:"N|none" help:"Make the change only if this is the serial of the last vetting transaction; none: only if there is none. Default: the serial of the preview."`
	ForceFlag      []string `env:"-" placeholder:"FLAG" help:"allow-incompatible-upgrades or allow-unvetted-dependencies; may be repeated."`
}

type packagesVet struct {
	changeFlags
	ValidFrom  *time.Time `env:"-" placeholder:"TIME" help:"When the packages may be used, such as 2026-01-02T15:04:05Z. Default: at once."`
	ValidUntil *time.Time `env:"-" placeholder:"TIME" help:"When they may no longer be used. Default: no end."`
}

type packagesUnvet struct{ changeFlags }

// Validate refuses bounds that the ledger can't have, and an empty period.
func (c *packagesVet) Validate() error {
	for flag, at := range map[string]*time.Time{"--valid-from": c.ValidFrom, "--valid-until": c.ValidUntil} {
		if at != nil && (at.Nanosecond()%1000 != 0 || at.UTC().Year() < 1 || at.UTC().Year() > 9999) {
			return fmt.Errorf("%s must lie in the years 1 to 9999 and be of whole microseconds", flag)
		}
	}
	if c.ValidFrom != nil && c.ValidUntil != nil && !c.ValidUntil.After(*c.ValidFrom) {
		return errors.New("--valid-until must be after --valid-from")
	}
	return nil
}

// Run previews the vetting, and makes it with --apply.
func (c *packagesVet) Run(ctx context.Context, parsed *kong.Context, logger *slog.Logger, out config.Output) error {
	refs, err := parseRefs(c.Refs)
	if err != nil {
		return &config.UsageError{Err: err}
	}
	vet := participant.Vet{Packages: refs, ValidFrom: c.ValidFrom, ValidUntil: c.ValidUntil}
	return c.run(ctx, parsed, logger, out, participant.VettingChange{Vet: &vet})
}

// Run previews the unvetting, and makes it with --apply.
func (c *packagesUnvet) Run(ctx context.Context, parsed *kong.Context, logger *slog.Logger, out config.Output) error {
	refs, err := parseRefs(c.Refs)
	if err != nil {
		return &config.UsageError{Err: err}
	}
	return c.run(ctx, parsed, logger, out, participant.VettingChange{Unvet: &participant.Unvet{Packages: refs}})
}

func (f *changeFlags) run(ctx context.Context, parsed *kong.Context, logger *slog.Logger, out config.Output,
	change participant.VettingChange) error {
	request, err := f.request(change)
	if err != nil {
		return &config.UsageError{Err: err}
	}
	client, err := f.client(logger)
	if err != nil {
		return err
	}
	defer client.Close()
	request.DryRun = true
	past, now, err := client.UpdateVettedPackages(ctx, request)
	if err != nil {
		return f.explain(fmt.Errorf("dry run: %w", whatNeeds(ctx, client, request, err)))
	}
	result := newVettingResult(past, now)
	unmatched := unmatched(change, past)
	needed, unknown := []neededBy(nil), error(nil)
	if slices.Contains(request.ForceFlags, participant.ForceAllowUnvettedDependencies) {
		needed, unknown = result.needed(ctx, client)
	}
	switch {
	case f.Apply && len(result.Changes) > 0:
		if result, err = apply(ctx, client, request, past, now); err != nil {
			return f.explain(err)
		}
	case len(result.Changes) > 0:
		result.Command = f.command(parsed.Args, past)
	}
	result.Unmatched, result.NeededBy, result.all = unmatched, needed, f.All
	if unknown != nil {
		result.Unknown = "which of the packages that stay vetted need what goes: " + withDetails(unknown).Error()
	}
	return f.show(out, result)
}

// apply makes the change that was previewed, on the same synchronizer, and only while nobody else has changed
// anything since.
func apply(
	ctx context.Context, client *participant.Client, request participant.VettingRequest, past *ledger.VettedPackages,
	now ledger.VettedPackages,
) (*vettingResult, error) {
	request.DryRun, request.SynchronizerID = false, now.SynchronizerID
	if request.ExpectedSerial == (participant.ExpectedSerial{}) {
		request.ExpectedSerial = serialOf(past)
	}
	past, now, err := client.UpdateVettedPackages(ctx, request)
	var problem *ledger.Problem
	switch {
	case errors.As(err, &problem):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("whether the change was made is not known (look with `indexer packages list`): %w", err)
	}
	result := newVettingResult(past, now)
	result.Applied = true
	return result, nil
}

func serialOf(past *ledger.VettedPackages) participant.ExpectedSerial {
	if past == nil {
		return participant.ExpectedSerial{NoPrior: true}
	}
	return participant.ExpectedSerial{Prior: &past.TopologySerial}
}

// unmatched returns the packages to unvet that are not vetted, which servers silently accept.
func unmatched(change participant.VettingChange, past *ledger.VettedPackages) (refs []string) {
	if change.Unvet == nil {
		return nil
	}
	for _, ref := range change.Unvet.Packages {
		fits := func(p ledger.VettedPackage) bool {
			return p.PackageID == ref.PackageID ||
				ref.PackageID == "" && p.PackageName == ref.PackageName && (ref.PackageVersion == "" ||
					p.PackageVersion == ref.PackageVersion)
		}
		if past != nil && slices.ContainsFunc(past.Packages, fits) {
			continue
		}
		text := ref.PackageID + ref.PackageName
		if ref.PackageVersion != "" {
			text += ":" + ref.PackageVersion
		}
		refs = append(refs, text)
	}
	return refs
}

// request is the change without the decision to make it.
func (f *changeFlags) request(change participant.VettingChange) (participant.VettingRequest, error) {
	request := participant.VettingRequest{Changes: []participant.VettingChange{change}, SynchronizerID: f.Synchronizer}
	if f.readerOnly() {
		return request, errors.New("--admin-token-file is missing: a change needs a participant administrator, and the " +
			"ledger's token is not used for it")
	}
	var err error
	if request.ExpectedSerial, err = parseSerial(f.ExpectedSerial); err != nil {
		return request, err
	}
	for _, name := range f.ForceFlag {
		flag, err := parseForceFlag(name)
		if err != nil {
			return request, err
		}
		request.ForceFlags = append(request.ForceFlags, flag)
	}
	return request, nil
}

// command returns the command that was typed, with the flags that make exactly the previewed change.
func (f *changeFlags) command(args []string, past *ledger.VettedPackages) string {
	words := []string{"indexer"}
	var last []string // what follows a -- is references, whatever it looks like
	if at := slices.Index(args, "--"); at >= 0 {
		args, last = args[:at], args[at:]
	}
	for _, arg := range args {
		words = append(words, config.ShellWord(arg))
	}
	if f.ExpectedSerial == "" {
		serial := "none"
		if past != nil {
			serial = strconv.Itoa(int(past.TopologySerial))
		}
		words = append(words, "--expected-serial="+serial)
	}
	words = append(words, "--apply")
	for _, arg := range last {
		words = append(words, config.ShellWord(arg))
	}
	return strings.Join(words, " ")
}

var packageID = regexp.MustCompile(`^[0-9a-f]{64}$`)

// parseRefs parses references to packages: an id, a name, or name:version.
func parseRefs(texts []string) ([]participant.PackageRef, error) {
	var refs []participant.PackageRef
	for _, text := range texts {
		if packageID.MatchString(text) {
			refs = append(refs, participant.PackageRef{PackageID: text})
			continue
		}
		name, version, versioned := strings.Cut(text, ":")
		odd := func(r rune) bool {
			return r == ':' || r == unicode.ReplacementChar || unicode.IsSpace(r) || !unicode.IsPrint(r)
		}
		if name == "" || versioned && version == "" || strings.ContainsFunc(name+version, odd) {
			return nil, fmt.Errorf("a package is given by its id (64 hex digits, lower case), name, or name:version, not %q",
				text)
		}
		refs = append(refs, participant.PackageRef{PackageName: name, PackageVersion: version})
	}
	return refs, nil
}

func parseSerial(text string) (participant.ExpectedSerial, error) {
	switch text {
	case "":
		return participant.ExpectedSerial{}, nil
	case "none":
		return participant.ExpectedSerial{NoPrior: true}, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return participant.ExpectedSerial{}, fmt.Errorf("--expected-serial must be none or a number from 1 on, not %q", text)
	}
	return participant.ExpectedSerial{Prior: new(int32(n))}, nil
}

// parseForceFlag parses a flag's short name, or its name in interface.md.
func parseForceFlag(name string) (participant.ForceFlag, error) {
	for short, flag := range map[string]participant.ForceFlag{
		"allow-incompatible-upgrades": participant.ForceAllowIncompatibleUpgrades,
		"allow-unvetted-dependencies": participant.ForceAllowUnvettedDependencies,
	} {
		if name == short || name == string(flag) {
			return flag, nil
		}
	}
	return "", fmt.Errorf("--force-flag must be allow-incompatible-upgrades or allow-unvetted-dependencies, not %q", name)
}
