package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// unreadable is the value of members, of the record of an unknown kind, that are not what they should be.
const unreadable = "soon"

// storedRow is a row as to_jsonb shows it. Columns that are NULL are left out.
type storedRow map[string]any

// historyRebuild makes the service's JSON out of rows that analysts can read. What may differ, and nothing else: a
// member that is null may be absent, and the text form of a time, not the time itself to the nanosecond.
type historyRebuild struct {
	rows  map[string]map[string][]storedRow // by relation and seq
	exact map[string]string                 // JSON by seq and field
	wrong []string                          // where rows contradict each other
}

func decodeJSON(text string) any {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return "not JSON: " + text
	}
	return value
}

func (d *testDB) readHistory() *historyRebuild {
	d.T.Helper()
	x := &historyRebuild{rows: map[string]map[string][]storedRow{}, exact: map[string]string{}}
	for relation, order := range map[string]string{
		"transactions": "seq", "transfers": "seq", "transfer_receivers": "seq, ordinal", "balance_changes": "seq, ordinal", "mints": "seq",
		"taps": "seq", "aborted_transfer_instructions": "seq", "unknown_transactions": "seq",
	} {
		x.rows[relation] = map[string][]storedRow{}
		for _, text := range d.Rows("SELECT jsonb_strip_nulls(to_jsonb(v))::text FROM ledger." + relation + " v ORDER BY " + order) {
			// Of columns that hold JSON no null is stripped: the members of those that do are compared without nulls.
			row := storedRow(decodeJSON(text).(map[string]any))
			seq := fmt.Sprint(row["seq"])
			x.rows[relation][seq] = append(x.rows[relation][seq], row)
		}
	}
	for _, text := range d.Rows(`SELECT coalesce(seq, 0) || ' ' || field || ' ' || convert_from(exact, 'UTF8') FROM ledger.exact_payloads WHERE stream = 'transactions'`) {
		parts := strings.SplitN(text, " ", 3)
		x.exact[parts[0]+" "+parts[1]] = parts[2]
	}
	return x
}

// take is the exact value of a field, where there is one.
func (x *historyRebuild) take(seq, field string) (text string, ok bool) {
	text, ok = x.exact[seq+" "+field]
	delete(x.exact, seq+" "+field)
	return text, ok
}

// number is a decimal as the service sends it, in a text.
func number(value any) any {
	if value == nil {
		return nil
	}
	return fmt.Sprint(value)
}

// members are those that a column keeps, to which others are added.
func (x *historyRebuild) members(seq, field string, value any) map[string]any {
	if object, ok := value.(map[string]any); ok && object["$exact"] != nil {
		text, _ := x.take(seq, field)
		value = decodeJSON(text)
	}
	if object, ok := value.(map[string]any); ok {
		return object
	}
	return map[string]any{}
}

func (x *historyRebuild) time(seq string, value any) any {
	text, ok := x.take(seq, "date")
	if !ok {
		return value
	}
	exact := decodeJSON(text)
	if timeOf(exact, time.Microsecond) != timeOf(value, time.Microsecond) {
		x.wrong = append(x.wrong, fmt.Sprintf("seq %s, date: %v stands for %s", seq, value, text))
	}
	return exact
}

// one is the only row of a record in a relation. What it repeats of the record must be the same.
func (x *historyRebuild) one(relation string, record storedRow) storedRow {
	seq := fmt.Sprint(record["seq"])
	rows := x.rows[relation][seq]
	if len(rows) != 1 {
		x.wrong = append(x.wrong, fmt.Sprintf("seq %s: %d rows in %s", seq, len(rows), relation))
		return storedRow{}
	}
	x.repeats(relation, record, rows[0])
	return rows[0]
}

