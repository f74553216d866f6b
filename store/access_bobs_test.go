package store

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

var bob = []string{"bob-" + secret}

// bobsCreation is of a contract that bob alone sees.
func bobsCreation(node int32, id, template, pkg, argument string) ledger.CreatedEvent {
	c := storetest.Creation(node, id+"-"+secret)
	c.Signatories, c.Observers, c.WitnessParties = bob, []string{"carol-" + secret}, bob
	c.TemplateID, c.PackageName, c.Argument = template, pkg, ledger.JSON(argument)
	return c
}

// bobsExercise is of a choice, with the nodes up to last below it.
func bobsExercise(node, last int32, id, template, pkg, choice, argument, result string) ledger.ExercisedEvent {
	e := storetest.Exercise(node, id+"-"+secret, false, nil)
	e.WitnessParties, e.ActingParties, e.LastDescendantNodeID = bob, bob, last
	e.TemplateID, e.PackageName, e.Choice, e.Argument, e.Result = template, pkg, choice, ledger.JSON(argument), ledger.JSON(result)
	return e
}

func bobsView(interfaceID, value string) []ledger.InterfaceView {
	return []ledger.InterfaceView{{InterfaceID: interfaceID, Value: ledger.JSON(value)}}
}

// bobsUpdate has an event of each kind that bob alone sees, and of each kind from which something is derived.
func bobsUpdate(offset ledger.Offset) ledger.Update {
	const (
		instrument = `{"id": "` + secret + `", "admin": "bob-` + secret + `"}`
		meta       = `{"values": {"splice.lfdecentralizedtrust.org/reason": "` + secret + `"}}`
		transfer   = `{"sender": "bob-` + secret + `", "receiver": "carol-` + secret + `", "amount": "77.77", "instrumentId": ` + instrument + `, "meta": ` + meta + `}`
		holding    = `{"owner": "%s-` + secret + `", "amount": "77.77", "instrumentId": ` + instrument + `, "lock": null}`
		rules      = "splice:Splice.AmuletRules:AmuletRules"
	)
	u := storetest.NewUpdate(offset, "sync::1")
	u.ID = "update-of-" + secret
	held := bobsCreation(0, "contract", storetest.Template, "asset", `{"note": "`+secret+`", "amount": "77.77"}`)
	held.InterfaceViews = bobsView(storetest.HoldingV1, fmt.Sprintf(holding, "bob"))
	ended, got := bobsCreation(1, "ended", storetest.Template, "asset", `{}`), bobsCreation(6, "got", storetest.Template, "asset", `{}`)
	ended.InterfaceViews, got.InterfaceViews = held.InterfaceViews, bobsView(storetest.HoldingV1, fmt.Sprintf(holding, "carol"))
	offer := bobsCreation(7, "offer", "pkg:Registry:Offer", "registry", `{}`)
	offer.InterfaceViews = bobsView("api:Splice.Api.Token.TransferInstructionV1:TransferInstruction", `{"transfer": `+transfer+`}`)
	amulet := bobsCreation(9, "amulet", "splice:Splice.Amulet:Amulet", "splice-amulet",
		`{"owner": "bob-`+secret+`", "dso": "dso-`+secret+`", "amount": {"initialAmount": "77.77", "createdAt": {"number": "7"}, "ratePerRound": {"rate": "77.77"}}}`)
	round := bobsCreation(10, "round", "splice:Splice.Round:OpenMiningRound", "splice-amulet", `{"round": {"number": "7"}, "amuletPrice": "77.77"}`)
	u.Created = []ledger.CreatedEvent{held, ended, got, offer, amulet, round, bobsCreation(11, "exact", storetest.Template, "asset", `{"note": "\u0000`+secret+`"}`)}
	for node, id := range map[int32]string{2: "ended", 12: "unseen", 13: "lost"} {
		a := storetest.Archival(node, id+"-"+secret)
		a.WitnessParties = bob
		u.Archived = append(u.Archived, a)
	}
	slices.SortFunc(u.Archived, func(a, b ledger.ArchivedEvent) int { return int(a.NodeID - b.NodeID) })
	u.Exercised = []ledger.ExercisedEvent{
		bobsExercise(3, 3, "contract", storetest.Template, "asset", "Choice_"+secret, `"`+secret+`"`, `"`+secret+`"`),
		bobsExercise(5, 6, "rules", storetest.Template, "asset", "TransferFactory_Transfer", `{"transfer": `+transfer+`}`, `{}`),
		bobsExercise(8, 8, "amulet-rules", rules, "splice-amulet", "AmuletRules_BuyMemberTraffic", `{"provider": "bob-`+secret+`", "memberId": "`+secret+`"}`,
			`{"summary": {"inputAppRewardAmount": "77.77", "holdingFees": "77.77", "senderChangeFee": "0"}, "amuletPaid": "77.77"}`),
	}
	u.Unknown = []ledger.UnknownElement{{Kind: "New", Raw: ledger.JSON(`{"of": "` + secret + `"}`)}}
	storetest.Rest(&u, storetest.Of{ContractID: "contract-" + secret, Parties: bob, Text: secret}, bobsMove(offset))
	return u
}

