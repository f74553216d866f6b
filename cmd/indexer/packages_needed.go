package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"ledgerindexer/ledger"
	"ledgerindexer/participant"
)

// neededBy is a package that stays vetted, and what it needs of the packages that go.
type neededBy struct {
	ledger.VettedPackage

	Needs []string `json:"needs"` // ids

	labels []string // of Needs
}

func (n *neededBy) String() string {
	return label(n.VettedPackage) + " needs " + strings.Join(n.labels, ", ")
}

// packagesAtOnce is how many packages are read at a time.
const packagesAtOnce = 8

// needed returns the packages that stay vetted and need one that goes. It reads each: a package holds the id of every
// other one that it refers to as plain text.
func (r *vettingResult) needed(ctx context.Context, client *participant.Client) (list []neededBy, err error) {
	var gone []ledger.VettedPackage
	for _, c := range r.Changes {
		if c.After == nil {
			gone = append(gone, *c.Before)
		}
	}
	if len(gone) == 0 {
		return nil, nil
	}
	found := make([]neededBy, len(r.New.Packages))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(packagesAtOnce)
	for i, p := range r.New.Packages {
		group.Go(func() error {
			content, err := client.Package(ctx, p.PackageID)
			if errors.Is(err, ledger.ErrNotFound) {
				return nil // vetted, and not uploaded here
			}
			found[i].VettedPackage = p
			for _, g := range gone {
				if bytes.Contains(content, []byte(g.PackageID)) {
					found[i].Needs, found[i].labels = append(found[i].Needs, g.PackageID), append(found[i].labels, label(g))
				}
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(n neededBy) bool { return len(n.Needs) == 0 }), nil
}

// whatNeeds adds to the refusal of a change, because of dependencies that would not be vetted, which packages need what
// goes: the participant does not say it. It asks what the change would be by a dry run that allows them.
func whatNeeds(ctx context.Context, client *participant.Client, request participant.VettingRequest, err error) error {
	refused, ok := errors.AsType[*participant.Error](err)
	if !ok || refused.Code != "TOPOLOGY_DEPENDENCIES_NOT_VETTED" {
		return err
	}
	request.DryRun = true
	request.ForceFlags = append(slices.Clone(request.ForceFlags), participant.ForceAllowUnvettedDependencies)
	past, now, failed := client.UpdateVettedPackages(ctx, request)
	if failed != nil {
		return err // it says what matters
	}
	needed, failed := newVettingResult(past, now).needed(ctx, client)
	if failed != nil {
		return fmt.Errorf("%w (which packages need what goes could not be found out: %w)", err, failed)
	}
	var texts []string
	for _, n := range needed {
		texts = append(texts, n.String())
	}
	if len(texts) == 0 {
		return err
	}
	return fmt.Errorf("%w (%s)", err, strings.Join(texts, "; "))
}
