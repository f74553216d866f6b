package audit

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/tables"
)

// longSnapshot is a script whose snapshot has pages, each with an entry that is stored, and what is stored besides.
type longSnapshot struct {
	*sealScript
	pages   int
	surplus int
	read    []string // tokens, as long as the pages before
}

func (l *longSnapshot) ReadSnapshot(_ context.Context, _ ledger.Offset, token ledger.Token) (ledger.SnapshotPage, error) {
	l.read = append(l.read, token.Value)
	n := len(token.Value)
	return ledger.SnapshotPage{
		Entries: make([]ledger.ContractEntry, 10), Last: n == l.pages-1, Next: ledger.Token{Value: token.Value + "x"},
	}, nil
}

func (l *longSnapshot) CompareCarried(_ context.Context, _ ledger.Offset, before int64, entries []ledger.ContractEntry, seen func(string), found Found) error {
	for i := range entries {
		seen(fmt.Sprint(before + int64(i)))
	}
	if before == 20 {
		_ = found(Difference{Kind: Altered, Relation: "created"})
	}
	return l.fails("CompareCarried")
}

func (l *longSnapshot) CarriedAt(_ context.Context, _ ledger.Offset, each func(string, Difference) error) error {
	for i := range l.pages*10 + l.surplus {
		if err := each(strconv.Itoa(i), Difference{Kind: Extra, Relation: "created"}); err != nil {
			return err
		}
	}
	return l.fails("CarriedAt")
}

// A long snapshot takes turns with the updates, and continues where it was after whatever fails.
func TestALongSnapshotHoldsUpNothing(t *testing.T) {
	for surplus, differences := range []int64{1, 2, 3} {
		t.Run(fmt.Sprint(surplus), func(t *testing.T) {
			scriptedSeals(t, 3000, func(t *testing.T, s *sealScript, wait func(time.Duration)) {
				s.snapshot = &Window{To: 100, Full: true}
				l := &longSnapshot{sealScript: s, pages: 50, surplus: surplus}
				for _, what := range []string{"CompareCarried", "CarriedAt"} {
					s.failures[what] = 2
				}
				var told []Sealing
				seals := s.seals(100)
				seals.Sealed = func(sealing Sealing) { told = append(told, sealing) }
				seals.AddUpdates(l, l)
				s.start(t, seals)
				wait(time.Hour)
				require.Equal(t, []string{"0-1000 equal", "1000-2000 equal", "2000-3000 equal"}, s.of("updates"))
				require.Equal(t, []string{"0-100 different"}, s.of("snapshot"))
				require.Equal(t, tables.StreamSnapshot, told[3].Stream, "the updates did not wait for it")
				require.Equal(t, differences, told[3].Differences, "each is counted once")
				passes := 1 + min(surplus, 1) // once more to see which of the stored ones is not there
				require.Len(t, l.read, passes*l.pages+2, "only what failed was read again")
			})
		})
	}
}