// bobsMove takes a contract that bob alone sees from one synchronizer to another.
func bobsMove(offset ledger.Offset) ledger.Update {
	u := storetest.NewUpdate(offset, "sync::2")
	u.ID = "move-of-" + secret
	storetest.Assign(&u, 0, "contract-"+secret, "sync::1", "sync::2", 1)
	u.Created[0] = bobsCreation(0, "contract", storetest.Template, "asset", `{"note": "`+secret+`", "amount": "77.77"}`)
	u.Created[0].Origin = ledger.OriginAssignment
	storetest.Unassign(&u, 1, "ended-"+secret, "sync::2", "sync::1", 2)
	u.Unassigned[0].WitnessParties = bob
	return u
}

// lookUpBobs answers the look-ups of contracts of bob's.
func lookUpBobs(t *testing.T, l *UpdatesWriter) {
	t.Helper()
	at := storetest.Time("2025-02-03T04:05:06Z")
	require.NoError(t, l.SaveLookups(t.Context(), []ledger.Lookup{
		{ContractID: "unseen-" + secret, At: at.Time, Status: ledger.LookupFound, Contract: &ledger.Contract{
			ContractID: "unseen-" + secret, TemplateID: storetest.Template, PackageName: "asset", Argument: ledger.JSON(`{"note": "\u0000` + secret + `"}`),
			Signatories: bob, Observers: bob, WitnessParties: bob, CreatedAt: at,
		}},
		{ContractID: "lost-" + secret, At: at.Time, Status: ledger.LookupNotFound},
	}))
}

// makeTypedViews makes a view of each kind, in the form that `indexer views create` gives them.
func makeTypedViews(t *testing.T, s *Store) {
	t.Helper()
	require.NoError(t, s.ChangeTypedViews(t.Context(), TypedView{Schema: "typed"}, func(c *TypedViewsChange) error {
		for kind, rows := range map[string]string{
			"template": `e.payload ->> 'note' AS note, ledger.as_numeric(e.payload ->> 'amount', 10)::numeric(38,10) AS amount, e.payload, e.signatories, a.ledger_offset IS NOT NULL AS active
				FROM ledger.created_events e LEFT JOIN ledger.active_events a ON a.ledger_offset = e.ledger_offset AND a.node_id = e.node_id AND a.template_number = e.template_number`,
			"interface": `e.view_value ->> 'owner' AS owner, ledger.as_numeric(e.view_value ->> 'amount', 10)::numeric(38,10) AS amount, e.view_value FROM ledger.interface_views e`,
			"choice":    `e.choice_argument #>> '{}' AS value, e.choice_argument, e.exercise_result, e.acting_parties FROM ledger.exercised_events e WHERE e.interface_id IS NULL`,
		} {
			v := TypedView{Schema: "typed", Name: kind, Kind: kind, Package: "asset", Module: "Main", Entity: "Asset", Choice: kind, Columns: []byte("[]")}
			if err := c.Make(t.Context(), v, []string{"CREATE VIEW typed." + kind + " WITH (security_invoker = true) AS SELECT e.contract_id, " + rows}); err != nil {
				return err
			}
		}
		return nil
	}))
}

