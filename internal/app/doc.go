// Package app puts the parts together: the daemon and the backfill as functions of their configuration. The commands
// and the demo call it. Its own logic is who leads, waits and stops, and what a command does step by step.
package app
