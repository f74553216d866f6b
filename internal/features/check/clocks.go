package check

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// clock is how far another machine's clock is ahead of this one's.
type clock struct {
	of        string
	ahead     time.Duration
	tolerance time.Duration // of the measurement
}

// Clocks count as equal if they differ by at most clockEqual. Beyond clockGrave, tokens and certificates are misjudged.
const (
	clockEqual = 5 * time.Second
	clockGrave = 30 * time.Second
)

// clockOf notes the clock of a server by its first answer, if there is one. Its header has whole seconds.
func (c *checker) clockOf(of string, e endpoint) {
	if e.answer == nil {
		return
	}
	date, err := http.ParseTime(e.answer.Header.Get("Date"))
	if err != nil {
		return
	}
	middle := date.Add(time.Second / 2)
	c.clocks = append(c.clocks, clock{of: of, ahead: middle.Sub(e.asked.Add(e.took / 2)),
		tolerance: e.took/2 + time.Second/2})
}

func (c *checker) checkClocks() {
	s := c.section(GroupClocks)
	for _, k := range c.clocks {
		topic := strings.ToLower(strings.Fields(k.of)[0])
		off := max(0, k.ahead.Abs()-k.tolerance).Round(time.Second)
		direction := "ahead of"
		if k.ahead < 0 {
			direction = "behind"
		}
		text := fmt.Sprintf("the clock of the %s is %v %s this machine's", k.of, k.ahead.Abs().Round(time.Second), direction)
		switch {
		case off <= clockEqual:
			s.ok(topic, "the clock of the %s and this machine's agree", k.of)
		case off <= clockGrave:
			s.note(topic, "%s", text)
		default:
			s.warn(topic, text, "set the machines' clocks by NTP: otherwise the validity of tokens and certificates is "+
				"misjudged, and lag is wrong")
		}
	}
}
