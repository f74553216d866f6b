// Package session connects to the database: settings of sessions, the pair of schemas, reading in one snapshot, and
// what an error of the server means.
package session
