package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// answered is what was measured of a question.
type answered struct {
	question
	rows int
	warm map[string]float64 // ms, by form: the median
	cold map[string]float64 // ms, the first time after a restart of the server

	prepared map[string]float64 // ms, by form: the median of a prepared statement, which was planned before
}

// longEnough ends the repetitions of a question: its forms together have taken this long.
const longEnough = 30 * time.Second

// ask asks all questions in all forms, compares the answers and reports the times.
func (h *harness) ask(ctx context.Context) error {
	if err := h.db.server.Restart(ctx); err != nil { // with the setting
		return err
	}
	conn, err := h.analyst(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	values, err := parameterValues(ctx, conn)
	if err != nil {
		return err
	}
	var list []*answered
	var failed error
	for _, theme := range questionThemes {
		questions, err := readQuestions(theme)
		if err != nil {
			return err
		}
		for _, q := range questions {
			a, err := h.askWarm(ctx, conn, q, values)
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("question %q: %w", q.title, err))
				continue
			}
			list = append(list, a)
			h.say("%s: %d rows; ms %v, prepared %v", a.title, a.rows, a.warm, a.prepared)
		}
	}
	if failed != nil {
		return failed
	}
	for _, a := range list {
		if !h.Cold {
			break
		}
		for form := range a.form {
			if a.cold[form], err = h.askCold(ctx, a.form[form]); err != nil {
				return err
			}
		}
		h.say("%s: ms after a restart %v", a.title, a.cold)
	}
	return h.reportAsked(ctx, list)
}

// analyst connects as an analyst does.
func (h *harness) analyst(ctx context.Context) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(h.db.url())
	if err != nil {
		return nil, err
	}
	maps.Copy(config.RuntimeParams, askSettings)
	return pgx.ConnectConfig(ctx, config)
}

// parameterValues finds the values of the parameters.
func parameterValues(ctx context.Context, conn *pgx.Conn) (map[string]string, error) {
	list, err := readParameters()
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for _, p := range list {
		query, err := fill(p.query, values)
		if err != nil {
			return nil, err
		}
		rows, _, err := answerOf(ctx, conn, query)
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", p.name, err)
		}
		if len(rows) != 1 || rows[0] == null {
			return nil, fmt.Errorf("parameter %s: there is no such value: %s", p.name, query)
		}
		values[p.name] = rows[0]
	}
	return values, nil
}

// null is how an answer has NULL.
const null = "\\N"

// answerOf runs a query, and returns its rows as text, and the processor time of the server's process, or where the
// system does not report it how long it took until all rows were here.
func answerOf(ctx context.Context, conn *pgx.Conn, query string) (rows []string, took time.Duration, err error) {
	before, known := onProcessor(conn.PgConn().PID())
	began := time.Now()
	results, err := conn.PgConn().Exec(ctx, query).ReadAll()
	took = time.Since(began)
	if after, ok := onProcessor(conn.PgConn().PID()); ok && known {
		took = after - before
	}
	if err != nil {
		return nil, took, fmt.Errorf("%w: %s", err, query)
	}
	for _, row := range results[len(results)-1].Rows {
		columns := make([]string, len(row))
		for i, value := range row {
			if columns[i] = string(value); value == nil {
				columns[i] = null
			}
		}
		rows = append(rows, strings.Join(columns, "\t"))
	}
	return rows, took, nil
}

// askWarm asks a question in each form once, and compares the answers; then again and again, in turns.
func (h *harness) askWarm(ctx context.Context, conn *pgx.Conn, q question,
	values map[string]string) (a *answered, err error) {
	a = &answered{question: q, cold: map[string]float64{}}
	var first []string
	for _, form := range forms {
		if q.form[form] == "" {
			continue
		}
		if q.form[form], err = fill(q.form[form], values); err != nil {
			return nil, err
		}
		rows, _, err := answerOf(ctx, conn, q.form[form])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", form, err)
		}
		slices.Sort(rows)
		if form == formOurs {
			first, a.rows = rows, len(rows)
		} else if err := sameRows(first, rows); err != nil {
			return nil, fmt.Errorf("%s: %w", form, err)
		}
	}
	if a.warm, err = h.inTurns(ctx, conn, a.form); err != nil {
		return nil, err
	}
	executions := map[string]string{}
	for form, query := range a.form {
		if _, _, err := answerOf(ctx, conn, "PREPARE "+form+" AS "+query); err != nil {
			return nil, err
		}
		executions[form] = "EXECUTE " + form
		if _, _, err := answerOf(ctx, conn, executions[form]); err != nil { // this plans it
			return nil, err
		}
	}
	if a.prepared, err = h.inTurns(ctx, conn, executions); err != nil {
		return nil, err
	}
	_, _, err = answerOf(ctx, conn, "DEALLOCATE ALL")
	return a, err
}

// inTurns runs queries by form, each again and again, in turns, and returns how many ms each takes: the median.
func (h *harness) inTurns(ctx context.Context, conn *pgx.Conn, queries map[string]string) (map[string]float64, error) {
	times := map[string][]float64{}
	began := time.Now()
	for i := 0; i < h.Runs && (i == 0 || time.Since(began) < longEnough); i++ {
		for _, form := range forms {
			if queries[form] == "" {
				continue
			}
			_, took, err := answerOf(ctx, conn, queries[form])
			if err != nil {
				return nil, err
			}
			times[form] = append(times[form], milliseconds(took))
		}
	}
	medians := map[string]float64{}
	for form, list := range times {
		medians[form] = median(list)
	}
	return medians, nil
}

// sameRows returns an error that names the first rows that only one of two sorted answers has.
func sameRows(ours, theirs []string) error {
	if slices.Equal(ours, theirs) {
		return nil
	}
	only := func(a, b []string) string {
		for _, row := range a {
			if _, found := slices.BinarySearch(b, row); !found {
				return row
			}
		}
		return "nothing"
	}
	return fmt.Errorf("the answer is another one: ours has %d rows and this one %d; only ours has %s; only this one "+
		"has %s", len(ours), len(theirs), only(ours, theirs), only(theirs, ours))
}

// askCold restarts the server and asks once.
func (h *harness) askCold(ctx context.Context, query string) (ms float64, err error) {
	if err := h.db.server.Restart(ctx); err != nil {
		return 0, err
	}
	conn, err := h.analyst(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	_, took, err := answerOf(ctx, conn, query)
	return milliseconds(took), err
}

// onProcessor returns for how long a process of one thread has been on a processor. Only Linux reports it to the
// nanosecond.
func onProcessor(pid uint32) (d time.Duration, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return 0, false
	}
	_, err = fmt.Sscan(string(text), &d)
	return d, err == nil
}
