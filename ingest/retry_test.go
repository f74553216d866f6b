package ingest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

func TestWaitsDoubleWithJitterUpToTheLongest(t *testing.T) {
	t.Parallel()
	different := map[time.Duration]bool{}
	for range 100 {
		var b Backoff
		whole := firstWait
		for range 40 {
			wait := b.Next(errAway)
			require.GreaterOrEqual(t, wait, whole/2)
			require.Less(t, wait, whole)
			different[wait] = true
			whole = min(2*whole, longestWait)
		}
		b.Reset()
		require.Less(t, b.Next(errAway), firstWait)
	}
	require.Greater(t, len(different), 1000)
}

type busy struct{ wait time.Duration }

func (b busy) Error() string       { return "busy" }
func (b busy) Wait() time.Duration { return b.wait }

func TestAnErrorMayAskForALongerWait(t *testing.T) {
	t.Parallel()
	var b Backoff
	require.Equal(t, 7*time.Second, b.Next(fmt.Errorf("read: %w", busy{7 * time.Second})))
	require.Less(t, b.Next(busy{time.Nanosecond}), 2*firstWait, "a shorter wait is not asked for")
	require.Equal(t, 90*time.Second, b.Next(busy{90 * time.Second}))
	require.Equal(t, longestAsked, b.Next(busy{24 * time.Hour}))
}

// A ledger that is away for a week is read on when it is back: there is no budget.
func TestAWeekAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 30)
		back := time.Now().Add(7 * 24 * time.Hour)
		end := l.source.ledgerEnd
		l.source.ledgerEnd = func(ctx context.Context) (ledger.Offset, error) {
			if time.Now().Before(back) {
				return 0, errAway
			}
			return end(ctx)
		}
		stop := l.run()
		pass(time.Until(back) - time.Second)
		require.Empty(t, l.memory.got())
		require.Greater(t, l.retried(), 7*24*60*2, "tries at least twice a minute")
		pass(longestWait)
		require.Equal(t, l.ledger.all(), l.memory.got())
		require.NoError(t, stop())
	})
}

// Every committed batch makes the waits short again, however many failures lie between.
func TestACommitResetsTheWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 1000)
		read := l.source.readUpdates
		calls := 0
		l.source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
			if calls++; calls%2 == 0 {
				return ledger.Page{}, errAway
			}
			return read(ctx, after, to)
		}
		began := time.Now()
		stop := l.run()
		pass(100 * firstWait)
		require.Equal(t, l.ledger.all(), l.memory.got())
		require.GreaterOrEqual(t, l.retried(), 99)
		require.LessOrEqual(t, time.Since(began), 100*firstWait)
		require.NoError(t, stop())
	})
}

// A server that reports its end and fails every read of updates is not asked more and more often.
func TestTheLedgerEndAloneIsNoSuccess(t *testing.T) {
	for name, updates := range map[string]int{"current": 0, "behind": 100} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLoop(t, updates)
				l.source.readUpdates = func(context.Context, ledger.Offset, ledger.Offset) (ledger.Page, error) {
					return ledger.Page{}, errAway
				}
				l.source.tailUpdates = func(context.Context, ledger.Offset, int, time.Duration) (ledger.Page, bool, error) {
					return ledger.Page{}, false, errAway
				}
				recovered := 0
				l.Watch.Recovered = func() { recovered++ }
				stop := l.run()
				pass(time.Hour)
				require.Less(t, l.retried(), 4*60+20)
				require.Zero(t, recovered)
				require.NoError(t, stop())
			})
		})
	}
}

// On a quiet ledger nothing is committed for long; an answered long poll is enough to know that all is well again.
func TestRecoversOnAQuietLedger(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 3)
		tail := l.source.tailUpdates
		failures := 0
		l.source.tailUpdates = func(ctx context.Context, after ledger.Offset, limit int, idle time.Duration) (ledger.Page, bool, error) {
			if failures++; failures <= 5 {
				return ledger.Page{}, false, errAway
			}
			return tail(ctx, after, limit, idle)
		}
		recovered := 0
		l.Watch.Recovered = func() { recovered++ }
		stop := l.run()
		pass(5 * time.Minute)
		require.Equal(t, 5, l.retried())
		require.Equal(t, 1, recovered)
		require.NoError(t, stop())
	})
}

