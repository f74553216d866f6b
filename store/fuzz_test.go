package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// FuzzURL looks for a database's URL whose password is printed.
func FuzzURL(f *testing.F) {
	const secret = "correct-horse-battery"
	for _, text := range []string{"", "postgres://joe:" + secret + "@localhost/x", "postgres://joe:" + secret + "@ser ver/x", "host=h password=" + secret,
		"postgres://joe:" + secret + "@h/x?sslmode=what", "postgres://joe@h/x?password=" + secret + "&port=x", "password='" + secret, "postgres://h:1,h:2/x",
		"postgres:///x?host=/tmp", "postgres://joe:" + secret + "@h/x?application_name=%00", "host=a\\ b dbname='c d'", "\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Open(Config{URL: text})
		if err != nil {
			// Only what is given as a password is one.
			if strings.Contains(text, ":"+secret+"@") {
				require.NotContains(t, err.Error(), secret)
			}
			return
		}
		defer s.Close()
		if s.conn.Password == secret && !strings.Contains(s.conn.Host+s.conn.Database, secret) {
			require.NotContains(t, s.Address(), secret)
		}
	})
}

// withPayload is a list of an update of one creation, and a list of an entry of a snapshot with the same one.
func withPayload(payload []byte) (updates, entries []byte) {
	created := fmt.Sprintf(`{"offset":1,"nodeId":0,"contractId":"c","templateId":"p:M:E","createArgument":%[1]s,"witnessParties":[],"signatories":[],"new":%[1]s,`+
		`"createdAt":"2025-10-14T11:29:20Z","packageName":"p"}`, payload)
	return fmt.Appendf(nil, `[{"update":{"Transaction":{"value":{"updateId":"u","effectiveAt":"2025-10-14T11:29:20Z","events":[{"CreatedEvent":%s}],`+
			`"offset":1,"synchronizerId":"s","recordTime":"2025-10-14T11:29:20Z"}}}}]`, created),
		fmt.Appendf(nil, `[{"contractEntry":{"JsActiveContract":{"createdEvent":%s,"synchronizerId":"s","reassignmentCounter":0,"new":%s}}}]`, created, payload)
}

// FuzzPlain: jsonb takes all of an update, and of an entry of a snapshot, that is called plain.
func FuzzPlain(f *testing.F) {
	for _, c := range jsonbCases {
		if len(c.value) < 1000 {
			f.Add([]byte(c.value))
		}
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		updates, entries := withPayload(value)
		if list, err := ledger.DecodeUpdateList(updates, 0); err == nil && list.Updates[0].Plain {
			for _, c := range list.Updates[0].Created {
				require.Empty(t, jsonbRefuses(c.Argument))
				require.Empty(t, jsonbRefuses(c.Extra))
			}
		}
		if list, err := ledger.DecodeContractEntries(entries); err == nil && list[0].Plain {
			require.Empty(t, jsonbRefuses(list[0].Active.Created.Argument))
			require.Empty(t, jsonbRefuses(list[0].Active.Created.Extra))
			require.Empty(t, jsonbRefuses(entryExtra(&list[0])))
		}
	})
}

// What jsonb refuses makes its update, or its entry, not plain, and what is usual does not.
func TestPlain(t *testing.T) {
	t.Parallel()
	plain := func(value string) (update, entry bool) {
		updates, entries := withPayload([]byte(value))
		list, err := ledger.DecodeUpdateList(updates, 0)
		require.NoError(t, err)
		contracts, err := ledger.DecodeContractEntries(entries)
		require.NoError(t, err)
		return list.Updates[0].Plain, contracts[0].Plain
	}
	for _, c := range jsonbCases {
		if len(c.value) < maxBytes && jsonbRefuses([]byte(c.value)) != "" {
			update, entry := plain(c.value)
			require.False(t, update, "%.100s", c.value)
			require.False(t, entry, "%.100s", c.value)
		}
	}
	for _, value := range []string{`{"a":"b \"c\" \\ \n","n":[1,-2.5,123456789012345678901234567890]}`, `1e5`, `"é \u0009 \u00e9"`} {
		update, entry := plain(value)
		require.True(t, update, value)
		require.True(t, entry, value)
	}
}

// FuzzExactValue: what a row's own column takes is JSON, and it is the value itself unless that is kept.
func FuzzExactValue(f *testing.F) {
	for _, c := range jsonbCases {
		if len(c.value) < 1000 {
			f.Add([]byte(c.value))
		}
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		if !json.Valid(value) {
			return
		}
		var kept exactKeeper
		column := kept.value(place{offset: 7}, "payload", value)
		require.True(t, json.Valid(column))
		if len(kept.rows) == 0 {
			require.Equal(t, value, column)
			return
		}
		require.Len(t, kept.rows, 1)
		require.Equal(t, value, kept.rows[0].Exact)
		require.True(t, bytes.HasPrefix(column, []byte(`{"$exact": "`)))
		require.Empty(t, jsonbRefuses(column))
	})
}

// FuzzIdentifier has PostgreSQL read a name that was quoted for a statement.
func FuzzIdentifier(f *testing.F) {
	for _, name := range []string{"plain", `a"b`, `""`, `"; DROP SCHEMA indexer; --`, "\\", "\u00e9", "a\nb", "a.b", "$1", "%s"} {
		f.Add(name)
	}
	db := newDatabase(f)
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" || len(name) > 63 || strings.Contains(name, "\x00") || strings.ToValidUTF8(name, "") != name {
			return // no name of a database
		}
		rows, err := db.conn.Query(t.Context(), "SELECT 1 AS "+pgx.Identifier{name}.Sanitize())
		require.NoError(t, err)
		defer rows.Close()
		require.Equal(t, name, rows.FieldDescriptions()[0].Name)
	})
}

// FuzzNextPartition makes partitions for offsets in any order: each holds its offset and none holds what another does.
func FuzzNextPartition(f *testing.F) {
	f.Add(int64(0), int64(1), int64(math.MaxInt64-1), int64(5_000_000))
	f.Add(int64(999_999), int64(1_000_000), int64(16_000_000), int64(64_000_000))
	f.Fuzz(func(t *testing.T, a, b, c, d int64) {
		var spans []span
		for i := range int64(80) {
			for _, seed := range []int64{a, b, c, d} {
				offset := (seed&math.MaxInt64)/(i+1) + i*i*i*1_000_003
				if offset < 0 || offset == math.MaxInt64 {
					continue
				}
				if _, missing := firstMissing(spans, []int64{offset}); !missing {
					continue
				}
				next := nextPartition(spans, offset)
				require.True(t, next.from <= offset && offset < next.to, "%v for %d", next, offset)
				spans = insertSpan(spans, next)
			}
		}
		for i := 1; i < len(spans); i++ {
			require.LessOrEqual(t, spans[i-1].to, spans[i].from)
		}
	})
}
