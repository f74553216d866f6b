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

// A slow server that keeps sending is waited for, however long the whole answer takes.
func TestOnlySilenceTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const silence = time.Minute
		var silent atomic.Bool
		timer := time.AfterFunc(silence, func() { silent.Store(true) })
		r := &timedReader{r: strings.NewReader("slow"), silence: timer, timeout: silence}
		for range "slow" {
			time.Sleep(silence - time.Second) // in the test's own time
			n, err := r.Read(make([]byte, 1))
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}
		time.Sleep(silence - time.Second)
		synctest.Wait()
		require.False(t, silent.Load())
		_, err := r.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.True(t, silent.Load(), "the end of the answer does not restart the timer")
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
		require.False(t, strange.Stays)
	}
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	for _, text := range []string{`{}`, ` [1] `, `{"a":1,"a":2}`, `null`, `7`, `"\ud800"`, `"\u0000"`, deep} {
		require.NoError(t, client(t, "http://server").Unusable(Answer{Body: []byte(text)}), text)
	}
}
