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

// A server that is slow, and goes on, is waited for, however long all of it takes.
func TestOnlySilenceIsWatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const silence = time.Minute
		var silent atomic.Bool
		watch := time.AfterFunc(silence, func() { silent.Store(true) })
		r := &movingReader{r: strings.NewReader("slow"), watch: watch, silence: silence}
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
		require.True(t, silent.Load(), "the end is nothing that came")
	})
}

func TestASizeFollowsWhatTheServerCanDo(t *testing.T) {
	t.Parallel()
	s := NewSize(1000)
	s.Halve(1000, false)
	s.Halve(1000, false) // two requests that were under way together
	require.Equal(t, 500, s.Ask())
	s.Worked()
	require.Equal(t, 532, s.Ask(), "it creeps back")
	for range 20 {
		s.Worked()
	}
	require.Equal(t, 1000, s.Ask())

	s.Halve(600, true)
	for range 40 {
		s.Worked()
	}
	require.Equal(t, 300, s.Ask(), "what is refused for good is not asked for again")
	for asked := 300; asked > 1; asked = s.Ask() {
		s.Halve(asked, true)
	}
	s.Worked()
	require.Equal(t, 1, s.Ask())
}

// Only an answer that stops in the middle was cut off.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	for text, unfinished := range map[string]bool{
		``: true, ` `: true, `{`: true, `{"a":[1,2`: true, `{"a":"\`: true, `[tru`: true, "{\"a\":\"\xc3": true,
		`{}`: false, `[1]x`: false, `{"a":}`: false, `oops`: false, `{"a":1]`: false,
	} {
		err := Unfinished([]byte(text))
		if unfinished {
			require.ErrorIs(t, err, ErrCutOff, text)
		} else {
			require.NoError(t, err, text)
		}
	}
}
