package participant

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// The paths of package vetting.
const (
	pathVettingList   = "/v2/package-vetting/list"
	pathVettingUpdate = "/v2/package-vetting/update"
	// pathVettingOld is pathVettingUpdate of the first releases of 3.4.
	pathVettingOld = "/v2/package-vetting"
)

// VettingFilter selects what ListVettedPackages lists. An empty list selects all.
type VettingFilter struct {
	ParticipantIDs      []string
	SynchronizerIDs     []string
	PackageNamePrefixes []string
}

// vettingListRequest is the body of /v2/package-vetting/list.
type vettingListRequest struct {
	TopologyStateFilter topologyStateFilter `json:"topologyStateFilter"`
	PageToken           string              `json:"pageToken"`
}

type topologyStateFilter struct {
	ParticipantIDs  []string `json:"participantIds"`
	SynchronizerIDs []string `json:"synchronizerIds"`
}

// ListVettedPackages lists what is vetted on each synchronizer that the participant knows, by this and all other
// participants, one entry for each participant and synchronizer (from 3.4 on; interface.md does not have it). Unknown
// members of the answer are ignored. It needs only a valid token.
//
// It reads pages until one is empty or has no token. The filter by package is applied here: servers apply it to a page
// after cutting it, and a page that becomes empty looks like the end.
//
// Errors: ledger.ErrNotOffered if the server (3.3, and early ones of 3.4) does not have the operation; and the others
// of ContractByID.
func (c *Client) ListVettedPackages(ctx context.Context, filter VettingFilter) ([]ledger.VettedPackages, error) {
	list, err := c.everyVettedPage(ctx, topologyStateFilter{filter.ParticipantIDs, filter.SynchronizerIDs})
	if err == nil {
		err = c.checkIdentity(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("list the vetted packages: %w", err)
	}
	return filter.packages(list), nil
}

func (c *Client) everyVettedPage(ctx context.Context, filter topologyStateFilter) ([]ledger.VettedPackages, error) {
	const operation = "package-vetting-list"
	type pair struct{ participant, synchronizer string }
	var list []ledger.VettedPackages
	seen, tokens := map[pair]bool{}, map[string]bool{}
	token := ""
	for bytes := int64(0); ; {
		a, err := c.do(ctx, jsonhttp.Request{Operation: operation, Path: pathVettingList, MaxBytes: smallBody,
			Body: vettingListRequest{TopologyStateFilter: filter, PageToken: token}})
		if err != nil {
			return nil, c.explain(ctx, err, purpose{about: aboutVetting})
		}
		page, err := ledger.DecodeVettedPackagesPage(a.Body)
		if err != nil {
			return nil, c.decodeError(operation, a, err)
		}
		for _, vetted := range page.List {
			at := pair{vetted.ParticipantID, vetted.SynchronizerID}
			if seen[at] {
				return nil, contradiction(operation, "participant %s on synchronizer %s came twice",
					ledger.Quoted(at.participant), ledger.Quoted(at.synchronizer))
			}
			seen[at] = true
		}
		if bytes += int64(len(a.Body)); bytes > c.vettedBodies {
			return nil, contradiction(operation, "the list has more than %d bytes, and no end comes", c.vettedBodies)
		}
		list = append(list, page.List...)
		if page.Next == "" || len(page.List) == 0 {
			return list, nil
		}
		if token = page.Next; tokens[token] {
			return nil, contradiction(operation, "the list leads back to a page that came before")
		}
		tokens[token] = true
	}
}

// packages removes packages that the filter does not select, and entries that become empty.
func (f VettingFilter) packages(list []ledger.VettedPackages) []ledger.VettedPackages {
	if len(f.PackageNamePrefixes) == 0 {
		return list
	}
	unwanted := func(p ledger.VettedPackage) bool {
		return !slices.ContainsFunc(f.PackageNamePrefixes,
			func(prefix string) bool { return strings.HasPrefix(p.PackageName, prefix) })
	}
	for i := range list {
		list[i].Packages = slices.DeleteFunc(list[i].Packages, unwanted)
	}
	return slices.DeleteFunc(list, func(v ledger.VettedPackages) bool { return len(v.Packages) == 0 })
}

// UpdateVettedPackages changes what this participant has vetted on a synchronizer (interface.md, endpoint 4). It
// returns what was vetted before, nil if nothing ever was, and what is vetted now. With DryRun it changes nothing: now
// is what would be vetted, with its serial. Unknown members of the answer are ignored.
//
// It needs a participant administrator, for a dry run too.
//
// Errors: ledger.ErrNotOffered where the server (3.3) does not have the operation; a *ledger.Problem where the server
// refuses the change, or the right is missing. After any other error the change may have been applied, unless DryRun
// was set: see ListVettedPackages.
func (c *Client) UpdateVettedPackages(
	ctx context.Context, req VettingRequest,
) (past *ledger.VettedPackages, now ledger.VettedPackages, err error) {
	const operation = "package-vetting-update"
	fail := func(err error) (*ledger.VettedPackages, ledger.VettedPackages, error) {
		return nil, ledger.VettedPackages{}, fmt.Errorf("update the vetted packages: %w", err)
	}
	a, err := c.do(ctx, jsonhttp.Request{Operation: operation, Path: pathVettingUpdate, Body: req, MaxBytes: smallBody,
		Changes: true})
	if lacksPath(err) {
		a, err = c.do(ctx, jsonhttp.Request{Operation: operation, Path: pathVettingOld, Body: req, MaxBytes: smallBody,
			Changes: true})
	}
	if err != nil {
		return fail(c.explain(ctx, err, purpose{about: aboutVetting, need: participantAdmin}))
	}
	past, now, err = ledger.DecodeVettingUpdate(a.Body)
	switch {
	case err != nil:
		return fail(c.decodeError(operation, a, err))
	case req.SynchronizerID != "" && now.SynchronizerID != req.SynchronizerID:
		return fail(contradiction(operation, "the answer is of another synchronizer, %s", ledger.Quoted(now.SynchronizerID)))
	}
	return past, now, nil
}
