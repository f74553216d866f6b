package verify

import (
	"context"
	"errors"
	"fmt"

	"ledgerindexer/ledger"
)

// overlap is how many records come again with each page, so that a service that changes meanwhile is noticed.
const overlap = 20

// errHistoryChanged says that the service serves other records than it did a moment ago.
var errHistoryChanged = errors.New("the service of the transaction history served other records in the same place than before: it changed while it was read; verify again")

// pager reads a service's history page by page in its order. A page is asked after an event id that stands on one record
// only, as far as is known: the service fails after one that two records share.
type pager struct {
	source HistorySource
	after  string          // where to begin: an event id, or the empty one for the beginning of the history
	shared map[string]bool // event ids that stand on more than one record, by what is stored; may be nil

	page    []ledger.Transaction // the last page
	begun   bool
	refused map[string]bool
}

// next gives the records that follow those it gave before. None: there are no more, or the service does not know the event
// id after which it was asked.
func (p *pager) next(ctx context.Context) ([]ledger.Transaction, error) {
	if !p.begun {
		page, err := p.source.TransactionsAfter(ctx, p.after)
		p.begun, p.page = err == nil, page
		return page, err
	}
	usable := p.usable()
	if len(p.page) > 0 && len(usable) == 0 {
		return nil, fmt.Errorf("%d records in a row, from event id %q on, share their event ids with others, so that there is none after which the service could be read on", len(p.page), p.page[0].EventID)
	}
	// With an overlap first. A page may be short for any reason: then behind the last event id.
	for i := startOf(usable, len(p.page)); i >= 0 && i < len(usable); {
		page, err := p.source.TransactionsAfter(ctx, p.page[usable[i]].EventID)
		if errors.Is(err, ledger.ErrCursorRefused) {
			// Its twin was not known. An outage looks the same, so one before it that is refused, too, is an error.
			if p.refused == nil {
				p.refused = map[string]bool{}
			}
			if p.refused[p.page[usable[i]].EventID] = true; i == 0 || len(p.refused) > overlap {
				return nil, err
			}
			i--
			continue
		}
		if err != nil {
			return nil, err
		}
		known := p.page[usable[i]+1:]
		if !beginsAlike(known, page) {
			return nil, errHistoryChanged
		}
		if len(page) > len(known) {
			p.page, p.refused = page, nil
			return page[len(known):], nil
		}
		if i == len(usable)-1 || p.refused[p.page[usable[len(usable)-1]].EventID] {
			return nil, nil
		}
		i = len(usable) - 1
	}
	return nil, nil
}

// usable are the places in the page whose event ids stand on one record.
func (p *pager) usable() []int {
	records := map[string]int{}
	for i := range p.page {
		records[p.page[i].EventID]++
	}
	var places []int
	for i := range p.page {
		if id := p.page[i].EventID; records[id] == 1 && !p.shared[id] && !p.refused[id] {
			places = append(places, i)
		}
	}
	return places
}

// startOf chooses the last place that has an overlap of records behind it, of up to half a short page.
func startOf(usable []int, length int) int {
	last := length - 1 - min(overlap, length/2)
	for i := len(usable) - 1; i >= 0; i-- {
		if usable[i] <= last {
			return i
		}
	}
	return 0
}

// beginsAlike tells whether two lists hold the same records as far as both reach.
func beginsAlike(a, b []ledger.Transaction) bool {
	for i := range min(len(a), len(b)) {
		if a[i].EventID != b[i].EventID || a[i].Fingerprint() != b[i].Fingerprint() {
			return false
		}
	}
	return true
}
