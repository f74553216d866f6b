package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Completion completes commands, flags and their values in shells: a script, which the shell loads, asks the program
// for words.
type Completion struct {
	Bash  completionScript `cmd:"" help:"Print the script for bash."`
	Zsh   completionScript `cmd:"" help:"Print the script for zsh."`
	Fish  completionScript `cmd:"" help:"Print the script for fish."`
	Words completionWords  `cmd:"" hidden:""`
}

type completionScript struct{}

// The scripts pass the words up to the one under the cursor, and get lines of word, tab and help. Without any the shell
// completes files.
var completionScripts = map[string]string{
	"bash": `_PROGRAM() {
	local IFS=$'\n'
	COMPREPLY=($("$1" completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o default -F _PROGRAM PROGRAM
`,
	"zsh": `#compdef PROGRAM
_PROGRAM() {
	local -a found
	found=("${(@f)$("${words[1]}" completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ -n $found ]]; then
		found=("${(@)found/$'\t'/:}")
		_describe PROGRAM found
	else
		_files
	fi
}
compdef _PROGRAM PROGRAM
`,
	"fish": `function __PROGRAM_words
	set -l words (commandline -opc) (commandline -ct)
	set -l found ($words[1] completion words -- $words[2..-1] 2>/dev/null)
	test -n "$found"; and printf "%s\n" $found; or __fish_complete_path (commandline -ct)
end
complete -c PROGRAM -f -a '(__PROGRAM_words)'
`,
}

func (completionScript) Run(parsed *kong.Context, out Output) error {
	_, err := fmt.Fprint(out, strings.ReplaceAll(completionScripts[parsed.Selected().Name], "PROGRAM", parsed.Model.Name))
	return err
}

type completionWords struct {
	Words []string `arg:"" optional:""`
}

func (c completionWords) Run(parsed *kong.Context, out Output) error {
	for _, word := range complete(parsed.Model.Node, c.Words) {
		fmt.Fprintln(out, word)
	}
	return nil
}

// complete returns what the last word may become, each with a tab and its help if it has one.
func complete(node *kong.Node, words []string) (found []string) {
	last := ""
	if len(words) > 0 {
		last = words[len(words)-1]
		words = slices.DeleteFunc(slices.Clone(words[:len(words)-1]), func(word string) bool { return word == "=" })
	}
	if last == "=" { // which bash makes a word of its own
		last = ""
	}
	offer := func(word, help string) {
		if strings.HasPrefix(word, last) {
			help, _, _ = strings.Cut(help, "\n")
			found = append(found, strings.TrimSuffix(word+"\t"+help, "\t"))
		}
	}
	var valueOf *kong.Flag // the flag whose value comes next
	positionals := 0
	for _, word := range words {
		switch flag := flagOf(node, word); {
		case valueOf != nil:
			valueOf = nil
		case flag != nil && !flag.IsBool() && !strings.Contains(word, "="):
			valueOf = flag
		case strings.HasPrefix(word, "-"):
		default:
			if child := childOf(node, word); child != nil {
				node, positionals = child, 0
			} else {
				positionals++
			}
		}
	}
	name, _, assigned := strings.Cut(last, "=")
	switch flag := flagOf(node, name); {
	case valueOf != nil:
		for _, value := range enumOf(valueOf.Value) {
			offer(value, "")
		}
	case assigned && flag != nil:
		for _, value := range enumOf(flag.Value) {
			offer(name+"="+value, "")
		}
	case strings.HasPrefix(last, "-"):
		for _, flag := range flagsOf(node) {
			offer("--"+flag.Name, flag.Help)
			if negated := negationOf(flag); negated != "" {
				offer(negated, flag.Help)
			}
		}
	default:
		for _, child := range node.Children {
			if !child.Hidden {
				offer(child.Name, child.Help)
			}
		}
		if positionals < len(node.Positional) {
			for _, value := range enumOf(node.Positional[positionals]) {
				offer(value, "")
			}
		}
	}
	return found
}

// flagsOf returns the flags that a command takes, with those of the commands above it and of its default.
func flagsOf(node *kong.Node) (flags []*kong.Flag) {
	if node.DefaultCmd != nil {
		flags = slices.Clone(node.DefaultCmd.Flags)
	}
	for ; node != nil; node = node.Parent {
		flags = append(flags, node.Flags...)
	}
	return slices.DeleteFunc(flags, func(flag *kong.Flag) bool { return flag.Hidden })
}

// flagOf returns the flag that a word is, with or without its value; nil: none.
func flagOf(node *kong.Node, word string) *kong.Flag {
	name, _, _ := strings.Cut(word, "=")
	for _, flag := range flagsOf(node) {
		if name == "--"+flag.Name {
			return flag
		}
	}
	return nil
}

// negationOf returns the word that sets a flag to false; empty: there is none.
func negationOf(flag *kong.Flag) string {
	if flag.Tag.Negatable == "" {
		return ""
	}
	return "--no-" + flag.Name
}

func childOf(node *kong.Node, word string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == word {
			return child
		}
	}
	return nil
}

func enumOf(value *kong.Value) []string {
	if value.Enum == "" {
		return nil
	}
	return value.EnumSlice()
}
