package sandbox

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/openapi"
)

func TestResponsesMatchTheServersDocuments(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3.4", "3.5.5", "3.5", "3.6"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			api := openapi.Ledger(t, version)
			l := inFlightAtEnd(t)
			c := serve(t, l, ServerOptions{Version: version, ListLimit: 100_000, CheckpointInterval: 1})
			check := func(method, path, query, body string) {
				t.Helper()
				a := c.do(method, path+query, body)
				require.Equal(t, 200, a.status, "%s %s: %s", method, path, a.body)
				require.NoError(t, api.CheckResponse(method, path, a.status, a.body))
			}
			for _, scope := range []Scope{
				{Interfaces: InterfaceNames(), Blobs: true},
				{Shape: LedgerEffects, Interfaces: InterfaceNames()},
			} {
				bounded := fmt.Sprintf(`{"beginExclusive":0,"endInclusive":%d,"updateFormat":%s}`, l.End(), scope.UpdateFormat())
				check("POST", "/v2/updates", "", bounded)
				check("POST", "/v2/updates", "?limit=2", fmt.Sprintf(`{"beginExclusive":%d,"updateFormat":%s}`, l.End(), scope.UpdateFormat()))
				check("POST", "/v2/state/active-contracts", "", fmt.Sprintf(`{"activeAtOffset":%d,"eventFormat":%s}`, l.End(), scope.EventFormat()))
				check("POST", "/v2/updates/update-by-id", "", fmt.Sprintf(`{"updateId":%q,"updateFormat":%s}`, l.UpdateID(3), scope.UpdateFormat()))
				if version != "3.6" {
					check("POST", "/v2/updates/flats", "", bounded)
					check("POST", "/v2/updates/trees", "", fmt.Sprintf(`{"endInclusive":%d,"filter":%s}`, l.End(), anyParty))
				}
				if version != "3.4" {
					check("POST", "/v2/updates/get-updates-page", "", fmt.Sprintf(`{"updateFormat":%s}`, scope.UpdateFormat()))
					method := "POST"
					if version == "3.5.5" {
						method = "GET"
					}
					check(method, "/v2/state/active-contracts-page", "", fmt.Sprintf(`{"eventFormat":%s,"maxPageSize":9}`, scope.EventFormat()))
				}
			}
			check("POST", "/v2/contracts/contract-by-id", "", fmt.Sprintf(`{"contractId":%q}`, l.contractID(nil, 1)))
			change := fmt.Sprintf(`{"changes":[%s],"synchronizerId":%q}`, vetWithin(`"2027-01-01T00:00:00Z"`, `null`, byID("audit-api-1")), l.Synchronizers()[1])
			check("POST", "/v2/package-vetting/update", "", change)
			check("POST", "/v2/package-vetting/list", "", `{}`)
			if version != "3.6" {
				check("POST", "/v2/package-vetting", "", change)
				check("GET", "/v2/package-vetting", "", `{"pageSize":1}`)
			}
			l.SetVetting(Vetting{Synchronizer: l.Synchronizers()[1], Participant: l.ParticipantID()})
			first := fmt.Sprintf(`{"changes":[%s],"synchronizerId":%q}`, vet(byID("daml-prim-1")), l.Synchronizers()[1])
			check("POST", "/v2/package-vetting/update", "", first) // there is no past
			for _, path := range []string{"/v2/state/ledger-end", "/v2/state/latest-pruned-offsets", "/v2/state/connected-synchronizers", "/v2/version", "/v2/parties/participant-id"} {
				check("GET", path, "", "")
			}
			for _, path := range []string{"/v2/updates", "/v2/package-vetting/update"} {
				refused := c.do(http.MethodPost, path, `{}`)
				require.Equal(t, 400, refused.status)
				require.NoError(t, api.CheckResponse("POST", path, refused.status, refused.body))
			}
		})
	}
}

// Servers send every key that their document has, absent values as null or empty.
func TestEveryKeyIsServed(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3.4", "3.5.5", "3.5", "3.6"} {
		api := openapi.Ledger(t, version)
		l := grown(t, Options{Seed: 1}, 130)
		c := serve(t, l, ServerOptions{Version: version, ListLimit: 1000})
		none := func(schema string, o any) {
			t.Helper()
			require.Empty(t, api.Missing(schema, o.(map[string]any)), "%s %s", version, schema)
		}
		for _, shape := range []string{ACSDelta, LedgerEffects} {
			scope := Scope{Shape: shape, Interfaces: InterfaceNames()}
			for _, u := range c.post("/v2/updates", `{"endInclusive":%d,"updateFormat":%s}`, l.End(), scope.UpdateFormat()).list() {
				kind, value := updateOf(t, u)
				none("Js"+kind, value)
				if kind == "TopologyTransaction" {
					continue
				}
				for _, raw := range value["events"].([]any) {
					name, e := variant(t, raw)
					if name == "JsUnassignedEvent" {
						name, e = "UnassignedEvent", e["value"].(map[string]any)
					}
					none(name, e)
					if name == "CreatedEvent" {
						for _, v := range e["interfaceViews"].([]any) {
							none("JsInterfaceView", v)
							none("JsStatus", v.(map[string]any)["viewStatus"])
						}
					}
				}
			}
		}
		for _, raw := range c.post("/v2/package-vetting/list", `{}`).object()["vettedPackages"].([]any) {
			none("VettedPackages", raw)
			for _, p := range raw.(map[string]any)["packages"].([]any) {
				none("VettedPackage", p)
			}
		}
		none("CreatedEvent", c.contract(string(l.contractID(nil, 1))).created())
		for _, e := range c.post("/v2/state/active-contracts?limit=200", `{"activeAtOffset":%d,"eventFormat":%s}`, l.End(), anyParty).list() {
			none("JsGetActiveContractsResponse", e)
			name, body := variant(t, e["contractEntry"])
			none(name, body)
		}
	}
}
