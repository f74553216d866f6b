// Package bench measures the real programs against what PostgreSQL can take at all, and writes down what came out.
//
// A server of its own, in a process of its own, answers with updates that were encoded beforehand: it shares the machine
// with the indexer and PostgreSQL, and must cost them next to nothing. The limit is what psql makes of the same rows with
// COPY, in alternation with our runs. A run that does not leave exactly the rows that were served is an error.
package bench
