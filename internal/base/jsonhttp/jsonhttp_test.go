package jsonhttp

import (
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A slow server is waited for, however long the whole answer takes, as long as what it sends comes to an end within a
// day. One that sends next to nothing is given up.
func TestSlowAndStalledAnswers(t *testing.T) {
	t.Parallel()
	const silence = time.Minute
	for name, c := range map[string]struct {
		part  int // bytes that come at a time
		every time.Duration
		late  error // what is found; nil: nothing within an hour
		after time.Duration
	}{
		"a slow line":            {leastProgress, silence - time.Second, nil, 0},
		"a slow line, in pieces": {leastProgress / 32, silence/32 - time.Second/32, nil, 0},
		"a byte now and then":    {1, silence - time.Second, ErrSlow, 2 * silence},
		"a byte each second":     {1, time.Second, ErrSlow, 2 * silence},
		"too little":             {leastProgress / 64, silence / 32, ErrSlow, 2 * silence},
		"nothing":                {0, 2 * time.Hour, ErrSilent, silence},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var late atomic.Pointer[error]
				r := &timedReader{r: strings.NewReader(strings.Repeat("x", 100*leastProgress)), timeout: silence}
				var took time.Duration
				r.silence = time.AfterFunc(silence, func() {
					took = time.Since(began)
					late.Store(new(r.late()))
				})
				defer r.silence.Stop()
				for time.Since(began) < time.Hour && late.Load() == nil {
					time.Sleep(c.every)
					synctest.Wait()
					_, err := io.ReadFull(r, make([]byte, c.part))
					require.NoError(t, err)
				}
				if c.late == nil {
					require.Nil(t, late.Load())
					return
				}
				require.ErrorIs(t, *late.Load(), c.late)
				require.LessOrEqual(t, took, c.after)
			})
		})
	}
}

// The end of an answer does not restart the timer.
func TestTheEndOfAnAnswerIsNoProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var silent atomic.Bool
		r := &timedReader{r: strings.NewReader(""), timeout: time.Minute}
		r.silence = time.AfterFunc(time.Minute, func() { silent.Store(true) })
		time.Sleep(time.Minute - time.Second)
		_, err := r.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.True(t, silent.Load())
	})
}

func TestASizeFollowsWhatTheServerCanDo(t *testing.T) {
	t.Parallel()
	s := NewSize(1000)
	s.halve(1000, false)
	s.halve(1000, false) // two requests that were under way together
	require.Equal(t, 500, s.Ask())
	s.Worked()
	require.Equal(t, 532, s.Ask(), "it creeps back")
	for range 20 {
		s.Worked()
	}
	require.Equal(t, 1000, s.Ask())

	s.halve(600, true)
	for range 40 {
		s.Worked()
	}
	require.Equal(t, 300, s.Ask(), "what is refused for good is not asked for again")
	for asked := 300; asked > 1; asked = s.Ask() {
		s.halve(asked, true)
	}
	s.Worked()
	require.Equal(t, 1, s.Ask())
}

// An answer that stops in the middle was cut off, one that is no JSON is something else's, and the rest was meant.
func TestUnusable(t *testing.T) {
	t.Parallel()
	for _, text := range []string{``, ` `, `{`, `{"a":[1,2`, `{"a":"\`, `[tru`, "{\"a\":\"\xc3", `{"a":1,"a":`} {
		require.ErrorIs(t, client(t, "http://server").Unusable(Answer{Body: []byte(text)}), ErrCutOff, text)
	}
	for _, text := range []string{`[1]x`, `[1][2]`, `{"a":}`, `oops`, `{"a":1]`, "<html>", "\xff", "{\"a\":\"\xff\"}", "\x00", `"\x"`, `{"a":1}{`, `{a:1}`} {
		var strange *NotJSONError
		require.ErrorAs(t, client(t, "http://server").Unusable(Answer{Body: []byte(text)}), &strange, text)
	}
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	for _, text := range []string{`{}`, ` [1] `, `{"a":1,"a":2}`, `null`, `7`, `"\ud800"`, `"\u0000"`, deep} {
		require.NoError(t, client(t, "http://server").Unusable(Answer{Body: []byte(text)}), text)
	}
}
