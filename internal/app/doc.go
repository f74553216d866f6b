// Package app puts the parts together: the daemon and the backfill as functions of their configuration. The commands
// and the demo call it; it holds no logic of its own beyond who leads, who waits and who stops.
package app
