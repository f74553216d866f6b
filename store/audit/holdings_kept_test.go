package audit

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
)

// The rows are those of the definition that looks at every payload and view when it is asked, now and at every third offset.
func TestHoldingsAreThoseOfTheDefinition(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "compares at every offset of a ledger")
	for n, start := range []string{fromGenesis, fromSnapshot} {
		t.Run(start, func(t *testing.T) {
			t.Parallel()
			i := newItself(t, uint64(500+n), start, ledger.ShapeACSDelta, 7)
			i.Exec("SET search_path = public, indexer")
			definition, err := os.ReadFile("testdata/holdings.sql")
			require.NoError(t, err)
			i.Exec(string(definition))
			_, defined, _ := strings.Cut(string(definition), "CREATE VIEW public.holding_totals AS")
			defined, _, _ = strings.Cut(defined, ";")
			require.NotEqual(t, "0", i.Row("SELECT count(*) FROM ledger.holdings"))
			same := func(relation string, key string) {
				t.Helper()
				order := " h ORDER BY h::text"
				require.Equal(t, i.Rows("SELECT h::text FROM public."+relation+order), i.Rows("SELECT h::text FROM ledger."+relation+order), key)
			}
			same("holdings", "now")
			same("holding_totals", "now")
			for _, offset := range i.Rows("SELECT x FROM generate_series(ledger.state_floor(), ledger.latest_offset(), 3) x") {
				same("holdings_at("+offset+")", offset)
				const totals = "SELECT to_jsonb(x)::text FROM (%s) x ORDER BY 1"
				require.Equal(t, i.Rows(fmt.Sprintf(totals, strings.Replace(defined, "FROM public.holdings h", "FROM public.holdings_at("+offset+") h", 1))),
					i.Rows(fmt.Sprintf(totals, "SELECT * FROM ledger.holding_totals_at("+offset+")")), offset)
			}
		})
	}
}