// aboutNobody are the relations that have nothing of bob's, whoever reads them.
var aboutNobody = []string{
	"ledger.active_counts", "ledger.active_events", "ledger.choices", "ledger.coverage", "ledger.fields", "ledger.interfaces", "ledger.offset_checkpoints", "ledger.packages",
	"ledger.rewrites", "ledger.synchronizers", "ledger.template_numbers", "ledger.templates", "ledger.typed_views", "ledger.verifications", "ledger.vetted_packages", "ledger.vetting_changes",
	"pqs.__contract_tpe", "pqs.__events", "pqs.__packages", "pqs.__watermark",
}

// The attacks are on something: each relation that is about parties shows its owner something of bob's, so that one
// that comes later needs rows of his.
func TestAttackedRelationsHaveWhatIsHidden(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	a := newAttacked(t)
	var without []string
	for relation := range a.relations() {
		if a.Row("SELECT EXISTS (SELECT FROM "+relation+" x WHERE x::text LIKE ANY ($1))", []string{"%" + secret + "%", "%77.77%", "%" + hex.EncodeToString([]byte(secret)) + "%"}) == "false" {
			without = append(without, relation)
		}
	}
	require.Equal(t, storetest.Sorted(aboutNobody), storetest.Sorted(without))
}

// attackers are what she gives to functions, by type. The word is bob's, or one that nobody has.
func attackers(kind, word string) []string {
	switch kind {
	case "text":
		return []string{"'contract-" + word + "'", "'ended-" + word + "'", "'unseen-" + word + "'", "'bob-" + word + "'", "'" + word + "'", "'Choice_" + word + "'", "NULL"}
	case "bigint":
		return []string{"4", "10", "0", "NULL"}
	case "timestamp with time zone":
		return []string{"'2025-01-02T03:04:05.123456Z'", "'infinity'"}
	case "jsonb":
		return []string{`'"` + word + `"'`}
	case "interval":
		return []string{"'0'"}
	case "boolean":
		return []string{"true"}
	case "pqs.event_id":
		return []string{"'(4,3)'", "'(4,8)'"}
	}
	return []string{"NULL"}
}

// Nor by a function of the schemas, whatever it is given: asked for what is bob's it answers as if nobody had it.
// Functions that come later are called too.
func TestAttackByFunctions(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "calls every function with everything")
	a := newAttacked(t)
	const nobodys = "nobody" // of the same length: some answers are cut
	called := 0
	rows, err := a.alice.Query(t.Context(), `SELECT p.oid::regproc::text, ARRAY(SELECT format_type(x, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY y (x, n) ORDER BY n)
		FROM pg_proc p WHERE p.pronamespace IN ('ledger'::regnamespace, 'pqs'::regnamespace) AND p.provolatile <> 'i' AND p.prokind = 'f' ORDER BY 1`)
	require.NoError(t, err)
	functions := map[string][][]string{}
	var name string
	var kinds []string
	for rows.Next() {
		require.NoError(t, rows.Scan(&name, &kinds))
		functions[name] = append(functions[name], kinds)
	}
	require.NoError(t, rows.Err())
	require.Greater(t, len(functions), 50)
	for name, forms := range functions {
		if name == "ledger.wait_for_offset" {
			continue // it waits, and tells the watermark only
		}
		for _, kinds := range forms {
			asked := map[string]bool{}
			for turn := range 28 { // every two values of the first types meet
				var his, anybodys []string
				for i, kind := range kinds {
					n := turn
					if i > 0 {
						n = turn / 7
					}
					mine, other := attackers(kind, secret), attackers(kind, nobodys)
					his = append(his, mine[n%len(mine)]+"::"+kind)
					anybodys = append(anybodys, other[n%len(other)]+"::"+kind)
				}
				query := "SELECT x::text FROM " + name + "(" + strings.Join(his, ", ") + ") x"
				if asked[query] {
					continue
				}
				asked[query] = true
				called++
				got := a.try(query)
				require.NotContains(t, got, "77.77", query)
				if !strings.Contains(query, secret) {
					require.NotContains(t, got, secret, query)
					continue
				}
				want := a.try("SELECT x::text FROM " + name + "(" + strings.Join(anybodys, ", ") + ") x")
				require.NotContains(t, want, secret, query)
				require.Equal(t, strings.ReplaceAll(want, nobodys, secret), got, query)
			}
			_ = a.try("SELECT pqs.set_latest(NULL), pqs.set_oldest(NULL)")
		}
	}
	t.Logf("%d calls", called)
}
