package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/participant"
	"ledgerindexer/store"
)

// lookupPatience is how long the look-up commands wait for the ledger. Servers give up on a request after 20 s.
const lookupPatience = 30 * time.Second

// openRead opens a database whose schema is that of this program.
func openRead(ctx context.Context, url string, logger *slog.Logger) (*store.Store, error) {
	db, err := store.Open(store.Config{URL: url, Logger: logger})
	if err != nil {
		return nil, err
	}
	if err := db.CheckSchema(ctx); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// openLedger makes a client that reads in a scope.
func openLedger(l config.Ledger, scope ledger.Scope, logger *slog.Logger) (*participant.Client, error) {
	client, err := participant.New(participant.Config{URL: l.LedgerURL, Access: l.LedgerAccess.Domain("ledger"), Logger: logger}, scope)
	if err != nil {
		return nil, &config.UsageError{Err: err}
	}
	return client, nil
}

// sameLedger refuses a participant that the database does not belong to. One that does not tell who it is passes.
func sameLedger(ctx context.Context, db *store.Store, client *participant.Client, scope ledger.Scope) error {
	participantID, _, err := client.Peek(ctx)
	if err != nil && !errors.Is(err, ledger.ErrNotOffered) {
		return err
	}
	return db.CheckIdentity(ctx, participantID, scope)
}

// errorText is what a report says of a failure: with what to do, where it is known.
func errorText(err error) string {
	var problem *ledger.Problem
	if errors.As(err, &problem) {
		return fmt.Sprintf("%v; what to do: %s", err, problem.Do)
	}
	return err.Error()
}

// briefRunes is the most that is printed of one text of the ledger among others; real ids are shorter.
const briefRunes = 300

// brief shortens a text for people. JSON has it in full.
func brief(text string) string {
	n := 0
	for i := range text {
		if n++; n > briefRunes {
			return fmt.Sprintf("%s… (%d bytes)", text[:i], len(text))
		}
	}
	return text
}

// writeReport prints a value as JSON, in which nothing can do something to a terminal.
func writeReport(out io.Writer, value any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	_, err := out.Write(printableJSON(b.Bytes()))
	return err
}

// indented is a JSON value over several lines, in which nothing can do something to a terminal.
func indented(value ledger.JSON) string {
	var b bytes.Buffer
	if err := json.Indent(&b, value, "", "  "); err != nil { // nested too deep
		return printable(string(value))
	}
	return string(printableJSON(b.Bytes()))
}

// printableJSON escapes what is not printable, as JSON does. Such characters can only stand in its strings.
func printableJSON(text []byte) []byte {
	escaped := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == '\n' || unicode.IsPrint(r):
			escaped = append(escaped, text[:size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, high, low)
		default:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		}
		text = text[size:]
	}
	return escaped
}
