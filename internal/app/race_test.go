//go:build race

package app

// raceFlags build a program that looks for races where its test does.
var raceFlags = []string{"-race"}

// mutationCount is fewer than without the race detector, which takes five times as long for each.
const mutationCount = 250