func (x *historyRebuild) repeats(relation string, record, row storedRow) {
	for _, column := range []string{"event_id", "date", "round"} {
		_, has := map[string]bool{"aborted_transfer_instructions round": true, "unknown_transactions round": true,
			"unknown_transactions date": true, "transfer_receivers date": true, "transfer_receivers round": true}[relation+" "+column]
		if !has && row[column] != record[column] {
			x.wrong = append(x.wrong, fmt.Sprintf("seq %v: %s of %s is %v", record["seq"], column, relation, row[column]))
		}
	}
}

// list are the members of a list of as many rows as the transfer says; nil where it was left out.
func (x *historyRebuild) list(relation, path string, count any, record storedRow, member func(m map[string]any, field string, row storedRow)) any {
	seq := fmt.Sprint(record["seq"])
	rows := x.rows[relation][seq]
	if count == nil && len(rows) == 0 {
		return nil
	}
	if fmt.Sprint(count) != fmt.Sprint(len(rows)) {
		x.wrong = append(x.wrong, fmt.Sprintf("seq %s: %v rows expected in %s", seq, count, relation))
	}
	list := []any{}
	for i, row := range rows {
		x.repeats(relation, record, row)
		field := fmt.Sprintf("%s[%v].", path, row["ordinal"])
		if fmt.Sprint(row["ordinal"]) != fmt.Sprint(i) {
			x.wrong = append(x.wrong, fmt.Sprintf("seq %s: no ordinal %d in %s", seq, i, relation))
		}
		m := x.members(seq, field+"extra", row["extra"])
		m["party"] = row["party"]
		member(m, field, row)
		list = append(list, m)
	}
	return list
}

func (x *historyRebuild) record(t storedRow) map[string]any {
	seq := fmt.Sprint(t["seq"])
	if t["kind"] == "unknown" {
		m := x.members(seq, "raw", x.one("unknown_transactions", t)["raw"])
		// What could be read of it stands in columns too.
		for member, value := range map[string]any{"transaction_type": t["transaction_type"], "event_id": t["event_id"], "domain_id": t["domain_id"],
			"offset": t["offset_text"], "round": t["round"], "date": x.time(seq, t["date"])} {
			served := m[member]
			if member == "date" {
				value, served = timeOf(value, time.Nanosecond), timeOf(served, time.Nanosecond)
			}
			if value != served && served != unreadable {
				x.wrong = append(x.wrong, fmt.Sprintf("seq %s: %s is %v", seq, member, value))
			}
		}
		return m
	}
	m := x.members(seq, "extra", t["extra"])
	m["transaction_type"], m["event_id"], m["domain_id"], m["offset"], m["round"] = t["transaction_type"], t["event_id"], t["domain_id"], t["offset_text"], t["round"]
	m["date"] = x.time(seq, t["date"])
	word := fmt.Sprint(t["unit_word"])
	owned := func(relation, part string) {
		row := x.one(relation, t)
		o := x.members(seq, part+".extra", row["extra"])
		o[word+"_owner"], o[word+"_amount"] = row["owner"], number(row["amount"])
		m[part] = o
	}
	switch t["kind"] {
	case "transfer":
		m["transfer"] = x.transfer(t, word)
	case "mint":
		owned("mints", "mint")
	case "tap":
		owned("taps", "tap")
	case "abort_transfer_instruction":
		row := x.one("aborted_transfer_instructions", t)
		a := x.members(seq, "abort_transfer_instruction.extra", row["extra"])
		a["transfer_instruction_cid"], a["abort_kind"] = row["instruction_cid"], row["abort_kind"]
		m["abort_transfer_instruction"] = a
	}
	return m
}

