package check

import (
	"strings"

	"ledgerindexer/internal/config"
)

// pastable reports whether a text can be pasted into a terminal: it has no control characters.
func pastable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f && r <= 0x9f })
}

// partiesFlag returns a --parties flag to paste, without parties that a list can't contain; empty if none remains.
func partiesFlag(parties []string) string {
	var usable []string
	for _, party := range parties {
		if party != "" && strings.TrimSpace(party) == party && !strings.Contains(party, ",") && pastable(party) {
			usable = append(usable, party)
		}
	}
	if len(usable) == 0 {
		return ""
	}
	return "--parties=" + config.ShellWord(strings.Join(usable, ",")) // as one word: a party may begin with a dash
}
