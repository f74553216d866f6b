package status

import (
	"testing"

	"github.com/stretchr/testify/require"
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
