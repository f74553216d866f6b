package ingest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// packageShelf is a source and a sink of packages, of which the names are the contents.
type packageShelf struct {
	told
	has    map[string]error // what asking for a package fails with; nil: it is there
	asked  map[string]int
	wanted []string
	stored map[string]ledger.Package
	missed map[string]string
	refuse func(p *ledger.Package) error
	needs  map[string][]string
}

func newPackageShelf(has map[string]error) *packageShelf {
	return &packageShelf{has: has, asked: map[string]int{}, wanted: slices.Sorted(maps.Keys(has)), stored: map[string]ledger.Package{},
		missed: map[string]string{}, needs: map[string][]string{}}
}

func (s *packageShelf) Package(_ context.Context, id string) ([]byte, error) {
	s.asked[id]++
	if err := s.has[id]; err != nil {
		return nil, err
	}
	return []byte(id), nil
}

func (s *packageShelf) WantedPackages(_ context.Context, limit int) (list []string, err error) {
	for _, id := range s.wanted {
		if _, stored := s.stored[id]; !stored && s.missed[id] == "" && len(list) < limit {
			list = append(list, id)
		}
	}
	return list, nil
}

func (s *packageShelf) CompletablePackages(context.Context) (list []string, err error) {
	for id, p := range s.stored {
		for _, need := range p.Needs {
			if _, stored := s.stored[need]; stored && !slices.Contains(list, id) {
				list = append(list, id)
			}
		}
	}
	return list, nil
}

func (s *packageShelf) PackageContent(_ context.Context, id string) ([]byte, error) {
	return s.stored[id].Content, nil
}

func (s *packageShelf) SavePackage(_ context.Context, p *ledger.Package) error {
	if s.refuse != nil {
		if err := s.refuse(p); err != nil {
			return err
		}
	}
	s.stored[p.ID] = *p
	return nil
}

func (s *packageShelf) MissPackage(_ context.Context, id, failure string) error {
	s.missed[id] = failure
	return nil
}

// read says that a package needs what s.needs says and is not stored.
func (s *packageShelf) read(id string, content []byte) (ledger.Package, error) {
	p := ledger.Package{ID: id, Content: content, Definitions: make([]ledger.Definition, 1)}
	for _, need := range s.needs[id] {
		if _, stored := s.stored[need]; !stored {
			p.Needs = append(p.Needs, need)
		}
	}
	return p, nil
}

// run runs the task for a time, and returns the outcomes.
func (s *packageShelf) run(t *testing.T, d time.Duration) map[string]int {
	t.Helper()
	outcomes := map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		types := PackageContents{Source: s, Sink: s, Read: s.read, Logger: s.logger(), Watch: s.watch(), Outcome: func(o string) { outcomes[o]++ }}
		_ = types.Run(ctx)
	})
	return outcomes
}

func TestEachPackageIsAskedForOnce(t *testing.T) {
	t.Parallel()
	has := map[string]error{}
	for i := range 2*mostWanted + 3 {
		has[fmt.Sprintf("p%02d", i)] = nil
	}
	s := newPackageShelf(has)
	s.needs["p00"] = []string{"p40"} // which comes later
	require.Equal(t, map[string]int{"stored": len(has)}, s.run(t, time.Hour))
	require.Len(t, s.stored, len(has))
	require.Empty(t, s.stored["p00"].Needs, "it is completed when what it needs is there")
	for id, n := range s.asked {
		require.Equal(t, 1, n, id)
	}
	require.False(t, s.failed())
}

func TestAPackageThatCannotBeHadIsSaidOnce(t *testing.T) {
	t.Parallel()
	for _, err := range []error{fmt.Errorf("asked: %w", ledger.ErrNotFound), &UnusableError{errors.New("damaged")}} {
		s := newPackageShelf(map[string]error{"a": err, "b": nil})
		require.Equal(t, map[string]int{"missing": 1, "stored": 1}, s.run(t, time.Minute))
		delete(s.missed, "a") // it is time to ask again
		s.has["c"], s.wanted = nil, append(s.wanted, "c")
		require.Equal(t, map[string]int{"missing": 1, "stored": 1}, s.run(t, time.Minute))
		require.Equal(t, 2, s.asked["a"])
		require.Equal(t, map[string]string{"a": Reason(err)}, s.missed)
		require.False(t, s.failed(), "the task works")
		require.Equal(t, 2, s.lines("can't be had"), "once in each term")
	}
}

func TestAPackageThatCannotBeReadIsAskedForAgain(t *testing.T) {
	t.Parallel()
	for err, often := range map[error][2]int{
		fmt.Errorf("no path: %w", ledger.ErrNotOffered): {6, 6}, // every ten minutes
		errors.New("away"): {100, 3600},
	} {
		s := newPackageShelf(map[string]error{"a": err})
		require.Empty(t, s.run(t, time.Hour-time.Second))
		require.GreaterOrEqual(t, s.asked["a"], often[0])
		require.LessOrEqual(t, s.asked["a"], often[1])
		require.Empty(t, s.missed)
		require.Equal(t, 1, s.lines("a background task failed"))
		require.True(t, s.failed())
	}
}

func TestTypesThatTheDatabaseRefusesAreLeftOut(t *testing.T) {
	t.Parallel()
	s := newPackageShelf(map[string]error{"a": nil})
	s.refuse = func(p *ledger.Package) error {
		if len(p.Definitions) > 0 {
			return &ledger.Problem{What: "a name is too long"}
		}
		return nil
	}
	require.Equal(t, map[string]int{"unreadable": 1}, s.run(t, time.Minute))
	require.Equal(t, "a", string(s.stored["a"].Content))
	require.Contains(t, s.stored["a"].Failure, "a name is too long")
}
