// Command codegen reads every row of every typed view into the structs that were generated for them, and compares each field with the
// column's JSON. It prints how many rows it read of each view. A test builds it in a module of its own.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

func main() {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, os.Args[1])
	if err == nil {
		err = readAll(ctx, conn)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// read is called for each view.
func read[T any](ctx context.Context, conn *pgx.Conn, view, query string) error {
	query += "\nORDER BY ledger_offset, node_id"
	rows, err := conn.Query(ctx, query)
	if err != nil {
		return err
	}
	structs, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
	if err != nil {
		return fmt.Errorf("%s: %w", view, err)
	}
	rows, err = conn.Query(ctx, "SELECT to_jsonb(v)::text FROM ("+query+") v")
	if err != nil {
		return err
	}
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	if len(structs) != len(texts) {
		return fmt.Errorf("%s: %d structs for %d rows", view, len(structs), len(texts))
	}
	for i, text := range texts {
		if err := compare(reflect.ValueOf(structs[i]), decode([]byte(text)).(map[string]any)); err != nil {
			return fmt.Errorf("%s, row %d: %w", view, i, err)
		}
	}
	fmt.Println(view, len(structs))
	return nil
}

func decode(text []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		panic(err)
	}
	return v
}

func compare(row reflect.Value, columns map[string]any) error {
	if row.NumField() != len(columns) {
		return fmt.Errorf("%d fields of %d columns", row.NumField(), len(columns))
	}
	for i := range row.NumField() {
		name := row.Type().Field(i).Tag.Get("db")
		want, ok := columns[name]
		if !ok {
			return fmt.Errorf("no column %q", name)
		}
		if got := row.Field(i).Interface(); !same(got, want) {
			return fmt.Errorf("column %q is %v, and its field %v", name, want, got)
		}
	}
	return nil
}

func same(field, column any) bool {
	if v := reflect.ValueOf(field); v.Kind() == reflect.Pointer {
		if v.IsNil() || column == nil {
			return v.IsNil() && column == nil
		}
		field = v.Elem().Interface()
	}
	switch v := field.(type) {
	case json.RawMessage:
		if v == nil || column == nil {
			return v == nil && column == nil
		}
		return reflect.DeepEqual(decode(v), column)
	case []string:
		if v == nil || column == nil {
			return v == nil && column == nil
		}
		var list []string
		for _, text := range column.([]any) {
			list = append(list, text.(string))
		}
		return slices.Equal(v, list)
	case time.Time:
		text := column.(string)
		if date, err := time.Parse(time.DateOnly, text); err == nil {
			return v.Equal(date)
		}
		moment, err := time.Parse(time.RFC3339Nano, text)
		return err == nil && v.Equal(moment)
	}
	return fmt.Sprint(field) == fmt.Sprint(column) // texts, and numbers with every digit
}
