package sandbox

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// apiDocument checks JSON against an OpenAPI document: types, required and unknown
// keys, enumerations and the variants of sum types. An optional value may be null,
// as the servers send it.
type apiDocument struct{ root map[string]any }

func loadAPI(t *testing.T, version string) *apiDocument {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(shared(t, "openapi"), "ledger-json-api-"+version+".yaml"))
	require.NoError(t, err)
	d := &apiDocument{}
	require.NoError(t, yaml.Unmarshal(data, &d.root))
	return d
}

func (d *apiDocument) at(path ...string) map[string]any {
	node := d.root
	for _, p := range path {
		node, _ = node[p].(map[string]any)
	}
	return node
}

// response returns the schema of an operation's answer.
func (d *apiDocument) response(method, path, status string) map[string]any {
	return d.at("paths", path, strings.ToLower(method), "responses", status, "content", "application/json", "schema")
}

func (d *apiDocument) check(schema map[string]any, v any, at string) error {
	if ref, ok := schema["$ref"].(string); ok {
		return d.check(d.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...), v, at)
	}
	if variants, ok := schema["oneOf"].([]any); ok {
		return d.checkVariant(variants, v, at)
	}
	if enum, ok := schema["enum"].([]any); ok && !slices.Contains(enum, v) {
		return fmt.Errorf("%s: %v is not one of %v", at, v, enum)
	}
	// The documents say text; the servers decode known details to objects.
	if strings.HasSuffix(at, ".valueDecoded") {
		return nil
	}
	switch kind := schema["type"]; kind {
	case nil:
		return nil // any value
	case "object":
		o, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("%s: %T is not an object", at, v)
		}
		return d.checkObject(schema, o, at)
	case "array":
		list, ok := v.([]any)
		if !ok {
			return fmt.Errorf("%s: %T is not an array", at, v)
		}
		if least, ok := schema["minItems"].(int); ok && len(list) < least {
			return fmt.Errorf("%s: %d items are too few", at, len(list))
		}
		for i, item := range list {
			if err := d.check(schema["items"].(map[string]any), item, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
		return nil
	default:
		return checkScalar(kind, v, at)
	}
}

func checkScalar(kind, v any, at string) error {
	ok := false
	switch v := v.(type) {
	case string:
		ok = kind == "string"
	case bool:
		ok = kind == "boolean"
	case json.Number:
		_, err := v.Int64()
		ok = kind == "number" || kind == "integer" && err == nil
	}
	if !ok {
		return fmt.Errorf("%s: %v (%T) is not %v", at, v, v, kind)
	}
	return nil
}

func (d *apiDocument) checkObject(schema, o map[string]any, at string) error {
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, ok := o[name.(string)]; !ok {
			return fmt.Errorf("%s: there is no %s", at, name)
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, v := range o {
		of, known := properties[name].(map[string]any)
		if more, ok := schema["additionalProperties"].(map[string]any); !known && ok {
			of, known = more, true
		}
		switch {
		case !known:
			return fmt.Errorf("%s: unknown key %s", at, name)
		case v == nil && !slices.Contains(required, any(name)):
			continue
		}
		if err := d.check(of, v, at+"."+name); err != nil {
			return err
		}
	}
	return nil
}

func (d *apiDocument) checkVariant(variants []any, v any, at string) error {
	o, ok := v.(map[string]any)
	if !ok || len(o) != 1 {
		return fmt.Errorf("%s: %v is not one variant", at, v)
	}
	for name := range o {
		for _, variant := range variants {
			schema := variant.(map[string]any)
			if slices.Contains(schema["required"].([]any), any(name)) {
				return d.check(schema, v, at)
			}
		}
		return fmt.Errorf("%s: there is no variant %s", at, name)
	}
	return nil
}

// missing looks for keys of the document that a served object lacks: servers send
// every key.
func (d *apiDocument) missing(name string, o map[string]any) []string {
	var out []string
	for key := range d.at("components", "schemas", name, "properties") {
		if _, ok := o[key]; !ok {
			out = append(out, key)
		}
	}
	return out
}

func decodeNumbers(t *testing.T, body []byte) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v))
	return v
}

func TestResponsesMatchTheServersDocuments(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3.4", "3.5", "3.6"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			api := loadAPI(t, version)
			l := inFlightAtEnd(t)
			c := serve(t, l, ServerOptions{Version: version, ListLimit: 100_000, CheckpointInterval: 1})
			check := func(method, path, query, body string) {
				t.Helper()
				a := c.do(method, path+query, body)
				require.Equal(t, 200, a.status, "%s %s: %s", method, path, a.body)
				schema := api.response(method, path, "200")
				require.NotNil(t, schema, "%s %s is not in the document", method, path)
				require.NoError(t, api.check(schema, decodeNumbers(t, a.body), path))
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
				}
				if version != "3.4" {
					check("POST", "/v2/updates/get-updates-page", "", fmt.Sprintf(`{"updateFormat":%s}`, scope.UpdateFormat()))
					check("POST", "/v2/state/active-contracts-page", "", fmt.Sprintf(`{"eventFormat":%s,"maxPageSize":9}`, scope.EventFormat()))
				}
			}
			check("POST", "/v2/contracts/contract-by-id", "", fmt.Sprintf(`{"contractId":%q}`, l.contractID(nil, 1)))
			for _, path := range []string{"/v2/state/ledger-end", "/v2/state/latest-pruned-offsets", "/v2/state/connected-synchronizers", "/v2/version", "/v2/parties/participant-id"} {
				check("GET", path, "", "")
			}
			refused := c.do(http.MethodPost, "/v2/updates", `{}`)
			require.Equal(t, 400, refused.status)
			require.NoError(t, api.check(api.response("POST", "/v2/updates", "default"), decodeNumbers(t, refused.body), "error"))
		})
	}
}

// Servers send every key that their document has, absent values as null or empty.
func TestEveryKeyIsServed(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3.4", "3.5", "3.6"} {
		api := loadAPI(t, version)
		l := grown(t, Options{Seed: 1}, 130)
		c := serve(t, l, ServerOptions{Version: version, ListLimit: 1000})
		none := func(schema string, o any) {
			t.Helper()
			require.Empty(t, api.missing(schema, o.(map[string]any)), "%s %s", version, schema)
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
		for _, e := range c.post("/v2/state/active-contracts?limit=200", `{"activeAtOffset":%d,"eventFormat":%s}`, l.End(), anyParty).list() {
			none("JsGetActiveContractsResponse", e)
			name, body := variant(t, e["contractEntry"])
			none(name, body)
		}
	}
}
