//go:build !race

package app

// raceFlags build a program that looks for races where its test does.
var raceFlags []string

// mutationCount is how many mutations are made, over all databases.
const mutationCount = 1000
