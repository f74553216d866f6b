package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/scan"
)

// readsNetwork reports whether a daemon would read the updates of a network.
func (c *checker) readsNetwork() bool {
	return c.cfg.ScanURL != "" && c.cfg.ScanHistory != config.ScanTransactions
}

// readsTransactions reports whether a daemon would read a transaction history.
func (c *checker) readsTransactions() bool {
	return c.cfg.ScanURL != "" && c.cfg.ScanHistory == config.ScanTransactions
}

// newestRecords is how many of the newest records of the transaction history are read.
const newestRecords = 100

type scanState struct {
	reads     bool   // it serves something that is to be read
	networkID string // of its network; empty: not known
}

func (c *checker) checkScan(ctx context.Context) {
	s := c.section(GroupScan)
	switch {
	case c.cfg.ScanURL == "" && c.cfg.LedgerURL == "":
		s.problem("url", "not configured, and neither is --ledger-url: there is nothing to read", "give --ledger-url, "+
			"--scan-url or both")
		return
	case c.cfg.ScanURL == "":
		s.note("url", "not configured: give --scan-url for the updates of the network, or its transaction history, such as "+
			"https://scan.example.com/api/scan")
		return
	}
	all := 1 + len(c.cfg.OtherScans)
	if c.cfg.ScanAgree < 0 || c.cfg.ScanAgree > all {
		s.problem("agree", fmt.Sprintf("--scan-agree=%d, and --scan-url names %d", c.cfg.ScanAgree, all),
			"give --scan-agree at most as many as there are services")
	}
	services := []section{{report: new(Report), group: GroupScan}}
	c.checkFirstScan(ctx, services[0])
	for _, url := range c.cfg.OtherScans {
		if c.readsTransactions() {
			s.note("url", "the transaction history is read from the first --scan-url only; --scan-history=updates reads "+
				"from all of them")
			break
		}
		services = append(services, section{report: new(Report), group: GroupScan})
		c.checkOtherScan(ctx, services[len(services)-1], url)
	}
	addServices(s, services, max(1, c.cfg.ScanAgree))
}

// addServices adds what was found of each Scan service. A daemon passes over those that fail while there are enough
// others, so that their problems are warnings then; not that one is of another network.
func addServices(s section, services []section, enough int) {
	for _, service := range services {
		if service.report.Problems > 0 {
			enough++
		}
	}
	for _, service := range services {
		for _, f := range service.report.Findings {
			if f.Level == Problem && f.Topic != topicNetworks && len(services) >= enough {
				f.Level = Warning
			}
			s.report.add(f)
		}
	}
}

// topicNetworks is the topic of services that are of several networks.
const topicNetworks = "networks"

func (c *checker) checkFirstScan(ctx context.Context, s section) {
	e := endpoint{flags: "scan", access: c.cfg.ScanAccess}
	anonymous, err := scan.New(e.anonymous(c.cfg.ScanURL))
	reached := c.reach(ctx, s, &e, c.cfg.ScanURL, anonymous, err)
	c.clockOf("Scan service", e)
	if !reached {
		return
	}
	checkSecretFiles(s, c.cfg.ScanAccess)
	client, err := scan.New(scan.Config{URL: c.cfg.ScanURL, Access: c.cfg.ScanAccess})
	if err != nil { // the URL was checked before
		reportUnusable(s, "token", err)
		return
	}
	defer client.Close()
	c.redact = append(c.redact, client.Access().Redact)
	if _, ok := c.fetchToken(ctx, s, client.Access()); !ok {
		return
	}
	c.askScan(ctx, s, e, client)
}

// checkOtherScan looks for the newest update of a further service, which has to be of the same network.
func (c *checker) checkOtherScan(ctx context.Context, s section, url string) {
	client, err := scan.New(scan.Config{URL: url, Access: c.cfg.ScanAccess})
	if err != nil {
		s.problem("url", "one --scan-url can't be used: "+err.Error(), "correct it")
		return
	}
	defer client.Close()
	c.redact = append(c.redact, client.Access().Redact)
	within, cancel := c.step(ctx)
	defer cancel()
	service, err := client.Describe(within)
	c.scan.networkID = cmp.Or(c.scan.networkID, service.NetworkID)
	switch {
	case err != nil:
		what, do := explained(err)
		s.problem("url", fmt.Sprintf("of the services, %s: %s", url, what), do)
	case service.NetworkID != c.scan.networkID:
		s.problem(topicNetworks, fmt.Sprintf("%s is of the network of %s, and another --scan-url of that of %s", url,
			service.NetworkID, c.scan.networkID), "give --scan-url the services of one network only")
	default:
		s.ok("url", "%s, release %s", url, head(service.Release, 40))
		c.askForUpdates(ctx, s, client, service.Backfilling)
	}
}

