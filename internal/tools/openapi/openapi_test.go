package openapi

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	_ "ledgerindexer/internal/tools/hermetic"
)

const document = `
paths:
  /things:
    post:
      parameters:
      - {name: limit, in: query, schema: {type: integer}}
      requestBody:
        content:
          application/json:
            schema: {$ref: '#/components/schemas/Question'}
      responses:
        "200":
          content:
            application/json:
              schema: {type: array, minItems: 1, items: {$ref: '#/components/schemas/Thing'}}
        default:
          content:
            application/json:
              schema: {type: object, required: [code], properties: {code: {type: string}}}
    get:
      responses:
        "200": {description: nothing}
components:
  schemas:
    Question:
      type: object
      required: [name]
      properties:
        name: {type: string, enum: [a, b]}
        count: {type: integer, format: int32}
        deep: {$ref: '#/components/schemas/None'}
        by: {type: object, additionalProperties: {type: boolean}}
    Thing:
      type: object
      properties:
        any: {}
        pet:
          oneOf: [{$ref: '#/components/schemas/Cat'}, {$ref: '#/components/schemas/Dog'}]
          discriminator: {propertyName: type, mapping: {cat: '#/components/schemas/Cat', dog: '#/components/schemas/Dog'}}
        animal: {oneOf: [{$ref: '#/components/schemas/Cat'}, {$ref: '#/components/schemas/Dog'}]}
        kind:
          oneOf:
          - {type: object, required: [Empty], properties: {Empty: {type: object}}}
          - {type: object, required: [Full], properties: {Full: {type: number}}}
    Animal: {type: object, required: [type], properties: {type: {type: string}, value: {type: object}}}
    Cat: {allOf: [{$ref: '#/components/schemas/Animal'}, {type: object, required: [lives], properties: {lives: {type: integer}}}]}
    Dog: {allOf: [{$ref: '#/components/schemas/Animal'}, {type: object, properties: {tricks: {type: integer}}}]}
`

func TestRequests(t *testing.T) {
	t.Parallel()
	d, err := parse([]byte(document))
	require.NoError(t, err)
	for _, row := range []struct{ method, query, body, want string }{
		{"POST", "", `{"name":"a"}`, ""},
		{"POST", "limit=3", `{"name":"b","count":5,"by":{"x":true,"y":false}}`, ""},
		{"POST", "", `{"name":"a","count":null}`, ""},
		{"POST", "limit=x", `{"name":"a"}`, "no whole number"},
		{"POST", "limit=1&limit=2", `{"name":"a"}`, "repeated query parameter limit"},
		{"POST", "most=3", `{"name":"a"}`, "unknown or repeated query parameter most"},
		{"POST", "", `{}`, "there is no name"},
		{"POST", "", `{"name":null}`, "is not one of"},
		{"POST", "", `{"name":"c"}`, "is not one of"},
		{"POST", "", `{"name":"a","Count":1}`, "unknown key Count"},
		{"POST", "", `{"name":"a","count":1.5}`, "is not integer"},
		{"POST", "", `{"name":"a","count":3000000000}`, "is not integer"},
		{"POST", "", `{"name":"a","by":{"x":1}}`, ".by.x: 1 (json.Number) is not boolean"},
		{"POST", "", `{"name":"a","by":[]}`, "is not an object"},
		{"POST", "", `{"name":"a","deep":1}`, "the document has no #/components/schemas/None"},
		{"POST", "", `{"name":"a"} {}`, "something follows"},
		{"POST", "", `{"name"`, "unexpected EOF"},
		{"GET", "", `{}`, "takes no body"},
		{"PUT", "", `{}`, "is not in the document"},
	} {
		query, err := url.ParseQuery(row.query)
		require.NoError(t, err)
		err = d.CheckRequest(row.method, "/things", query, []byte(row.body))
		if row.want == "" {
			require.NoError(t, err, row.body)
		} else {
			require.ErrorContains(t, err, row.want, row.body)
		}
	}
	require.NoError(t, d.CheckRequest("GET", "/things", nil, nil))
	require.True(t, d.Has("GET", "/things"))
	require.False(t, d.Has("GET", "/thing"))
}

func TestResponses(t *testing.T) {
	t.Parallel()
	d, err := parse([]byte(document))
	require.NoError(t, err)
	for _, row := range []struct {
		status     int
		body, want string
	}{
		{200, `[{"any":[{}],"kind":{"Empty":{}}},{}]`, ""},
		{200, `[{"kind":{"Full":1.5}}]`, ""},
		{200, `[{"pet":{"type":"cat","lives":9},"animal":{"type":"x","tricks":1,"value":"any"}},{"animal":{"type":"x","lives":1}}]`, ""},
		{200, `[{"pet":{"type":"dog","lives":9}}]`, "unknown key lives"},
		{200, `[{"pet":{"type":"cow"}}]`, `type "cow" names no variant`},
		{200, `[{"animal":{"type":"x","tricks":1,"lives":1}}]`, "0 of 2 variants fit"},
		{200, `[{"animal":{"tricks":1}}]`, "there is no type"},
		{200, `[]`, "0 items are too few"},
		{200, `{}`, "is not an array"},
		{200, `[{"kind":{}}]`, "is not one variant"},
		{200, `[{"kind":{"Empty":{},"Full":1}}]`, "is not one variant"},
		{200, `[{"kind":{"Half":1}}]`, "there is no variant Half"},
		{200, `[{"kind":{"Full":"1"}}]`, "is not number"},
		{404, `{"code":"NOT_FOUND"}`, ""},
		{404, `{"cause":"?"}`, "there is no code"},
	} {
		err := d.CheckResponse("POST", "/things", row.status, []byte(row.body))
		if row.want == "" {
			require.NoError(t, err, row.body)
		} else {
			require.ErrorContains(t, err, row.want, row.body)
		}
	}
	require.ErrorContains(t, d.CheckResponse("GET", "/things", 200, []byte(`{}`)), "has no schema")
	require.ErrorContains(t, d.CheckResponse("PUT", "/things", 200, []byte(`{}`)), "is not in the document")
	require.Equal(t, []string{"by", "count", "deep"}, d.Missing("Question", map[string]any{"name": nil, "more": 1}))
}

func TestDocumentsAreRead(t *testing.T) {
	t.Parallel()
	require.True(t, Scan(t, "0.6").Has("POST", "/v0/transactions"))
	require.False(t, Scan(t, "0.7").Has("POST", "/v0/transactions"), "it is gone")
	for _, version := range []string{"3.4", "3.5", "3.6"} {
		require.True(t, Ledger(t, version).Has("POST", "/v2/updates"))
	}
}
