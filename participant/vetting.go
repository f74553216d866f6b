package participant

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ledgerindexer/ledger"
)

const (
	pathVettingList   = "/v2/package-vetting/list"
	pathVettingUpdate = "/v2/package-vetting/update"
	// pathVettingOld is where servers of the first releases of 3.4 have the update.
	pathVettingOld = "/v2/package-vetting"
)

// VettingFilter narrows what ListVettedPackages lists. Empty lists do not narrow.
type VettingFilter struct {
	ParticipantIDs      []string
	SynchronizerIDs     []string
	PackageIDs          []string // a package is listed that is one of these,
	PackageNamePrefixes []string // or whose name begins with one of these
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
// participants, one entry for each participant and synchronizer (from 3.4 on; interface.md does not have it). Members of
// the answer that are not known are left out.
//
// It reads every page: servers give a token with every page that is not empty. The filter by package is applied here:
// servers apply it to a page after they have cut it, and a page of which nothing remains has no token and looks like the
// end.
//
// Errors: ledger.ErrNotOffered where the server (3.3, and early ones of 3.4) does not have the operation; and the others
// of ContractByID. It needs nothing but a valid token.
func (c *Client) ListVettedPackages(ctx context.Context, filter VettingFilter) ([]ledger.VettedPackages, error) {
	r := rules{section: sectionVetted}
	r.ids("participantIds", filter.ParticipantIDs)
	r.ids("synchronizerIds", filter.SynchronizerIDs)
	r.ids("packageIds", filter.PackageIDs)
	r.ids("packageNamePrefixes", filter.PackageNamePrefixes)
	if r.err != nil {
		return nil, r.err
	}
	list, err := c.everyVettedPage(ctx, topologyStateFilter{filter.ParticipantIDs, filter.SynchronizerIDs})
	if err == nil {
		err = c.same(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("list the vetted packages: %w", err)
	}
	return filter.packages(list), nil
}

func (c *Client) everyVettedPage(ctx context.Context, filter topologyStateFilter) ([]ledger.VettedPackages, error) {
	const operation = "package-vetting-list"
	type place struct{ participant, synchronizer string }
	var list []ledger.VettedPackages
	came, tokens := map[place]bool{}, map[string]bool{}
	token := ""
	for {
		a, err := c.do(ctx, request{operation: operation, path: pathVettingList, limit: smallBody,
			body: vettingListRequest{TopologyStateFilter: filter, PageToken: token}})
		if err != nil {
			return nil, c.explain(ctx, err, asked{about: aboutVetting})
		}
		page, err := ledger.DecodeVettedPackagesPage(a.Body)
		if err != nil {
			return nil, c.decoded(operation, a, err)
		}
		for _, vetted := range page.List {
			at := place{vetted.ParticipantID, vetted.SynchronizerID}
			if came[at] {
				return nil, misled(operation, "participant %s on synchronizer %s came twice",
					shown(at.participant), shown(at.synchronizer))
			}
			came[at] = true
		}
		list = append(list, page.List...)
		if page.Next == "" || len(page.List) == 0 {
			return list, nil
		}
		if token = page.Next; tokens[token] {
			return nil, misled(operation, "the list leads back to a page that came before")
		}
		tokens[token] = true
	}
}

// packages leaves out the packages that are not wanted, and what then is empty.
func (f VettingFilter) packages(list []ledger.VettedPackages) []ledger.VettedPackages {
	if len(f.PackageIDs) == 0 && len(f.PackageNamePrefixes) == 0 {
		return list
	}
	unwanted := func(p ledger.VettedPackage) bool {
		begins := func(prefix string) bool { return strings.HasPrefix(p.PackageName, prefix) }
		return !slices.Contains(f.PackageIDs, p.PackageID) && !slices.ContainsFunc(f.PackageNamePrefixes, begins)
	}
	for i := range list {
		list[i].Packages = slices.DeleteFunc(list[i].Packages, unwanted)
	}
	return slices.DeleteFunc(list, func(v ledger.VettedPackages) bool { return len(v.Packages) == 0 })
}

// UpdateVettedPackages changes what this participant has vetted on a synchronizer, or with DryRun only says what the
// change would do (interface.md, endpoint 4). It returns what was vetted before, nil where nothing ever was, and what is
// vetted after the changes; of a dry run the second is what would be, with the serial that it would get. Members of the
// answer that are not known are left out.
//
// It needs a participant administrator, a dry run too.
//
// Errors: a *RequestError where a rule is broken; ledger.ErrNotOffered where the server (3.3) does not have the
// operation; a *ledger.Problem where the server refuses the change, or the right is missing. After any other error the change may have been
// applied or not, unless DryRun was set: ListVettedPackages tells.
func (c *Client) UpdateVettedPackages(
	ctx context.Context, req VettingRequest,
) (past *ledger.VettedPackages, now ledger.VettedPackages, err error) {
	const operation = "package-vetting-update"
	if err := req.check(); err != nil {
		return nil, now, err
	}
	fail := func(err error) (*ledger.VettedPackages, ledger.VettedPackages, error) {
		return nil, ledger.VettedPackages{}, fmt.Errorf("update the vetted packages: %w", err)
	}
	a, err := c.do(ctx, request{operation: operation, path: pathVettingUpdate, body: req, limit: smallBody})
	if lacksPath(err) {
		a, err = c.do(ctx, request{operation: operation, path: pathVettingOld, body: req, limit: smallBody})
	}
	if err != nil {
		return fail(c.explain(ctx, err, asked{about: aboutVetting, need: participantAdmin}))
	}
	past, now, err = ledger.DecodeVettingUpdate(a.Body)
	switch {
	case err != nil:
		return fail(c.decoded(operation, a, err))
	case req.SynchronizerID != "" && now.SynchronizerID != req.SynchronizerID:
		return fail(misled(operation, "the answer is of another synchronizer, %s", shown(now.SynchronizerID)))
	}
	return past, now, nil
}
