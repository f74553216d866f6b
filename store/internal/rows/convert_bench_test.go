package rows

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/names"
)

// realisticUpdates are updates of one creation and one archival each, with ids, parties and payloads as long as real
// ones. Lists of parties that are alike share their memory, as those that were decoded.
func realisticUpdates(n int) []*ledger.Update {
	const template = "0b3f41ae14e183232720d398dab66d2df2b073a3f3f107ec48fcb07ec407163b:Splice.Amulet:LockedAmulet"
	synchronizer, dso, packageID := "global-domain::1220"+strings.Repeat("be", 32), "DSO::1220"+strings.Repeat("cd", 32), strings.Repeat("0b", 32)
	at := ledger.Time{Time: time.Unix(1750000000, 123456000).UTC(), Valid: true}
	yes, cost, empty := true, int64(3163), ""
	const users = 500
	var lists [users][]string
	for i := range lists {
		lists[i] = []string{fmt.Sprintf("wallet-%d::1220%s", i, strings.Repeat("ab", 32)), dso}
	}
	updates := make([]*ledger.Update, n)
	for i := range updates {
		offset := ledger.Offset(i + 1)
		parties, contract, trace := lists[i%users], fmt.Sprintf("00%0134x02", i), fmt.Sprintf("00-%032x-01", i)
		payload := fmt.Sprintf(`{"amulet":{"dso":%q,"owner":%q,"amount":{"initialAmount":"1000.0000000000","createdAt":{"number":"%d"}}},`+
			`"lock":{"holders":[%q],"optContext":"transfer to \"bob\""},"meta":{"values":{"reason":%q}},"history":[["1","1.0"],["2","2.0"]]}`,
			dso, parties[0], i, dso, strings.Repeat("monthly ", 50))
		updates[i] = &ledger.Update{Offset: offset, Kind: ledger.KindTransaction, ID: fmt.Sprintf("1220%064x", i), SynchronizerID: &synchronizer, Plain: true,
			CommandID: &empty, WorkflowID: &empty, RecordTime: at, EffectiveAt: at, TraceParent: &trace, PaidTrafficCost: &cost,
			Created: []ledger.CreatedEvent{{Offset: offset, Origin: ledger.OriginTransaction, ContractID: contract, TemplateID: template,
				PackageName: "splice-amulet", RepresentativePackageID: &packageID, Argument: ledger.JSON(payload), CreatedAt: at, ACSDelta: &yes,
				Signatories: parties, WitnessParties: parties, Observers: []string{}}},
			Archived: []ledger.ArchivedEvent{{NodeID: 1, ContractID: contract, TemplateID: template, PackageName: "splice-amulet",
				WitnessParties: parties}},
		}
	}
	return updates
}

// converted are the rows of updates, and what was collected for them.
func converted(updates []*ledger.Update) (*Facts, *names.References) {
	wanted, facts := names.NewReferences(), NewFacts()
	facts.Grow(updates)
	for _, u := range updates {
		facts.Add(wanted, u)
	}
	return &facts, wanted
}

func BenchmarkConvert(b *testing.B) {
	updates := realisticUpdates(1000)
	b.ReportAllocs()
	for b.Loop() {
		facts, wanted := converted(updates)
		facts.Release()
		wanted.Release()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(updates)), "ns/update")
}