func (x *historyRebuild) transfer(t storedRow, word string) map[string]any {
	seq, row := fmt.Sprint(t["seq"]), x.one("transfers", t)
	sender := x.members(seq, "transfer.sender.extra", row["sender_extra"])
	sender["party"] = row["sender"]
	for _, column := range strings.Fields(`sender_change_fee sender_change_amount sender_fee holding_fees input_amount input_app_reward_amount
		input_validator_reward_amount input_sv_reward_amount input_validator_faucet_amount`) {
		member := column
		if column == "input_amount" {
			member = "input_" + word + "_amount"
		}
		sender[member] = number(row[column])
	}
	m := x.members(seq, "transfer.extra", row["extra"])
	m["sender"], m["description"], m["transfer_kind"] = sender, row["description"], row["transfer_kind"]
	if text, ok := x.take(seq, "transfer.description"); ok {
		m["description"] = decodeJSON(text)
		if strings.ReplaceAll(fmt.Sprint(m["description"]), "\x00", "\uFFFD") != row["description"] {
			x.wrong = append(x.wrong, fmt.Sprintf("seq %s: description %q", seq, row["description"]))
		}
	}
	m["transferInstructionReceiver"], m["transferInstructionCid"] = row["instruction_receiver"], row["instruction_cid"]
	m["transferInstructionAmount"] = number(row["instruction_amount"])
	m["receivers"] = x.list("transfer_receivers", "transfer.receivers", row["receivers"], t, func(m map[string]any, field string, r storedRow) {
		m["amount"], m["receiver_fee"] = number(r["amount"]), number(r["receiver_fee"])
	})
	m["balance_changes"] = x.list("balance_changes", "transfer.balance_changes", row["balance_changes"], t, func(m map[string]any, field string, r storedRow) {
		for _, column := range []string{"change_to_initial_amount_as_of_round_zero", "change_to_holding_fees_rate"} {
			m[column] = number(r[column])
		}
	})
	return m
}

// timeOf is a time in one form.
func timeOf(value any, precision time.Duration) string {
	t, err := time.Parse(time.RFC3339Nano, fmt.Sprint(value))
	if err != nil {
		return "no time"
	}
	return t.UTC().Truncate(precision).Format(time.RFC3339Nano)
}

// plain leaves out members that are null, and brings times and numbers into one form.
func plain(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if member == nil {
				delete(v, name)
			} else if v[name] = plain(member); name == "date" {
				v[name] = timeOf(member, time.Nanosecond)
			}
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case string:
		if d, err := ledger.ParseDecimal(v); err == nil {
			return string(d.Plain())
		}
	}
	return value
}

// rebuild tells where the rows differ from the records that were served.
func (d *testDB) rebuild(served string) []string {
	d.T.Helper()
	x := d.readHistory()
	var different []string
	want := plain(decodeJSON(served)).(map[string]any)["transactions"].([]any)
	if len(want) != len(x.rows["transactions"]) {
		different = append(different, fmt.Sprintf("%d records", len(x.rows["transactions"])))
	}
	for i := range want {
		rows := x.rows["transactions"][fmt.Sprint(i+1)]
		if len(rows) != 1 {
			different = append(different, fmt.Sprintf("seq %d: %d records", i+1, len(rows)))
			continue
		}
		got, _ := json.Marshal(plain(x.record(rows[0])))
		wanted, _ := json.Marshal(want[i])
		if !bytes.Equal(got, wanted) {
			different = append(different, fmt.Sprintf("seq %d:\n%s\n%s", i+1, wanted, got))
		}
	}
	for key := range x.exact {
		different = append(different, "nothing needs the exact value of "+key)
	}
	return append(different, x.wrong...)
}

// columnsToSpoil lists the columns of the history outside of primary keys, with a statement that spoils each.
const columnsToSpoil = `
SELECT c.table_name || '.' || c.column_name, format('UPDATE indexer.%I SET %I = %s WHERE %2$I IS NOT NULL', c.table_name, c.column_name,
	CASE WHEN c.is_nullable = 'YES' THEN 'NULL'
	WHEN c.data_type = 'boolean' THEN format('NOT %I', c.column_name)
	WHEN c.data_type = 'text' THEN format('%I || ''?''', c.column_name)
	WHEN c.data_type = 'timestamp with time zone' THEN format('%I + interval ''1 hour''', c.column_name)
	WHEN c.data_type IN ('jsonb', 'bytea') THEN '''{}'''
	ELSE format('%I + 1000', c.column_name) END)
FROM information_schema.columns c
WHERE c.table_schema = 'indexer' AND c.table_name = ANY ($1)
AND NOT EXISTS (SELECT FROM information_schema.key_column_usage k JOIN information_schema.table_constraints p USING (constraint_schema, constraint_name)
	WHERE p.constraint_type = 'PRIMARY KEY' AND k.table_schema = c.table_schema AND k.table_name = c.table_name AND k.column_name = c.column_name)
ORDER BY 1`

