package app

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
)

// answerWriter writes an answer, whose size is bounded.
type answerWriter struct {
	*bufio.Writer
	bytes, values int64 // left
}

func (w *answerWriter) put(text string) {
	w.bytes -= int64(len(text))
	w.values -= values(text)
	if _, err := w.WriteString(text); err != nil { // the client has gone
		w.bytes = 0
	}
}

// values counts as the limit does. No text of an answer holds these characters.
func values(text string) (n int64) {
	for _, mark := range []string{",", "[", "{"} {
		n += int64(strings.Count(text, mark))
	}
	return n
}

// fill writes piece after piece with commas between them until there is no room for more.
func (w *answerWriter) fill(piece func(i int) string) {
	for i := 0; ; i++ {
		text := piece(i)
		if w.bytes < int64(len(text))+1000 || w.values < values(text)+100 {
			return
		}
		if i > 0 {
			w.put(",")
		}
		w.put(text)
	}
}

func same(text string) func(int) string { return func(int) string { return text } }

// thousand are a thousand pieces at once, which is quick: in each # is the number of all of them, and % three digits of
// its own.
func thousand(piece string) func(int) string {
	all := make([]string, 1000)
	for i := range all {
		all[i] = strings.ReplaceAll(piece, "%", fmt.Sprintf("%03d", i))
	}
	text := strings.Join(all, ",")
	return func(i int) string { return strings.ReplaceAll(text, "#", strconv.Itoa(i)) }
}

// page writes a page of updates after an offset, with a writer of each update's JSON.
func (w *answerWriter) page(after, last int64, updates func()) {
	w.put(`{"lowestPageOffsetExclusive":` + strconv.FormatInt(after, 10) + `,"updates":[`)
	updates()
	w.put(`],"highestPageOffsetInclusive":` + strconv.FormatInt(last, 10) + `,"nextPageToken":null}`)
}

// transaction writes an update that is one creation, with a writer of what stands in its argument.
func (w *answerWriter) transaction(offset int64, events func()) {
	w.put(fmt.Sprintf(`{"update":{"Transaction":{"value":{"updateId":"u%[1]d","commandId":"","workflowId":"","effectiveAt":"2025-01-01T00:00:00Z",`+
		`"offset":%[1]d,"synchronizerId":"s::1","recordTime":"2025-01-01T00:00:00Z","events":[`, offset))
	events()
	w.put(`]}}}}`)
}

func (w *answerWriter) created(offset int64, argument func()) {
	w.transaction(offset, func() {
		w.put(fmt.Sprintf(`{"CreatedEvent":{"offset":%[1]d,"nodeId":0,"contractId":"c%[1]d","templateId":"p:M:T","witnessParties":["a"],`+
			`"signatories":["a"],"observers":[],"createdAt":"2025-01-01T00:00:00Z","packageName":"p","createArgument":`, offset))
		argument()
		w.put(`}}`)
	})
}

const never = 1 << 40 // an offset

// hostileAnswers are answers to a read of updates, by what is large in them.
var hostileAnswers = []struct {
	name  string
	part  int64 // as in a scenario
	write func(w *answerWriter, after int64)
	log   string // what the indexer says of it; empty: it reads on
}{
	{"pages of large contracts", 8, func(w *answerWriter, after int64) {
		w.page(after, after+100, func() {
			text := strings.Repeat("x", int(w.bytes/100-1000))
			for i := range int64(100) {
				if i > 0 {
					w.put(",")
				}
				w.created(after+1+i, func() { w.put(`{"text":"` + text + `"}`) })
			}
		})
	}, ""},
	{"nested as deep as is read, again and again", 1, func(w *answerWriter, after int64) {
		deep := strings.Repeat("[", 9900) + strings.Repeat("]", 9900)
		w.page(after, after+1, func() {
			w.created(after+1, func() { w.put("["); w.fill(same(deep)); w.put("]") })
		})
	}, ""},
	{"millions of values", 1, func(w *answerWriter, after int64) {
		w.page(after, after+1, func() { w.created(after+1, func() { w.put("["); w.fill(thousand("{}")); w.put("]") }) })
	}, ""},
	{"millions of members", 4, func(w *answerWriter, after int64) {
		w.page(after, after+1, func() {
			w.created(after+1, func() {
				w.put("{")
				w.fill(thousand(`"a member of some length #%":0`))
				w.put("}")
			})
		})
	}, ""},
	{"very many unknown members", 8, func(w *answerWriter, after int64) {
		w.page(after, after+1, func() {
			w.transaction(after+1, func() {
				w.put(`{"NewEvent":{`)
				w.fill(thousand(`"a member of some length #%":0`))
				w.put("}}")
			})
		})
	}, ""},
	{"millions of events that are none", 1, func(w *answerWriter, after int64) {
		w.page(after, after+1, func() { w.transaction(after+1, func() { w.fill(thousand("{}")) }) })
	}, "holds no variant"},
	{"millions of updates", 1, func(w *answerWriter, after int64) {
		w.page(after, after+never, func() {
			updates := thousand(`{"update":{"N":{"offset":#%}}}`)
			w.fill(func(i int) string { return updates(int(after)/1000 + 1 + i) })
		})
	}, "no server serves as many at once"},
	{"very many updates", 8, func(w *answerWriter, after int64) {
		w.page(after, after+100_000, func() {
			updates := thousand(`{"update":{"N":{"offset":#%,"text":"` + strings.Repeat("x", 100) + `"}}}`)
			w.fill(func(i int) string { return updates(int(after)/1000 + 1 + i) })
		})
	}, ""},
	{"times of very many synchronizers", 1, func(w *answerWriter, after int64) {
		w.page(after, after+1, func() {
			w.put(fmt.Sprintf(`{"update":{"OffsetCheckpoint":{"value":{"offset":%d,"synchronizerTimes":[`, after+1))
			w.fill(thousand(`{"synchronizerId":"s::#%","recordTime":"2025-01-01T00:00:00Z"}`))
			w.put(`]}}}}`)
		})
	}, "one for each synchronizer"},
}
