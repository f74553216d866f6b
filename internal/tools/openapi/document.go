package openapi

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"ledgerindexer/internal/tools/recorded"
)

// Document is an OpenAPI document.
type Document struct{ root map[string]any }

// Ledger is the document of the participant's JSON API in a release, such as "3.5". The test is skipped where the
// documents are not beside the project.
func Ledger(t testing.TB, version string) *Document {
	t.Helper()
	return beside(t, "ledger-json-api-"+version+".yaml")
}

// Scan is the document of the Scan service in a release, such as "0.6". Its references to other files, such as for
// errors, are not resolved. The test is skipped as with Ledger.
func Scan(t testing.TB, version string) *Document {
	t.Helper()
	return beside(t, "scan-"+version+".yaml")
}

func beside(t testing.TB, name string) *Document {
	t.Helper()
	d, err := load(recorded.Beside(t, "openapi/"+name))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func load(file string) (*Document, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parse(data)
}

func parse(data []byte) (*Document, error) {
	d := &Document{}
	if err := yaml.Unmarshal(data, &d.root); err != nil {
		return nil, err
	}
	return d, nil
}

// at returns the object at a path of names from the root, nil if there is none.
func (d *Document) at(names ...string) map[string]any {
	node := d.root
	for _, name := range names {
		node, _ = node[name].(map[string]any)
	}
	return node
}

// Has reports whether the document has the operation.
func (d *Document) Has(method, path string) bool {
	return d.operation(method, path) != nil
}

func (d *Document) operation(method, path string) map[string]any {
	return d.at("paths", path, strings.ToLower(method))
}

// CheckRequest checks the query and the body of a request; nil means no body.
func (d *Document) CheckRequest(method, path string, query url.Values, body []byte) error {
	operation := d.operation(method, path)
	if operation == nil {
		return fmt.Errorf("%s %s is not in the document", method, path)
	}
	if err := checkQuery(operation, query); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	schema := child(operation, "requestBody", "content", "application/json", "schema")
	switch {
	case body == nil && schema == nil:
		return nil
	case schema == nil:
		return fmt.Errorf("%s %s takes no body", method, path)
	}
	return d.checkJSON(schema, body, method+" "+path)
}

// checkQuery checks that query parameters are known and, where they are numbers, whole ones.
func checkQuery(operation map[string]any, query url.Values) error {
	kinds := map[string]any{}
	parameters, _ := operation["parameters"].([]any)
	for _, p := range parameters {
		parameter, _ := p.(map[string]any)
		if name, ok := parameter["name"].(string); ok && parameter["in"] == "query" {
			kinds[name] = child(parameter, "schema")["type"]
		}
	}
	for name, values := range query {
		kind, known := kinds[name]
		if !known || len(values) != 1 {
			return fmt.Errorf("unknown or repeated query parameter %s", name)
		}
		if _, err := strconv.ParseInt(values[0], 10, 64); kind == "integer" && err != nil {
			return fmt.Errorf("query parameter %s is no whole number: %q", name, values[0])
		}
	}
	return nil
}

// CheckResponse checks the body of an answer. A status that the document does not name is checked as its default, the
// form of errors.
func (d *Document) CheckResponse(method, path string, status int, body []byte) error {
	operation := d.operation(method, path)
	if operation == nil {
		return fmt.Errorf("%s %s is not in the document", method, path)
	}
	schema := child(operation, "responses", strconv.Itoa(status), "content", "application/json", "schema")
	if schema == nil {
		schema = child(operation, "responses", "default", "content", "application/json", "schema")
	}
	if schema == nil {
		return fmt.Errorf("%s %s has no schema for status %d", method, path, status)
	}
	return d.checkJSON(schema, body, method+" "+path)
}

func child(node map[string]any, names ...string) map[string]any {
	for _, name := range names {
		node, _ = node[name].(map[string]any)
	}
	return node
}

// Missing lists the members of a schema that an object lacks: servers send every member, absent values as null or
// empty.
func (d *Document) Missing(schema string, object map[string]any) []string {
	var missing []string
	for name := range d.at("components", "schemas", schema, "properties") {
		if _, ok := object[name]; !ok {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return missing
}