// Rule: rows are complete. From the rows of a record the service's JSON can be rebuilt key by key; and whichever column
// is spoilt, that is noticed.
func TestHistoryIsRebuiltFromItsRows(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	h := newHistory(t)
	page, err := ledger.DecodeTransactions([]byte(storetest.TransactionsPage))
	require.NoError(t, err)
	h.moved(h.l.AppendTransactions(t.Context(), h.at, nil, page[:4]))
	h.moved(h.l.AppendTransactions(t.Context(), h.at, nil, page[4:]))
	require.Empty(t, h.rebuild(storetest.TransactionsPage))

	unneeded := []string{"transactions.fingerprint", "transactions.rules", "transactions.ledger_offset"} // are not served
	tables := historyTables[:8]
	columns, err := h.Conn.Query(t.Context(), columnsToSpoil, tables)
	require.NoError(t, err)
	statements := map[string]string{}
	for columns.Next() {
		var name, statement string
		require.NoError(t, columns.Scan(&name, &statement))
		statements[name] = statement
	}
	require.NoError(t, columns.Err())
	require.Greater(t, len(statements), 50)
	for name, statement := range statements {
		h.Exec("BEGIN")
		h.Exec(statement)
		require.Equal(t, slices.Contains(unneeded, name), len(h.rebuild(storetest.TransactionsPage)) == 0, name)
		h.Exec("ROLLBACK")
	}
	for i, record := range page {
		require.Equal(t, fmt.Sprint(record.Fingerprint()), h.Row("SELECT fingerprint FROM indexer.transactions WHERE seq = $1", i+1))
	}
}

// Amounts have exactly as many digits as were sent.
func TestHistoryNumbersAreExact(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	h := newHistory(t)
	nines := strings.Repeat("9", 60)
	cases := []struct{ sent, shown string }{
		{"10.0000000000", ""}, {"0.0000000000", ""}, {"0", ""}, {"0.1", ""}, {"1", ""}, {"10", ""}, {"10000", ""}, {"120000.000", ""},
		{"-1.50", ""}, {"-0.0001", ""}, {"0.00001", ""}, {"9999.9999", ""}, {"10000.00010000", ""}, {"-" + nines, ""}, {nines + "." + nines, ""},
		{"0." + strings.Repeat("0", 59) + "1", ""}, {"-" + strings.Repeat("9", 300) + "." + strings.Repeat("9", 300), ""},
		{"1" + strings.Repeat("0", 299) + "." + strings.Repeat("0", 300), ""},
		{"-0", "0"}, {"-0.00", "0.00"}, {"00", "0"}, {"007.50", "7.50"}, {"-007", "-7"}, {"00.5", "0.5"}, {strings.Repeat("0", 200_000) + "1", "1"},
	}
	var records []ledger.Record
	for i, c := range cases {
		number, err := ledger.ParseDecimal(c.sent)
		require.NoError(t, err)
		r := storetest.Tap(fmt.Sprint(i))
		r.Tap.Amount = number
		records = append(records, r)
	}
	h.moved(h.l.AppendTransactions(t.Context(), h.at, nil, records))
	for i, c := range cases {
		want := c.shown
		if want == "" {
			want = c.sent
		}
		require.True(t, want == h.Row("SELECT amount::text FROM ledger.taps WHERE seq = $1", i+1), "%.60s", c.sent)
	}
	require.Equal(t, "0", h.Row("SELECT count(*) FROM ledger.exact_payloads"), "how a number is written is no fact")
}
