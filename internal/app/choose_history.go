package app

import (
	"context"
	"errors"
	"slices"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/admin"
	"ledgerindexer/ledger"
	"ledgerindexer/scan"
	"ledgerindexer/store"
)

// choice finds out which streams are to be read from the Scan service, if the flags leave that open. Until then a
// stream of its own, which reads nothing, stands for them in health and metrics. The other streams don't wait for it.
type choice struct {
	*indexer
	stream    *stream
	services  []*scan.Client
	ofHistory []*stream
	ofNetwork []*stream
	read      config.ScanHistory // what was chosen; empty: nothing yet
}

// choose adds a choice between the streams of the transaction history and those of the network. closeAll closes the
// clients that it uses.
func (x *indexer) choose(ofHistory, ofNetwork []*stream) (c *choice, closeAll func(), err error) {
	c = &choice{indexer: x, ofHistory: ofHistory, ofNetwork: ofNetwork}
	c.stream = &stream{indexer: ofNetwork[0].indexer, lease: store.LeaseUpdates, title: "scan", sourceName: scanService}
	closeAll = func() {
		for _, service := range c.services {
			service.Close()
		}
	}
	for _, url := range x.cfg.ScanURL {
		service, err := newScanClient(url, x.cfg.ScanAccess, x.logger, observed(x.metrics))
		if err != nil {
			return nil, closeAll, err
		}
		c.services = append(c.services, service)
	}
	x.streams = append(x.streams, c.stream)
	return c, closeAll, nil
}

// run waits until the choice is made, puts the chosen streams in the place of its own, and returns them; none: ctx has
// ended, or the choice can't be made.
func (c *choice) run(ctx context.Context) ([]*stream, error) {
	const state = "waiting to learn what the Scan service has"
	err := c.stream.repeat(ctx, func(ctx context.Context) error {
		return retryUntilDone(ctx, c.logger, state, c.decide,
			func(err error) { c.stream.set(admin.Waits, false, state+": "+err.Error()) })
	})
	if err != nil || c.read == "" {
		return nil, err
	}
	var chosen []*stream
	if c.read.Transactions() {
		chosen = append(chosen, c.ofHistory...)
	}
	if c.read.Updates() {
		chosen = append(chosen, c.ofNetwork...)
	}
	c.health.Remove(c.stream.title)
	c.stream.metrics.Forget(c.stream.name())
	for _, s := range chosen {
		s.begin()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams = append(slices.DeleteFunc(slices.Clone(c.streams), func(s *stream) bool { return s == c.stream }),
		chosen...)
	return chosen, nil
}

// decide chooses by what the database has begun to hold, or, if it holds nothing yet, by what the services have.
func (c *choice) decide(ctx context.Context) error {
	begun, err := config.Begun(ctx, c.store, c.stream.store)
	if err != nil {
		return err
	}
	var served scan.Served
	read, because, err := config.Choose(begun, func() (_ config.Histories, err error) {
		served, err = scan.ServedByAny(ctx, c.services)
		return config.Histories{Updates: served.Updates, Transactions: served.Transactions}, err
	})
	if err != nil {
		return err
	}
	if read == "" {
		return c.nothingServed(served.Scan)
	}
	c.read = read
	c.logger.InfoContext(ctx, "what is read of the Scan service is chosen; --scan-history reads something else",
		"scan_history", string(read), "because", because)
	return nil
}

// nothingServed returns the error for a service that has nothing to read. If it is not known to be a Scan, it may be a
// proxy before one that is starting: then the error is no Problem, and the service is asked again soon, as long as
// something else is read meanwhile.
func (c *choice) nothingServed(isScan bool) error {
	what := "the Scan service has neither updates of its network (POST /v2/updates) nor a transaction history (POST " +
		"/v0/transactions)"
	if !isScan && !c.cfg.UntilCurrent && !c.alone() {
		return errors.New(what + ", and does not answer as a Scan service: is --scan-url the base of one, such as " +
			"https://scan.example.com/api/scan?")
	}
	return &ledger.Problem{What: what, Do: "check --scan-url, mostly https://HOST/api/scan; services of Splice 0.4.2 or " +
		"later have updates"}
}
