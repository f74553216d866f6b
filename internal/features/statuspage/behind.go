package statuspage

import (
	"context"
	"time"

	"ledgerindexer/internal/features/admin"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// behind finds out the lag of a stream that another process writes. Readers miss nothing that the source had when its
// end was asked for, once the watermark has reached that end.
type behind struct {
	answered bool // the source has answered the last question
	end      ledger.Offset
	reached  time.Time // when the last end that the watermark has reached was asked for; zero: none was reached
	ahead    []asked   // the ends that it has not reached, the oldest first
}

type asked struct {
	end ledger.Offset
	at  time.Time
}

// ask asks the source for the ledger's end, unless this process writes the stream.
func (b *behind) ask(ctx context.Context, s Stream) {
	if b.answered = false; s.End == nil || s.Lag().Leads {
		return
	}
	at := time.Now()
	end, err := s.End(ctx)
	if err != nil { // readyz and the log say why
		return
	}
	b.answered, b.end = true, end
	b.ahead = withLast(b.ahead, asked{end, at}, samplesKept)
}

// lag returns the lag of a place that was read after the question.
func (b *behind) lag(at store.Heads, now time.Time) admin.Lag {
	if !b.answered {
		return admin.Lag{}
	}
	for len(b.ahead) > 0 && b.ahead[0].end <= at.Watermark {
		b.reached, b.ahead = b.ahead[0].at, b.ahead[1:]
	}
	l := admin.Lag{End: int64(b.end), Offsets: int64(max(0, b.end-at.Watermark))}
	since := b.reached
	if at.RecordTime.After(since) && !at.RecordTime.After(now) { // or the ledger's clock is ahead of this one
		since = at.RecordTime
	}
	switch {
	case l.Offsets == 0:
		l.Known = true
	case !since.IsZero():
		l.Known, l.Seconds = true, now.Sub(since).Seconds()
	}
	return l
}
