package status

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	_ "ledgerindexer/internal/tools/hermetic"
)

func TestPublic(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "",
		"dial tcp 127.0.0.1:7575: connect: connection refused": "dial tcp 127.0.0.1:7575: connect: connection refused",
		"no such template #splice-amulet:Splice.Amulet:Amulet": "no such template #splice-amulet:Splice.Amulet:Amulet",
		"lacks CanReadAs for party a::12, b::34 (and 2 more)":  "lacks CanReadAs for party …, … (and 2 more)",
		`parties=["x y::12" 'z::1']`:                           `parties=["…" '…']`,
		"contract 00deadbeefdeadbeefdeadbeef is gone":          "contract … is gone",
		"offset 123456789012345678 and port 55555":             "offset 123456789012345678 and port 55555",
		"DSO::1220ab:": "…",
	} {
		require.Equal(t, want, Public(text))
	}
}

func TestWhatToDo(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"it failed":                                {"it failed", ""},
		"it failed; what to do: mend it":           {"it failed", "mend it"},
		"waiting: absent. What to do: give a Scan": {"waiting: absent", "give a Scan"},
	} {
		what, do := WhatToDo(text)
		require.Equal(t, want, [2]string{what, do})
	}
}

// Whatever text a report has names a party here. What is published of it says so only of what can't be one: where the
// database is, which process leads, and our own words.
func TestAPublicReportNamesNoParty(t *testing.T) {
	t.Parallel()
	const named = "alice::1220"
	var r Report
	name(reflect.ValueOf(&r).Elem(), named)
	before, err := json.Marshal(r)
	require.NoError(t, err)
	public := r.Public()
	after, err := json.Marshal(r)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after), "the report itself stays")
	require.NotContains(t, strings.Join(public.Streams[0].HostingChanged(), ""), named)
	for _, ours := range []*string{
		&public.Database, &public.PostgreSQL, &public.Leader, &public.Transactions.Leader, &public.Streams[0].Stream,
		(*string)(&public.Streams[0].Hosting[0].Kind), &public.Tasks[0].Name,
		&public.UnderWay[0].Stream, &public.UnderWay[0].Unit,
	} {
		require.Equal(t, named, *ours)
		*ours = ""
	}
	published, err := json.Marshal(public)
	require.NoError(t, err)
	require.NotContains(t, string(published), named)
}

// name puts a text into every text of a value.
func name(v reflect.Value, text string) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]() || !v.CanSet():
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		name(v.Elem(), text)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		name(v.Index(0), text)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			name(v.Field(i), text)
		}
	}
}
