package ingest

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"ledgerindexer/ledger"
)

// TransactionsOffered is whether a service has a transaction history, and when to ask again where it has none. It is
// not safe for concurrent use.
type TransactionsOffered struct {
	Logger    *slog.Logger
	LookAgain time.Duration // a service that is a Scan is asked again this long after it had no history

	scan     bool            // it last reported a release or a network, so it is a Scan
	network  bool            // it last reported its network
	absent   *ledger.Problem // why there was no history at the last request; nil: there was one, or none was made yet
	askAt    time.Time       // when to ask again
	patience Backoff         // for a service that is not known to be a Scan
	nameless bool            // logged that it does not report its network
}

// Described records what the service reported of itself. It reports whether it is a Scan.
func (o *TransactionsOffered) Described(service ledger.TransactionsService) (scan bool) {
	o.network = service.NetworkID != ""
	o.scan = o.network || service.Release != ""
	return o.scan
}

// IsScan reports whether the service is known to be a Scan. Else it may be one that is starting, or the URL is wrong.
func (o *TransactionsOffered) IsScan() bool { return o.scan }

// Absent returns why there was no history at the last request; nil: there was one, or none was made yet.
func (o *TransactionsOffered) Absent() *ledger.Problem { return o.absent }

// Wait describes the wait for a service without a history; empty: it is time to ask.
func (o *TransactionsOffered) Wait() string {
	if o.absent == nil || !time.Now().Before(o.askAt) {
		return ""
	}
	again := "it is asked again soon"
	if o.scan {
		again = fmt.Sprintf("it is asked again every %v", o.LookAgain)
	}
	return fmt.Sprintf("waiting: %s; %s. What to do: %s", o.absent.What, again, o.absent.Do)
}

// NoteAbsent records that there is no history, and when to ask again. It reports whether that is news.
func (o *TransactionsOffered) NoteAbsent(err error) (news bool) {
	problem := o.problem(err)
	news = o.absent == nil || o.absent.What != problem.What
	wait := o.LookAgain
	if !o.scan {
		wait = o.patience.Next(err)
	}
	o.absent, o.askAt = problem, time.Now().Add(wait)
	return news
}

// NotePresent records that there is a history. It reports whether there was none before.
func (o *TransactionsOffered) NotePresent(ctx context.Context) (news bool) {
	news = o.absent != nil
	if news {
		o.Logger.InfoContext(ctx, "the Scan service has a transaction history now")
	}
	o.absent = nil
	o.patience.Reset()
	if !o.network && !o.nameless {
		o.nameless = true
		o.Logger.WarnContext(ctx, "the Scan service does not report its network: one of another network behind the URL "+
			"would not be noticed")
	}
	return news
}

// problem returns the error for a service without a history.
func (o *TransactionsOffered) problem(err error) *ledger.Problem {
	what := "the Scan service has no transaction history (POST /v0/transactions), which is gone from Splice 0.7 on"
	do := "read the updates of the network instead, with --scan-history=updates, into schema network (what is stored of " +
		"the history stays); or give a Scan of Splice 0.6 or earlier with --scan-url, or leave it out: who holds what is " +
		"answered by ledger.holdings"
	if !o.scan {
		what = "there is no transaction history (POST /v0/transactions) at the Scan URL"
		do = "check --scan-url, mostly https://HOST/api/scan; where it is right, the Scan is of Splice 0.7 or later: " + do
	}
	return &ledger.Problem{What: what, Do: do, Err: err}
}