// askScan requests the service's release and network, and the newest records. A Scan without that history still returns
// its release.
func (c *checker) askScan(ctx context.Context, s section, e endpoint, client *scan.Client) {
	within, cancel := c.step(ctx)
	defer cancel()
	service, serviceErr := client.Describe(within)
	var records []ledger.Record
	err := serviceErr
	if c.readsTransactions() {
		records, err = client.NewestTransactions(within, newestRecords)
	}
	var refused *scan.Error
	switch {
	case errors.As(err, &refused) && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden):
		do := "give the token that the proxy before the service wants with --scan-token-file or --scan-oauth-token-url; a " +
			"Scan itself wants none"
		if e.tokenConfigured() {
			do = "see that the token is one that the proxy before the service accepts; a Scan itself wants none"
		}
		s.problem("token", err.Error(), do)
		return
	case serviceErr != nil:
		what, do := explained(serviceErr)
		s.problem("version", what, do)
	case service.Release == "" && (errors.Is(err, ledger.ErrNotOffered) || service.NetworkID == "" &&
		c.readsNetwork()):
		_, err := client.Version(within)
		what, _ := explained(err)
		s.problem("answer", what, "give the base of the service with its path, mostly https://HOST/api/scan; if that is "+
			"what "+e.flag("url")+" is, ask the operator of the service whether it is up")
		return
	default:
		reportService(s, service)
	}
	c.scan.networkID = service.NetworkID
	switch {
	case c.readsNetwork():
		c.askForUpdates(ctx, s, client, service.Backfilling)
	case errors.Is(err, ledger.ErrNotOffered):
		reportNoHistory(s)
	case err != nil:
		what, do := explained(err)
		s.problem("transactions", what, do)
	default:
		c.scan.reads = true
		reportHistory(s, records)
	}
}

// askForUpdates looks for the newest update of the network. A service that is backfilling its history serves none until
// that is complete.
func (c *checker) askForUpdates(ctx context.Context, s section, client *scan.Client, backfilling bool) {
	within, cancel := c.step(ctx)
	defer cancel()
	end, err := scan.NewUpdates(client).LedgerEnd(within)
	switch _, recordTime := end.NetworkPosition(); {
	case errors.Is(err, ledger.ErrNotOffered):
		s.problem("updates", "this Scan does not serve the updates of its network (POST /v2/updates)",
			"give a Scan of Splice 0.4.2 or later, or read its transaction history with --scan-history=transactions")
	case backfilling && err != nil && !ingest.Lasting(err):
		s.note("updates", "not served before the service's history is complete: %v", err)
		c.scan.reads = true
	case err != nil:
		what, do := explained(err)
		s.problem("updates", what, do)
	case end == 0:
		s.note("updates", "the network has no updates yet")
		c.scan.reads = true
	default:
		s.ok("updates", "the newest update of the network is of %s", recordTime.Format(time.RFC3339))
		c.scan.reads = true
	}
}

// reportService reports the service's release and network, and whether it is still completing its history. The indexer
// waits for that: a history that begins in the middle, and is filled in later, looks like a complete one.
func reportService(s section, service ledger.TransactionsService) {
	if service.Release == "" {
		s.note("version", "the service does not return its release")
	} else {
		s.ok("version", "release %s", head(service.Release, 40))
	}
	if service.NetworkID == "" {
		s.note("network", "the service does not return its network: one of another network behind the URL would not be "+
			"noticed")
	} else {
		s.ok("network", "%s", service.NetworkID)
	}
	if service.Backfilling {
		s.note("backfilling", "the service is still completing its history: `indexer run` waits until it has, however long "+
			"that takes; the participant's updates do not wait for it")
	}
}

// reportNoHistory reports a Scan of Splice 0.7 or later. The stream fails, also where there is something else to read.
func reportNoHistory(s section) {
	s.problem("transactions",
		"this Scan has no transaction history (POST /v0/transactions): it is gone from Splice 0.7 on",
		"leave out --scan-history=transactions, and the updates of the network are read instead, or give a Scan of Splice "+
			"0.6 or earlier; for holdings see ledger.holdings")
}

func reportHistory(s section, records []ledger.Record) {
	if len(records) == 0 {
		s.note("transactions", "the transaction history is empty")
		return
	}
	var newest time.Time // a record of an unknown kind may have no date
	transfers, changes := 0, 0
	for i := range records {
		if newest.IsZero() {
			newest = records[i].Date.Time
		}
		if transfer := records[i].Transfer; transfer != nil {
			transfers++
			changes += len(transfer.BalanceChanges)
		}
	}
	age := time.Since(newest)
	text := fmt.Sprintf("the newest record is of %s", newest.UTC().Format(time.RFC3339))
	switch {
	case newest.IsZero():
		s.note("transactions", "none of the last %s has a date", plural(len(records), "record"))
	case age > 24*time.Hour:
		s.note("transactions", "%s, %s ago", text, span(age))
	default:
		s.ok("transactions", "%s", text)
	}
	switch {
	case changes > 0:
		s.ok("balances", "balance changes are served")
	case transfers > 0:
		s.note("balances", "no balance changes are served (none in %s among the newest records): releases since January "+
			"2026 leave them empty; for holdings see ledger.holdings",
			plural(transfers, "transfer"))
	default:
		s.note("balances", "there is no transfer among the last %s, so whether balance changes are served is not known",
			plural(len(records), "record"))
	}
}
