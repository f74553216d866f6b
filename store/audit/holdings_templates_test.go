package audit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/store/internal/storetest"
)

// A holding that is not found, because its template's interface was not noted, is a difference.
func TestCompareTemplateInterfaces(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	pages := storetest.EveryKind(0)
	require.NoError(t, l.Append(t.Context(), storetest.Scope, pages))
	c := &compared{testDB: d, store: l.store, page: pages[0]}
	require.Empty(t, c.spoilt("SELECT 1"))
	list := c.spoilt("DELETE FROM indexer.template_interfaces")
	require.Len(t, list, 1)
	ref := d.Row("SELECT template_ref FROM indexer.templates JOIN indexer.created USING (template_ref) WHERE contract_id = 'contract-0'")
	require.Equal(t, "template_interfaces, template_ref "+ref+", interface_id "+storetest.HoldingV1+": the row is not stored", list[0].String())
}
