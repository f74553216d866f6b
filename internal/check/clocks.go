package check

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// clock is how far another machine's clock is ahead of this one's, give or take.
type clock struct {
	of    string
	ahead time.Duration
	give  time.Duration
}

// Clocks that differ by less are as good as equal; by more than clockGrave tokens and certificates are judged wrongly.
const (
	clockEqual = 5 * time.Second
	clockGrave = 30 * time.Second
)

// clockOf notes what time it was where an answer came from. The header has whole seconds.
func (c *checker) clockOf(of string, v *visit) {
	date, err := http.ParseTime(v.header.Get("Date"))
	if err != nil {
		return
	}
	middle := date.Add(time.Second / 2)
	c.clocks = append(c.clocks, clock{of: of, ahead: middle.Sub(v.asked.Add(v.took / 2)), give: v.took/2 + time.Second/2})
}

func (c *checker) checkClocks() {
	s := c.section(GroupClocks)
	for _, k := range c.clocks {
		topic := strings.ToLower(strings.Fields(k.of)[0])
		off := max(0, k.ahead.Abs()-k.give).Round(time.Second)
		way := "ahead of"
		if k.ahead < 0 {
			way = "behind"
		}
		text := fmt.Sprintf("the clock of the %s is %v %s this machine's", k.of, k.ahead.Abs().Round(time.Second), way)
		switch {
		case off <= clockEqual:
			s.ok(topic, "the clock of the %s and this machine's agree", k.of)
		case off <= clockGrave:
			s.note(topic, "%s", text)
		default:
			s.warn(topic, text, "have the machines' clocks set by NTP: tokens and certificates are judged by them, and lag is shown wrongly")
		}
	}
}
