package rows

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
)

// LookupRow converts an outcome into its row.
func LookupRow(r *names.References, lookup *ledger.Lookup) dbsqlc.LookupSaveParams {
	row := dbsqlc.LookupSaveParams{
		ContractID: lookup.ContractID, Status: string(lookup.Status),
		LookedUpAt: Timestamp(ledger.Time{Time: lookup.At, Valid: true}),
	}
	if lookup.Reason != "" {
		row.Reason = &lookup.Reason
	}
	if c := lookup.Contract; c != nil {
		row.TemplateRef, row.CreatedAt = r.Template(c.TemplateID, c.PackageName, nil), Timestamp(c.CreatedAt)
		var exact Exact
		exact.Time("createdAt", c.CreatedAt)
		row.Payload = exact.Value("payload", c.Argument)
		row.ContractKey = exact.Value("contract_key", c.ContractKey)
		row.Exact = exact.Column()
		row.ContractKeyHash = c.ContractKeyHash
		row.Signatories, row.Observers, row.WitnessParties = c.Signatories, c.Observers, c.WitnessParties
	}
	return row
}

// Storable returns an outcome as the database can hold it.
func Storable(lookup ledger.Lookup) ledger.Lookup {
	if lookup.Contract != nil {
		if err := checkContract(lookup.Contract); err != nil {
			lookup.Status, lookup.Contract, lookup.Reason = ledger.LookupUnusable, nil, err.Error()
		}
	}
	lookup.Reason = StorableText(lookup.Reason)
	return lookup
}

// checkContract refuses what PostgreSQL can't hold, other than JSON.
func checkContract(c *ledger.Contract) error {
	if _, err := ledger.ParseTemplateID(c.TemplateID); err != nil {
		return fmt.Errorf("its template id is %w", err)
	}
	for _, field := range []struct {
		name  string
		texts []string
	}{
		{"template id", []string{c.TemplateID, c.PackageName}},
		{"signatories", c.Signatories}, {"observers", c.Observers}, {"witness parties", c.WitnessParties},
	} {
		if err := CheckTexts(field.texts...); err != nil {
			return fmt.Errorf("%s: %w", field.name, err)
		}
	}
	return nil
}

// CheckTexts refuses texts that PostgreSQL can't hold.
func CheckTexts(texts ...string) error {
	for _, text := range texts {
		if !TextHolds(text) {
			return fmt.Errorf("a text that PostgreSQL can't hold: %q", text)
		}
	}
	return nil
}

// StorableText returns a text for people, as the database can hold it.
func StorableText(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?")
}

// TextHolds reports whether the database can hold a text at all.
func TextHolds(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }
