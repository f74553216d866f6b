package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"

	"ledgerindexer/sandbox"
)

// state is a file with the seed and size of a ledger, which is all it takes to grow it again. It is written before the
// ledger grows, so that no client has seen updates that a restarted process would not have.
type state struct {
	file  string
	noted noted
}

// noted is the content of the file.
type noted struct {
	Seed      uint64 `json:"seed"`
	Elsewhere bool   `json:"elsewhere,omitempty"`
	Updates   int    `json:"updates"` // the most that clients may have seen
	Grown     int    `json:"grown"`   // the ledger's size when the file was written
	// the ledger end at that size: it differs if another release grows the ledger otherwise
	End int64 `json:"end"`
}

// growAgain grows a new ledger to at least this many updates, and to its size when the file was last written.
func growAgain(file string, of sandbox.Options, updates int) (*state, *sandbox.Ledger, error) {
	s := &state{file: file}
	l := sandbox.NewLedger(of)
	text, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.noted.Seed, s.noted.Elsewhere = of.Seed, of.Elsewhere
	case err != nil:
		return nil, nil, fmt.Errorf("--state: %w", err)
	default:
		if err := json.Unmarshal(text, &s.noted); err != nil {
			return nil, nil, fmt.Errorf("--state: %s was not written by the sandbox; remove it to begin another ledger: %w",
				file, err)
		}
		if s.noted.Seed != of.Seed {
			return nil, nil, fmt.Errorf(
				"--state: %s is of a ledger grown from seed %d, not %d: give that --seed, or another file", file, s.noted.Seed,
				of.Seed)
		}
		if s.noted.Elsewhere != of.Elsewhere {
			return nil, nil, fmt.Errorf("--state: %s is of a ledger with --elsewhere=%t: give that, or another file", file,
				s.noted.Elsewhere)
		}
		l.Grow(s.noted.Grown)
		if end := l.End(); end != s.noted.End {
			return nil, nil, fmt.Errorf("--state: %s is of a ledger that another release of the sandbox grew (with %d updates "+
				"it ended at %d, now at %d): use that release, or remove the file and everything that was indexed from it", file,
				s.noted.Grown, s.noted.End,
				end)
		}
	}
	l.Grow(max(updates, s.noted.Updates) - l.Len()) // not served before note writes the new size
	return s, l, s.note(l, l.Len())
}

// live grows the ledger at a rate until the context is done. After a kill, a restart continues with a ledger that is
// longer by the updates of a second or two, and never shorter.
func (s *state) live(ctx context.Context, l *sandbox.Ledger, rate float64) error {
	err := sandbox.AtRate(ctx, rate, func(n int) error {
		if wanted := l.Len() + n; wanted > s.noted.Updates {
			if err := s.note(l, wanted+int(math.Ceil(rate))); err != nil {
				return err
			}
		}
		l.Grow(n)
		return nil
	})
	return errors.Join(err, s.note(l, l.Len()))
}

// note writes the number of updates that clients may have seen.
func (s *state) note(l *sandbox.Ledger, updates int) error {
	next := noted{Seed: s.noted.Seed, Elsewhere: s.noted.Elsewhere, Updates: updates, Grown: l.Len(), End: l.End()}
	text, err := json.Marshal(next)
	if err == nil {
		err = replaceFile(s.file, string(text)+"\n")
	}
	if err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	s.noted = next
	return nil
}
