package main

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"ledgerindexer/sandbox"
)

// scanFlags configure the Scan service beside the participant.
type scanFlags struct {
	Word           string        `default:"amulet" enum:"amulet,coin" help:"The unit's word in the fields of the transaction history: amulet or coin."`
	BalanceChanges bool          `help:"Send balance changes with transfers, as services did before 2026."`
	Backfilling    bool          `help:"Report an incomplete history, and serve only its second half."`
	Order          uint64        `default:"0" help:"Serve the history like another service, with its own order and offsets; 0: the default one."`
	SnapshotEvery  time.Duration `default:"3h" placeholder:"TIME" help:"Time between the service's snapshots of the network. Default: ${default}."`
	PageLimit      int           `default:"1000" placeholder:"N" help:"The largest page that the service answers. Several sandboxes with one seed are several services of one network. Default: ${default}."`
	RequestLimit   int           `default:"0" placeholder:"N" help:"Requests of one operation that the service answers in a second; others get 429. Services' own default is 200; here 0: all."`
	UpdatesLag     int           `default:"0" placeholder:"N" help:"How many of the ledger's newest updates are not served yet as updates of the network."`
	LieAbout       int64         `default:"0" placeholder:"OFFSET" help:"Send another workflow id than it has for the transaction at this offset of the ledger."`
	BulkEvery      time.Duration `default:"24h" placeholder:"TIME" help:"Record time of a folder of bulk files. Default: ${default}."`
	Release        string        `default:"0.6.4" help:"Release of the Scan service, which has the operations of that release: from 0.7 on no transaction history, only the updates of the network."`
}

// scanPath is where the Scan service is on the participant's address.
const scanPath = "/api/scan"

var scanRelease = regexp.MustCompile(`^[0-9]+\.[0-9]+(\.[0-9]+)*$`)

// scan returns the Scan service of a history, or nil for a recording, which has no transaction history. It requires the
// token, if there is one.
func (f *flags) scan(h sandbox.History, token string) (*sandbox.Scan, error) {
	l, ok := h.(*sandbox.Ledger)
	switch {
	case !f.Scan || !ok:
		return nil, nil
	case !scanRelease.MatchString(f.ScanOptions.Release):
		return nil, errors.New("--scan-release: give a release such as 0.6.4")
	}
	return sandbox.NewScan(l, sandbox.ScanOptions{
		Word: f.ScanOptions.Word, BalanceChanges: f.ScanOptions.BalanceChanges, Release: f.ScanOptions.Release,
		PageLimit: f.ScanOptions.PageLimit, RequestLimit: f.ScanOptions.RequestLimit, UpdatesLag: f.ScanOptions.UpdatesLag,
		LieAbout:  f.ScanOptions.LieAbout,
		BulkEvery: f.ScanOptions.BulkEvery, BulkPrefix: scanPath, SnapshotEvery: f.ScanOptions.SnapshotEvery,
		Backfilling: f.ScanOptions.Backfilling, Order: f.ScanOptions.Order,
		StrictInterface: f.StrictInterface, Latency: f.Latency, Token: token,
	}), nil
}

// withScan adds the Scan service to the participant.
func withScan(s *sandbox.Scan, participant http.Handler) http.Handler {
	if s == nil {
		return participant
	}
	mux := http.NewServeMux()
	mux.Handle("/", participant)
	mux.Handle(scanPath+"/", http.StripPrefix(scanPath, s))
	return mux
}

// describeScan prints the address of the Scan service.
func describeScan(s *sandbox.Scan, url string) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("sandbox: a Scan service of this ledger's network on %s\n", url+scanPath)
}
