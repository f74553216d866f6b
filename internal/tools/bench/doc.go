// Package bench measures the real programs against the limit of PostgreSQL itself, and writes a report.
//
// A separate process serves updates that were encoded beforehand: it shares the machine with the indexer and
// PostgreSQL, and must cost next to nothing. The limit is the rate of psql writing the same rows with COPY, in
// alternation with our runs. A run that does not leave exactly the served rows is an error.
package bench
