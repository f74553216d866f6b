package main

import (
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

// The flags of run, which are many, stand in groups with a title.
func TestFlagsStandInGroups(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&runCommand{})
	require.NoError(t, err)
	groups := map[string]int{}
	for _, flag := range parser.Model.Flags {
		if flag.Name == "help" {
			continue
		}
		require.NotNil(t, flag.Group, "--"+flag.Name)
		groups[flag.Group.Title]++
	}
	require.Greater(t, len(groups), 5)
	for title, flags := range groups {
		require.Regexp(t, `^[A-Z].*:$`, title)
		require.LessOrEqual(t, flags, 15, title)
	}
}
