package check

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"ledgerindexer/ledger"
	"ledgerindexer/scan"
)

// lookedAt is how many of the newest records of the transaction history are looked at.
const lookedAt = 100

func (c *checker) checkScan(ctx context.Context) {
	s := c.section(GroupScan)
	if c.cfg.ScanURL == "" {
		s.note("url", "not configured: give --scan-url for the transaction history, such as https://scan.example.com/api/scan")
		return
	}
	u, ok := address(s, "--scan-url", c.cfg.ScanURL)
	if !ok {
		return
	}
	e := endpoint{name: "the Scan service", flags: "scan", access: c.cfg.ScanAccess, url: u}
	e.access.Flags = e.flags
	if !c.prepareTLS(s, &e, c.cfg.ScanURL) {
		return
	}
	v, ok := c.connect(ctx, s, e, "/version")
	if !ok {
		return
	}
	c.clockOf("Scan service", v)
	if c.reportDetour(s, e, v) {
		return
	}
	checkSecretFiles(s, c.cfg.ScanAccess)
	client, err := scan.New(scan.Config{URL: c.cfg.ScanURL, Access: c.cfg.ScanAccess})
	if err != nil { // the URL and the files of TLS were looked at
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

// askScan asks for the newest records. A Scan without that history still tells its version.
func (c *checker) askScan(ctx context.Context, s section, e endpoint, client *scan.Client) {
	within, cancel := c.step(ctx)
	defer cancel()
	version, versionErr := client.Version(within)
	records, err := client.Newest(within, lookedAt)
	var refused *scan.Error
	switch {
	case errors.As(err, &refused) && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden):
		do := "give the token that the proxy before the service wants with --scan-token-file or --scan-oauth-token-url; a Scan itself wants none"
		if e.tokenConfigured() {
			do = "see that the token is one that the proxy before the service accepts; a Scan itself wants none"
		}
		s.problem("token", err.Error(), do)
		return
	case versionErr == nil:
		s.ok("version", "release %s", head(version, 40))
	case errors.Is(err, ledger.ErrNotOffered):
		c.reportNoScan(ctx, s, e)
		return
	default:
		s.note("version", "the service does not tell its release")
	}
	switch {
	case errors.Is(err, ledger.ErrNotOffered):
		s.problem("transactions", "this Scan has no transaction history (POST /v0/transactions): it is gone from Splice 0.7 on",
			"leave --scan-url out, or give a Scan of Splice 0.6 or earlier; what Splice offers in its place, POST /v2/updates, is not read")
	case err != nil:
		s.problem("transactions", err.Error(), "see whether the service is overloaded or starting, and look again")
	case len(records) == 0:
		s.note("transactions", "the transaction history is empty")
	default:
		reportHistory(s, records)
	}
}

func (c *checker) reportNoScan(ctx context.Context, s section, e endpoint) {
	const prefix = "/api/scan"
	if e.url.Path != prefix {
		within, cancel := c.step(ctx)
		defer cancel()
		u := *e.url
		u.User, u.Path, u.RawPath = nil, prefix, ""
		if v := pay(within, u.JoinPath("/version"), e.who.TLS()); v.err == nil && tellsVersion(v) {
			s.problem("answer", "there is no Scan at "+shown(e.url)+", but one at "+shown(&u), "use --scan-url "+shown(&u))
			return
		}
	}
	s.problem("answer", "there is no Scan at "+shown(e.url), "give the base of the service with its path, mostly https://HOST"+prefix)
}

func reportHistory(s section, records []scan.Record) {
	newest := records[0].Date
	age := time.Since(newest)
	text := fmt.Sprintf("the newest record is of %s", newest.UTC().Format(time.RFC3339))
	if age > 24*time.Hour {
		s.note("transactions", "%s, %s ago", text, span(age))
	} else {
		s.ok("transactions", "%s", text)
	}
	transfers, changes := 0, 0
	for _, r := range records {
		if r.Transfer {
			transfers++
		}
		changes += r.BalanceChanges
	}
	switch {
	case changes > 0:
		s.ok("balances", "balance changes are served")
	case transfers > 0:
		s.note("balances", "no balance changes are served (none in %s among the newest records): releases since January 2026 leave them empty", plural(transfers, "transfer"))
	default:
		s.note("balances", "there is no transfer among the last %s, so it can't be told whether balance changes are served", plural(len(records), "record"))
	}
}
