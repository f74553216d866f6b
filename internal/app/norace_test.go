//go:build !race

package app

// raceFlags build a program that looks for races where its test does.
var raceFlags []string
