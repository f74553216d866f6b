package check

import "strings"

// pastable says whether a text can be pasted into a terminal: it has no control characters.
func pastable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f && r <= 0x9f })
}

// ShellWord quotes a text for a POSIX shell.
func ShellWord(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_=+:,./@%", r)
	}
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !plain(r) }) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// partiesFlag is a --parties to paste. Parties that can't stand in a list are left out; empty: there are none.
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
	return "--parties=" + ShellWord(strings.Join(usable, ",")) // as one word: a party may begin with a dash
}
