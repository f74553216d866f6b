package bench

import (
	"context"
	"fmt"
	"strings"
)

// mostTimes is how many times as long as its fastest form a question may take in the report, and mostTimesNow a
// question of the past, beside the same one now.
const mostTimes, mostTimesNow = 1.5, 2

// bounds are how long ours may take beside another form, in ms; 0: there is no such form.
var bounds = []struct {
	what, name string
	most       func(ms map[string]float64) float64
}{
	{fmt.Sprintf("questions that take over %.1f times their fastest form", mostTimes), "fastest",
		func(ms map[string]float64) float64 { return mostTimes * ms[formFastest] }},
	{fmt.Sprintf("questions that take over %.1f times their fastest form, and 1 ms more", mostTimes), "fastest and 1 ms",
		func(ms map[string]float64) float64 {
			if ms[formFastest] == 0 {
				return 0
			}
			return max(mostTimes*ms[formFastest], ms[formFastest]+1)
		}},
	{"questions that take longer than in PQS's layout", "PQS", func(ms map[string]float64) float64 { return ms[formPQS] }},
}

// reportAsked reports the times of questions.
func (h *harness) reportAsked(ctx context.Context, list []*answered) error {
	facts := cells("creations", "exercises", "interface views", "active contracts", "of them holdings", "transfers",
		"MB of tables and indexes")
	counted, err := queryOne[[]string](ctx, h.db,
		`SELECT ARRAY[(SELECT count(*) FROM indexer.created)::text, (SELECT count(*) FROM indexer.exercised)::text,
		(SELECT count(*) FROM indexer.interface_views)::text, (SELECT count(*) FROM indexer.active_contracts)::text,
		(SELECT count(*) FROM indexer.active_contracts WHERE position_id IS NOT NULL)::text,
			(SELECT count(*) FROM indexer.transfers)::text,
		(SELECT sum(pg_total_relation_size(c.oid)) / 1000000 FROM pg_class c WHERE c.relkind = 'r'
			AND c.relnamespace = 'indexer'::regnamespace)::bigint::text]`)
	if err != nil {
		return err
	}
	h.add(section{title: "Questions in SQL: the database", table: [][]string{facts, counted}, notes: []string{
		"Written by the indexer itself, with all views of interfaces and the shape of ledger effects, and vacuumed. " +
			"Sessions have the settings of an analyst's role, one connection, and no parallel workers. Times are ms of " +
			"processor time of the server's process, planning included, so that what else the machine does counts little."}})
	table := [][]string{{"question", "rows", "ours", "fastest", "times", "PQS", "goal", "prepared: ours", "fastest",
		"times", "PQS", "after a restart: ours", "fastest", "PQS"}}
	for _, a := range list {
		table = append(table, a.row())
		if a.goal > 0 {
			h.target(target{what: a.title, measured: a.warm[formOurs], wanted: a.goal, atMost: true, unit: "ms", digits: 1})
		}
	}
	h.reportPast(list)
	h.reportBounds(list)
	h.add(section{title: "Questions in SQL: times", table: table, notes: []string{
		"Ours is what docs/sql.md and docs/types.md say, with the indexes that are made on demand for such questions: of " +
			"two fields and of an argument, of contract keys, of lifetimes by template, and of exercises by " +
			"choice, as PQS has contracts by template and exercises by choice. The fastest is the best that we know over the " +
			"tables beneath, or over a prototype of another table or index; PQS is the same question in the layout of the " +
			"Participant Query Store, in the same database. The run compares all answers. A prepared statement was planned " +
			"before: what it takes less than the question is the price of planning it. After a restart of PostgreSQL its own " +
			"memory is empty, and the system's is not. The numbers are those of the tasks of an analyst that the questions " +
			"come from.",
		"PQS's layout is ahead where most contracts of one template are read with their payloads: they are in a table of " +
			"their own, and ours among all others in the order of the ledger. It is ahead, too, in some questions that take " +
			"less than a millisecond, most of it to plan a view."}})
	return nil
}

// reportPast compares questions of the past with the same ones now.
func (h *harness) reportPast(list []*answered) {
	now := map[string]float64{}
	for _, a := range list {
		now[a.title] = a.warm[formOurs]
	}
	for _, a := range list {
		if a.now != "" {
			h.target(target{what: a.title + ": times as long as now", measured: a.warm[formOurs] / now[a.now],
				wanted: mostTimesNow, atMost: true, digits: 2})
		}
	}
}

// reportBounds counts the questions that take longer than a bound, and lists them.
func (h *harness) reportBounds(list []*answered) {
	missed := map[*answered][]string{}
	for _, how := range []struct {
		what string
		ms   func(*answered) map[string]float64
	}{
		{"", func(a *answered) map[string]float64 { return a.warm }},
		{", as prepared statements", func(a *answered) map[string]float64 { return a.prepared }},
	} {
		for _, b := range bounds {
			count := 0
			for _, a := range list {
				if most := b.most(how.ms(a)); most > 0 && how.ms(a)[formOurs] > most {
					count++
					missed[a] = append(missed[a], b.name+how.what)
				}
			}
			h.target(target{what: b.what + how.what, measured: float64(count), atMost: true})
		}
	}
	table := [][]string{{"question", "takes too long beside", "ours to execute", "to plan", "fastest to execute",
		"to plan", "PQS to execute", "to plan"}}
	for _, a := range list {
		if len(missed[a]) == 0 {
			continue
		}
		row := cells(a.title, strings.Join(missed[a], "; "))
		for _, form := range forms {
			row = append(row, ms(a.prepared, form), ms(a.planning(), form))
		}
		table = append(table, row)
	}
	h.add(section{title: "Questions in SQL: what is not reached", table: table, notes: []string{
		"The questions that the goals above count, in ms: how long a prepared statement takes, and how much longer the " +
			"question, which is the price of planning it."}})
}

// planning returns how much longer a question takes than as a prepared statement.
func (a *answered) planning() map[string]float64 {
	planning := map[string]float64{}
	for form, t := range a.warm {
		planning[form] = max(0, t-a.prepared[form])
	}
	return planning
}

// ms returns the time of a form as text; nothing where there is no such form.
func ms(by map[string]float64, form string) string {
	t, ok := by[form]
	switch {
	case !ok:
		return ""
	case t < 10:
		return fmt.Sprintf("%.2f", t)
	}
	return thousands(t)
}

// times returns how many times as long as its fastest form a question takes; 0 where it has no other form.
func times(ms map[string]float64) float64 {
	if ms[formFastest] == 0 {
		return 0
	}
	return ms[formOurs] / ms[formFastest]
}

func (a *answered) row() []string {
	ratio := func(by map[string]float64) string {
		if times(by) == 0 {
			return ""
		}
		return fmt.Sprintf("%.2f", times(by))
	}
	goal := ""
	if a.goal > 0 {
		goal = fmt.Sprintf("%.0f", a.goal)
	}
	return cells(a.title, thousands(float64(a.rows)), ms(a.warm, formOurs), ms(a.warm, formFastest), ratio(a.warm),
		ms(a.warm, formPQS), goal,
		ms(a.prepared, formOurs), ms(a.prepared, formFastest), ratio(a.prepared), ms(a.prepared, formPQS),
		ms(a.cold, formOurs), ms(a.cold, formFastest), ms(a.cold, formPQS))
}