// What may pass is tried again, what stays ends it or is left alone for longer, and a success begins the pauses anew.
func TestRetry(t *testing.T) {
	lasting := &ledger.Problem{What: "no right"}
	for name, c := range map[string]struct {
		retry  Retry
		errs   []error // of the tries, one after the other
		tries  int
		atMost time.Duration // that the pauses take
		err    error
	}{
		"passes":                  {errs: []error{errAway, errAway, nil}, tries: 3, atMost: 3 * firstWait},
		"stays":                   {errs: []error{errAway, lasting, nil}, tries: 2, atMost: firstWait, err: lasting},
		"is an answer":            {retry: Retry{Final: lastingOrNotOffered}, errs: []error{ledger.ErrNotOffered}, tries: 1, err: ledger.ErrNotOffered},
		"often enough":            {retry: Retry{Most: 2}, errs: []error{errAway, errAway, nil}, tries: 2, atMost: firstWait, err: errAway},
		"rests":                   {retry: Retry{Rest: time.Hour}, errs: []error{lasting, errAway, nil}, tries: 3, atMost: time.Hour + firstWait},
		"no pause is longer than": {retry: Retry{Rest: time.Second}, errs: []error{lasting, busy{time.Minute}, nil}, tries: 3, atMost: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				began, tries, told, recovered := time.Now(), 0, time.Duration(0), 0
				r := c.retry
				r.Failed = func(_ error, wait time.Duration) { told += wait }
				r.Recovered = func() { recovered++ }
				err := r.Do(t.Context(), func(context.Context) error { tries++; return c.errs[tries-1] })
				require.Equal(t, c.err, err)
				require.Equal(t, c.tries, tries)
				require.Equal(t, told, time.Since(began))
				require.LessOrEqual(t, told, c.atMost)
				require.GreaterOrEqual(t, told, c.atMost/2)
				r.Worked()
				r.Worked()
				require.LessOrEqual(t, recovered, 1)
				require.Less(t, r.Next(errAway), firstWait)
			})
		})
	}
}

// While no connection can be made, that is tried in a pause too, and nobody is told. When there is one again, pauses
// begin anew, whatever came over it.
func TestConnectionsAreLookedForInAPause(t *testing.T) {
	refused := fmt.Errorf("read: %w", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})
	for name, then := range map[string]error{"works": nil, "is starting": errAway} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				began, told, first := time.Now(), []time.Duration{}, time.Time{}
				back := began.Add(time.Hour)
				r := Retry{Failed: func(_ error, wait time.Duration) { told = append(told, wait) }}
				err := r.Do(t.Context(), func(context.Context) error {
					switch {
					case time.Now().Before(back):
						return refused
					case first.IsZero():
						first = time.Now()
						return then
					}
					return nil
				})
				require.NoError(t, err)
				require.Less(t, first.Sub(back), connectEvery)
				if then != nil {
					require.Less(t, told[len(told)-1], firstWait)
					told = told[:len(told)-1]
				}
				require.Less(t, len(told), 4*60+20, "what is no news is not told again")
				require.Greater(t, len(told), 2*60)
			})
		})
	}
	require.True(t, noConnection(&net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}))
	require.False(t, noConnection(&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}), "it takes long")
	require.False(t, noConnection(&net.OpError{Op: "read", Err: syscall.ECONNRESET}))
	require.False(t, noConnection(errAway))
}

// The log says how soon it is tried again, and that it works again, once.
func TestWhatWorksAgainIsSaid(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for says, failures := range map[string][]error{
		"wait=2s":   slices.Repeat([]error{refused}, 30),
		"wait=1m0s": {errAway, busy{time.Minute}},
	} {
		t.Run(says, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var log bytes.Buffer
				r, tries := Retry{Logger: slog.New(slog.NewTextHandler(&log, nil))}, 0
				work := func(context.Context) error {
					if tries++; tries <= len(failures) {
						return failures[tries-1]
					}
					return nil
				}
				require.NoError(t, r.Do(t.Context(), work))
				require.NoError(t, r.Do(t.Context(), work))
				require.Contains(t, log.String(), says)
				require.Equal(t, 1, strings.Count(log.String(), "working again"), log.String())
			})
		})
	}
}

// What works for a moment between two connections that can't be made is told.
func TestConnectionsThatComeAndGo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		began, tries, told, before := time.Now(), 0, 0, -1
		r := Retry{Failed: func(error, time.Duration) { told++ }}
		err := r.Do(t.Context(), func(context.Context) error {
			tries++
			require.NotEqual(t, before, told, "what ended again is told before the next try")
			before = -1
			switch {
			case time.Since(began) > 2*time.Minute:
				return nil
			case tries%10 == 0:
				r.Worked()
				before = told
			}
			return refused
		})
		require.NoError(t, err)
		require.Greater(t, tries, 20)
	})
}

// A pause ends with its context. What that ended for is no error of what was tried: a lasting one of another stream
// would be taken for this one's.
func TestAPauseEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		began := time.Now()
		r := Retry{Rest: time.Hour, Final: func(error) bool { return true }}
		err := r.Do(ctx, func(context.Context) error {
			time.AfterFunc(time.Second, func() { cancel(&ledger.Problem{What: "no stream can continue"}) })
			return errAway
		})
		require.Equal(t, context.Canceled, err)
		require.Equal(t, time.Second, time.Since(began))
	})
}
