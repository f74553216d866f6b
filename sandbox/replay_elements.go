package sandbox

// Elements are prepared answers: updates, entries of a snapshot or records of the transaction history, as JSON and in
// the order in which they are sent. They never change.
type Elements interface {
	Len() int
	End() int64             // of the ledger
	Offset(i int) int64     // of element i, counted from 0
	After(offset int64) int // how many have offsets up to this one
	Element(i int) []byte
	// Named returns the index of the element with an id, -1 where two have it.
	Named(id string) (i int, ok bool)
}

// NewPrepared returns the history of a ledger that does not grow. Serving it costs next to nothing: updates are sent as
// prepared, whatever a request's format says, and so are the entries of a snapshot at the ledger's end. Give only one
// of the two. Everything else is as in an empty ledger of seed 1, whose synchronizers have the names of those in
// updates of the same seed.
func NewPrepared(updates, snapshot Elements) History {
	p := &prepared{Ledger: NewLedger(Options{Seed: 1}), never: make(chan struct{}), updates: updates, entries: snapshot}
	if updates == nil {
		p.updates = none{snapshot.End()}
	}
	return p
}

// prepared is both a History and, as it never changes, its only reading.
type prepared struct {
	*Ledger
	never            chan struct{}
	updates, entries Elements
}

func (p *prepared) open() reading { return p }

func (p *prepared) end() int64              { return p.updates.End() }
func (p *prepared) prunedTo() int64         { return 0 }
func (p *prepared) more() <-chan struct{}   { return p.never }
func (p *prepared) count() int              { return p.updates.Len() }
func (p *prepared) after(offset int64) int  { return p.updates.After(offset) }
func (p *prepared) offsetOf(i int) int64    { return p.updates.Offset(i) }
func (p *prepared) recordTimes(int) []int64 { return nil }

// elsewhere than at the end there is no snapshot
func (p *prepared) inFlight(int64) bool { return p.entries != nil }

func (p *prepared) appendUpdate(dst []byte, i int, _ *updateFilter, _ *features) ([]byte, bool) {
	return append(dst, p.updates.Element(i)...), true
}

func (p *prepared) updateNamed(id string) (int, bool) { return p.updates.Named(id) }

func (p *prepared) snapshot(at int64, from pointer, _ *eventFilter, _ *features, yield func(entry) bool) {
	if p.entries == nil || at != p.entries.End() {
		return
	}
	for i := int(from.number); i < p.entries.Len(); i++ {
		if !yield(entry{at: pointer{number: int64(i) + 1}, offset: p.entries.Offset(i), whole: p.entries.Element(i)}) {
			return
		}
	}
}

func (p *prepared) appendContract(dst []byte, _ string, _ []string, _ *features) ([]byte, bool) {
	return dst, false
}

// none is an empty list of elements, with a ledger end.
type none struct{ last int64 }

func (none) Len() int                 { return 0 }
func (n none) End() int64             { return n.last }
func (none) Offset(int) int64         { return 0 }
func (none) After(int64) int          { return 0 }
func (none) Element(int) []byte       { return nil }
func (none) Named(string) (int, bool) { return 0, false }

// NewPreparedScan returns a service of a transaction history that does not grow, whose records are sent as prepared.
func NewPreparedScan(records Elements) *Scan {
	s := NewScan(NewLedger(Options{Seed: 1}), ScanOptions{})
	s.prepared = records
	return s
}

// NewPreparedNetwork returns a service of a network that does not grow, whose updates are sent as prepared. Their
// offsets are the migration id in the bits from 52 on and the record time in microseconds below.
func NewPreparedNetwork(updates Elements) *Scan {
	s := NewScan(NewLedger(Options{Seed: 1}), ScanOptions{})
	s.preparedUpdates = updates
	return s
}

// preparedPage returns the updates of a request.
func (s *Scan) preparedPage(q networkRequest) (items [][]byte) {
	i := 0
	if q.begun {
		i = s.preparedUpdates.After(q.migration<<52 | q.micros)
	}
	for ; i < s.preparedUpdates.Len() && int64(len(items)) < q.size; i++ {
		items = append(items, s.preparedUpdates.Element(i))
	}
	return items
}

// preparedRecords returns records for a prepared history.
func (s *Scan) preparedRecords(q historyRequest) (records [][]byte, twice bool) {
	step, at := 1, -1
	if q.descending {
		step, at = -1, s.prepared.Len()
	}
	if q.after != "" {
		i, ok := s.prepared.Named(q.after)
		if !ok || i < 0 {
			return nil, ok
		}
		at = i
	}
	for i := at + step; i >= 0 && i < s.prepared.Len() && int64(len(records)) < q.size; i += step {
		records = append(records, s.prepared.Element(i))
	}
	return records, false
}
