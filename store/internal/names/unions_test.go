package names

import (
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// Who may see something is one list: one of those that were served, where it has all parties. No other list gets a
// number.
func TestUnion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lists [][]string
		want  []string
		added int
	}{
		"nobody":                  {lists: [][]string{nil, nil}},
		"no parties":              {lists: [][]string{{}, nil}, want: []string{}},
		"one":                     {lists: [][]string{{"b", "a"}, nil}, want: []string{"b", "a"}},
		"the same":                {lists: [][]string{{"b", "a"}, {"b", "a"}}, want: []string{"b", "a"}},
		"one has all":             {lists: [][]string{{"a"}, {"c", "b", "a"}, {"b", "c"}}, want: []string{"c", "b", "a"}},
		"a repetition is no more": {lists: [][]string{{"a", "a", "a"}, {"b", "a"}}, want: []string{"a", "b"}, added: 1},
		"none has all":            {lists: [][]string{{"c", "a"}, {"b"}, {"a", "d"}}, want: []string{"a", "b", "c", "d"}, added: 1},
		"more than is remembered": {lists: [][]string{{"e"}, {"d"}, {"c"}, {"b"}, {"a"}}, want: []string{"a", "b", "c", "d", "e"}, added: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := NewReferences()
			for range 2 { // what is remembered is the same
				var viewers Viewers
				for _, list := range c.lists {
					viewers = viewers.With(n.List(list))
				}
				served := map[ListPlace]bool{}
				for _, list := range viewers {
					served[list] = true
				}
				place := n.Union(viewers)
				if c.want == nil {
					require.Equal(t, NoList, place)
					continue
				}
				require.Equal(t, c.want, n.Lists[place].Parties)
				require.Len(t, n.Lists, len(served)+c.added)
			}
		})
	}
}

// The room of a batch that was written is another batch's, and nothing else of it.
func TestReleasedIsEmpty(t *testing.T) {
	t.Parallel()
	n := NewReferences()
	n.Parties([]string{"a"})
	n.Template("pkg:M:T", "pkg", nil)
	n.Synchronizer("sync")
	n.Union(Viewers{}.With(n.List([]string{"a"}), n.List([]string{"b"})))
	n.Created(&ledger.CreatedEvent{InterfaceViews: []ledger.InterfaceView{{InterfaceID: "pkg:I:I"}}},
		n.Holding(Position{Owner: []byte("a")}, "1", nil, pgtype.Timestamptz{}))
	n.Release()
	require.Empty(t, n.Lists)
	for _, left := range []any{
		n.Templates.Keys, n.Templates.Numbers, n.Templates.byKey, n.Synchronizers.Keys, n.Synchronizers.Numbers, n.Synchronizers.byKey,
		n.Views, n.views, n.places, n.unions, n.shown, n.Positions,
	} {
		require.Empty(t, left)
	}
}

// An update is seen by as few lists of its events as have all parties; what more than three have is one list.
func TestSeenBy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lists [][]string
		want  [][]string
		added int
	}{
		"nobody":                     {lists: [][]string{nil}},
		"one":                        {lists: [][]string{{"b", "a"}}, want: [][]string{{"b", "a"}}},
		"equal in another order":     {lists: [][]string{{"b", "a"}, {"a", "b"}}, want: [][]string{{"b", "a"}}},
		"a later one has more":       {lists: [][]string{{"a"}, {"c"}, {"b", "a"}}, want: [][]string{{"c"}, {"b", "a"}}},
		"an earlier one has more":    {lists: [][]string{{"a", "b"}, {}, {"b"}, {"c"}}, want: [][]string{{"a", "b"}, {"c"}}},
		"several have what one has":  {lists: [][]string{{"a"}, {"b"}, {"c"}, {"a", "b"}, {"b", "c"}}, want: [][]string{{"a", "b"}, {"b", "c"}}},
		"three":                      {lists: [][]string{{"a"}, {"b"}, {"c"}}, want: [][]string{{"a"}, {"b"}, {"c"}}},
		"the others are one of them": {lists: [][]string{{"a"}, {"b"}, {"d", "c"}, {"c"}}, want: [][]string{{"a"}, {"b"}, {"d", "c"}}},
		"the others are a new list":  {lists: [][]string{{"a"}, {"b"}, {"d"}, {"c"}}, want: [][]string{{"a"}, {"b"}, {"c", "d"}}, added: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := NewReferences()
			var events Viewers
			for _, list := range c.lists {
				events = events.With(n.List(list))
			}
			served := len(n.Lists)
			first, second, others := n.SeenBy(events)
			var got [][]string
			for _, number := range []*int32{first, second, others} {
				for place := range n.Lists {
					if n.Lists[place].Number == number {
						got = append(got, n.Lists[place].Parties)
					}
				}
			}
			require.Equal(t, c.want, got)
			require.Len(t, n.Lists, served+c.added)
		})
	}
}
