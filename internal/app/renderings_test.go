package app

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
	"ledgerindexer/store/audit"
)

// anew is a participant that renders what it stores in another way whenever it is asked, and, once it prefers another
// package, the views of contracts by that one.
type anew struct{ other bool }

var (
	payloads = []string{"createArgument", "choiceArgument", "exerciseResult", "contractKey", "viewValue"}
	decimal  = regexp.MustCompile(`^-?[0-9]+\.[0-9]+$`)
)

const otherPackage = "0707070707070707070707070707070707070707070707070707070707070707"

func (a *anew) rewrite(e sandbox.Element) []byte { return jsonOf(a.object(valueOf(e.Raw))) }

func valueOf(raw []byte) (value any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		panic(err)
	}
	return value
}

func jsonOf(value any) []byte { return must(json.Marshal(value)) }

// object renders the payloads within a value.
func (a *anew) object(value any) any {
	switch value := value.(type) {
	case []any:
		for i := range value {
			value[i] = a.object(value[i])
		}
	case map[string]any:
		for name, member := range value {
			if slices.Contains(payloads, name) {
				value[name] = rendered(member)
			} else {
				value[name] = a.object(member)
			}
		}
		if value["nodeId"] != nil {
			value["notYetKnown"] = nil
		}
		if views, ok := value["interfaceViews"].([]any); ok && a.other {
			value["interfaceViews"] = otherViews(views)
		}
	}
	return value
}

// rendered renders a value of a payload.
func rendered(value any) any {
	switch value := value.(type) {
	case []any:
		for i := range value {
			value[i] = rendered(value[i])
		}
	case map[string]any:
		for name, member := range value {
			if value[name] = rendered(member); value[name] == nil && rand.IntN(2) == 0 {
				delete(value, name)
			}
		}
		if rand.IntN(2) == 0 {
			value["newField"] = nil
		}
	case string:
		if decimal.MatchString(value) {
			return []string{value, value + "0", value + "E0", strings.TrimSuffix(value, "0")}[rand.IntN(4)]
		}
	}
	return value
}

// otherViews are those of a package that makes some otherwise, fails at some, and has no others.
func otherViews(views []any) []any {
	for i := range views {
		view := views[i].(map[string]any)
		view["implementationPackageId"] = otherPackage
		switch value, ok := view["viewValue"].(map[string]any); {
		case i%3 == 2:
			view["viewValue"], view["implementationPackageId"] = nil, nil
			view["viewStatus"] = map[string]any{"code": 9, "message": "no view any more", "details": []any{}}
		case ok:
			value["computedBy"] = "another"
		}
	}
	if len(views) == 1 {
		return []any{}
	}
	return views
}

// What a participant renders anew is no difference: everything is verified and sealed as equal, and what it is restored
// from is its own history. Views of another package are told, and stored by a repair.
func TestWhatIsRenderedAnewIsNoDifference(t *testing.T) {
	t.Parallel()
	brief.Long(t, "verifies and repairs a database several times")
	source := &anew{}
	s := &sealed{Ledger: sandbox.NewLedger(sandbox.Options{Seed: 71}), t: t, database: throwaway.Migrated(t, migrate)}
	s.Grow(120)
	scope := everything("ledger-effects")
	s.cfg = indexerFor(s.database, serve(t, s.Ledger, sandbox.ServerOptions{Rewrite: source.rewrite}), scope)
	s.cfg.sealWindow = smallWindow
	_, err := RunBackfill(t.Context(), backfillFor(s.database, s.cfg.LedgerURL, scope, quietOffset(t, s.Ledger)), testLogger(t), nil)
	require.NoError(t, err)
	s.index()
	require.Zero(t, s.verified(false, nil).Rendered)

	source.other = true
	s.sealUntil(allSealed + " AND EXISTS (SELECT FROM ledger.verifications WHERE stream = 'snapshot')")
	require.Regexp(t, "^equal( equal)*$", s.windows("updates"))
	s.holds(allVerified)
	require.NotContains(t, s.journal.all(), `"level":"ERROR"`)
	require.NotContains(t, s.journal.all(), `"level":"WARN"`)

	var views []audit.Difference
	result := s.verified(false, &views)
	require.Positive(t, result.Rendered)
	require.Zero(t, result.Remaining(false))
	require.Len(t, views, int(result.Rendered))
	kinds := map[string]bool{}
	for _, view := range views {
		require.NotNil(t, view.Rendering, view)
		require.Contains(t, view.String(), "rendered otherwise")
		kinds[view.Relation+" "+string(view.Kind)] = true
	}
	require.True(t, kinds["interface_views altered"] && kinds["interface_views extra"], kinds)

	repaired := s.verified(true, nil)
	require.GreaterOrEqual(t, repaired.Rendered, result.Rendered, "and what follows from them")
	require.Zero(t, repaired.Differences)
	require.Zero(t, repaired.Remaining(true))
	require.Zero(t, s.verified(false, nil).Rendered)
	s.holds("EXISTS (SELECT FROM ledger.interface_views WHERE implementation_package_id = '" + otherPackage + "')")
	before := texts(t, s.database, "SELECT digest::text FROM indexer.verifications WHERE stream = 'snapshot'")
	s.sealUntil("EXISTS (SELECT FROM indexer.verifications WHERE stream = 'snapshot' AND digest::text <> '" + before[0] + "')") // compared again
	require.Empty(t, s.damaged())
}

// verified compares everything. Without a place for it, nothing may be found but what is rendered otherwise.
func (s *sealed) verified(repair bool, found *[]audit.Difference) VerifyResult {
	s.t.Helper()
	cfg := VerifyConfig{Database: s.cfg.Database, Sources: s.cfg.Sources, Verify: config.Verify{All: true, Repair: repair}}
	result, err := RunVerify(s.t.Context(), cfg, testLogger(s.t), func(d audit.Difference) {
		if found != nil {
			*found = append(*found, d)
		} else if d.Rendering == nil {
			s.t.Error(d)
		}
	})
	require.NoError(s.t, err)
	return result
}
