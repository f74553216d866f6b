package ingest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// packageTask is a task between an answer and a memory, both of which a test can replace.
type packageTask struct {
	*Vetting
	told
	t *testing.T

	mu   sync.Mutex
	read func() ([]ledger.VettedPackages, error)
	// silent: no answer comes to its end.
	silent bool
	save   func() (int, error)
	reads  []time.Time
	saved  [][]ledger.VettedPackages
}

func newPackages(t *testing.T) *packageTask {
	k := &packageTask{t: t}
	k.read = func() ([]ledger.VettedPackages, error) {
		return []ledger.VettedPackages{{SynchronizerID: "s", TopologySerial: 1, Packages: make([]ledger.VettedPackage, 3)}}, nil
	}
	k.save = func() (int, error) { return 0, nil }
	k.Vetting = &Vetting{Read: k.answer, Sink: k, Every: 10 * time.Minute, Logger: k.logger(), Watch: k.watch()}
	return k
}

func (k *packageTask) answer(ctx context.Context) ([]ledger.VettedPackages, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reads = append(k.reads, time.Now())
	if k.silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return k.read()
}

func (k *packageTask) SaveVettedPackages(_ context.Context, list []ledger.VettedPackages) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	changes, err := k.save()
	if err == nil {
		k.saved = append(k.saved, list)
	}
	return changes, err
}

func (k *packageTask) change(fn func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	fn()
}

func (k *packageTask) count() (reads, saved int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.reads), len(k.saved)
}

func (k *packageTask) run() (stop func()) { return running(k.t, k.Run) }

func TestReadsPackagesAtOnceAndAtTheInterval(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newPackages(t)
		changes := 0
		k.Saved = func(n int) { changes += n }
		k.save = func() (int, error) { return 3, nil }
		stop := k.run()
		pass(0)
		reads, saved := k.count()
		require.Equal(t, [2]int{1, 1}, [2]int{reads, saved})
		require.Equal(t, 1, k.lines(`msg="vetted packages changed" changes=3 packages=3 synchronizers=1`))
		k.change(func() { k.save = func() (int, error) { return 0, nil } })
		pass(time.Hour)
		reads, saved = k.count()
		require.Equal(t, [2]int{7, 7}, [2]int{reads, saved})
		require.Equal(t, 1, k.lines("msg"), "nothing new is no news")
		require.Equal(t, 3, changes)
		require.Len(t, k.recorded(), 7)
		began := time.Now()
		stop()
		require.Zero(t, time.Since(began))
	})
}

// What an operator must cure, and what can't be understood, is tried at the interval; what may pass, sooner. Both are
// said once.
func TestPackagesThatCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		failure error
		often   int
	}{
		"no right":    {&ledger.Problem{What: "the user may not list packages", Do: "grant it"}, 7},
		"not offered": {ledger.ErrNotOffered, 7},
		"undecodable": {undecodable("no list"), 7},
		"away":        {errAway, 150},
		"not stored":  {errors.New("no table"), 150},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := newPackages(t)
				answer := k.read
				if name == "not stored" {
					k.save = func() (int, error) { return 0, c.failure }
				} else {
					k.read = func() ([]ledger.VettedPackages, error) { return nil, c.failure }
				}
				stop := k.run()
				pass(time.Hour)
				reads, saved := k.count()
				require.GreaterOrEqual(t, reads, c.often*4/5)
				require.LessOrEqual(t, reads, c.often*2)
				require.Zero(t, saved, "what is known stays as it is")
				require.True(t, k.failed())
				require.Equal(t, 1, k.lines("a background task failed"))
				require.Equal(t, "vetting: "+Reason(c.failure), k.recorded()[0])
				k.change(func() { k.read, k.save = answer, func() (int, error) { return 0, nil } })
				pass(k.Every)
				_, saved = k.count()
				require.Positive(t, saved)
				require.False(t, k.failed())
				require.Equal(t, 1, k.lines("working again"))
				stop()
			})
		})
	}
}

// An answer that does not come to its end is given up, and it is said.
func TestAReadingThatDoesNotEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newPackages(t)
		k.silent = true
		stop := k.run()
		pass(listPatience + time.Second)
		require.Contains(t, k.recorded()[0], "not answered in full after 10m0s")
		stop()
	})
}

// When packages were read last is known, however often that is.
func TestEachReadingIsTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newPackages(t)
		k.Every = 10 * time.Second
		stop := k.run()
		pass(time.Minute)
		stop()
		reads, _ := k.count()
		require.Len(t, k.recorded(), reads)
	})
}
