package config

import (
	"regexp"
	"strconv"
	"strings"
)

// plainWord matches texts that need no quotes in a shell.
var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// ShellWord quotes a text so that a POSIX shell reads it as one word.
func ShellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Escape returns a text with all characters escaped except those for which keep returns true.
func Escape(text string, keep func(rune) bool) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\ufffd") {
		if keep(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRuneToASCII(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}
