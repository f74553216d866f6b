package bench

import (
	"embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

//go:embed questions/*.sql
var questionFiles embed.FS

// The files of questions, in the order of the report. Beside them are pqs.sql, fastest.sql and parameters.sql.
var questionThemes = []string{"holdings", "state", "events", "history"}

// The forms of a question.
const (
	formOurs    = "ours"    // as an analyst writes it, who has read docs/sql.md
	formFastest = "fastest" // over the tables beneath, or over a prototype
	formPQS     = "pqs"     // over PQS's own layout
)

var forms = []string{formOurs, formFastest, formPQS}

// question is what an analyst asks, in one or more forms with the same answer.
type question struct {
	title string
	goal  float64 // ms that ours takes at most; 0: none
	now   string  // the title of the same question now, which this one asks of the past
	form  map[string]string
}

// readQuestions reads the questions of a theme: a title after "-- #", lines such as "-- goal 5" and "-- now TITLE", and
// each form after a line with its name.
func readQuestions(theme string) (list []question, err error) {
	text, err := questionFiles.ReadFile("questions/" + theme + ".sql")
	if err != nil {
		return nil, err
	}
	var q *question
	form := ""
	for line := range strings.Lines(string(text)) {
		word, isWord := strings.CutPrefix(strings.TrimSpace(line), "-- ")
		title, isTitle := strings.CutPrefix(word, "# ")
		goal, isGoal := strings.CutPrefix(word, "goal ")
		now, isPast := strings.CutPrefix(word, "now ")
		switch {
		case isWord && isTitle:
			list = append(list, question{title: title, form: map[string]string{}})
			q, form = &list[len(list)-1], ""
		case q == nil:
			return nil, fmt.Errorf("questions about %s: %q stands before the first title", theme, line)
		case isWord && isGoal:
			if q.goal, err = strconv.ParseFloat(goal, 64); err != nil {
				return nil, fmt.Errorf("question %q: %w", q.title, err)
			}
		case isWord && isPast:
			q.now = now
		case isWord:
			form = word
		default:
			q.form[form] += line
		}
	}
	return list, nil
}

// parameter is a value that questions name, and the query that finds it.
type parameter struct{ name, query string }

// readParameters reads them in order: each may name those before it. A name is a comment of one word, after an empty
// line or a query.
func readParameters() (list []parameter, err error) {
	text, err := questionFiles.ReadFile("questions/parameters.sql")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		word, isWord := strings.CutPrefix(strings.TrimSpace(line), "-- ")
		switch {
		case isWord && strings.Contains(word, " "): // a remark
		case isWord:
			list = append(list, parameter{name: word})
		case len(list) > 0:
			list[len(list)-1].query += line
		}
	}
	return list, nil
}

// named is a parameter in a query, as psql writes it: :name, or :'name' for a quoted text. It is no cast.
var named = regexp.MustCompile(`(^|[^:]):('?)([a-z][a-z_]*)('?)`)

// fill puts values in place of the parameters that a query names.
func fill(query string, values map[string]string) (filled string, err error) {
	filled = named.ReplaceAllStringFunc(query, func(match string) string {
		parts := named.FindStringSubmatch(match)
		value, ok := values[parts[3]]
		switch {
		case !ok:
			err = fmt.Errorf("there is no parameter %s for: %s", parts[3], query)
		case parts[2] != "":
			value = "'" + strings.ReplaceAll(value, "'", "''") + "'"
		}
		return parts[1] + value
	})
	return filled, err
}
