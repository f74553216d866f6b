// Command indexer reads a ledger participant, and what a Scan service has of its network, into PostgreSQL, and keeps
// them current.
package main

import (
	"context"
	"io"
	"os"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/base/version"
	"ledgerindexer/internal/config"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

type grammar struct {
	Run         runCommand         `cmd:"" help:"Index the updates of a participant, those of a network, or both, until stopped."`
	Check       checkCommand       `cmd:"" help:"Check ledger, token, rights, Scan and database, and say what is wrong and what to do."`
	Status      statusCommand      `cmd:"" help:"Show the state of the database, and how far it is behind the ledger."`
	Contract    contractCommand    `cmd:"" help:"Show a contract in the ledger and in the database."`
	Update      updateCommand      `cmd:"" help:"Compare an update of the ledger with what is stored of it; exit code 1 if they differ."`
	Verify      verifyCommand      `cmd:"" help:"Compare the database with the ledger, or with the network, and repair it; exit code 1 if they differ, or nothing of what was chosen could be compared."`
	Ledger      ledgerCommand      `cmd:"" help:"Print what the ledger itself answers, one JSON document per line."`
	Packages    packagesCommand    `cmd:"" help:"List, vet or unvet packages on the participant."`
	Views       viewsCommand       `cmd:"" help:"Make, refresh, list or drop views with typed columns, for analysts."`
	Index       indexCommand       `cmd:"" help:"Make, list or drop indexes of fields of payloads, for analysts."`
	Grant       grantCommand       `cmd:"" help:"Let a role of the database read: everything, or what parties may see."`
	Revoke      revokeCommand      `cmd:"" help:"Take from a role what it was granted."`
	CopySetup   copySetupCommand   `cmd:"" help:"Give a database the grants, typed views, indexes and redactions of another one of the same ledger."`
	Grants      grantsCommand      `cmd:"" help:"List the roles that may read, and what they see."`
	Reset       resetCommand       `cmd:"" help:"Remove everything of the updates after an offset, so that the indexer resumes from there."`
	Reanchor    reanchorCommand    `cmd:"" help:"Find where a participant that was restored from a backup and the database part, and go back to there."`
	Prune       pruneCommand       `cmd:"" help:"Remove what is older, but what was active then, and give its room on the disk back."`
	Redact      redactCommand      `cmd:"" help:"Erase the content of a contract or an update for good, wherever it is stored."`
	PQS         pqsCommand         `cmd:"" name:"pqs" help:"Answer queries that were written for the Participant Query Store."`
	Publication publicationCommand `cmd:"" help:"Publish what is stored to other databases by logical replication."`
	Export      exportCommand      `cmd:"" help:"Write what analysts read as Parquet files, for engines that scan."`
	Migrate     migrateCommand     `cmd:"" help:"Bring the database's schema up to date."`
	Healthcheck healthcheckCommand `cmd:"" help:"Ask a running indexer whether it is ready; exit code 0 if so."`
	Config      configCommand      `cmd:"" help:"Print the settings of run that are in force, and where each comes from."`
	Completion  config.Completion  `cmd:"" help:"Print a script that completes commands and flags in a shell."`
	config.File
	config.Log
	version.Flag
}

const description = "Reads a ledger participant, and what a Scan service has of its network, into PostgreSQL, and " +
	"keeps them current."

func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	return config.Execute(ctx, "indexer", description, &grammar{}, args, environ, stdout, stderr)
}

type runCommand struct{ app.Indexer }

func (*runCommand) Logged() {}
