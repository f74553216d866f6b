package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A question that takes longer than a goal allows is counted and listed, with what planning takes of it.
func TestWhatTakesTooLongIsListed(t *testing.T) {
	h := &harness{report: &report{}}
	h.reportBounds([]*answered{
		{question: question{title: "fast"}, warm: map[string]float64{formOurs: 3, formFastest: 2, formPQS: 3}, prepared: map[string]float64{formOurs: 3, formFastest: 2, formPQS: 3}},
		{question: question{title: "slow"}, warm: map[string]float64{formOurs: 4, formFastest: 2}, prepared: map[string]float64{formOurs: 2.5, formFastest: 2.25}},
		{question: question{title: "behind"}, warm: map[string]float64{formOurs: 2, formPQS: 1.5}, prepared: map[string]float64{formOurs: 1, formPQS: 1.5}},
	})
	var counted []float64
	for _, target := range h.report.targets {
		counted = append(counted, target.measured)
	}
	require.Equal(t, []float64{1, 1, 1, 0, 0, 0}, counted)
	require.Equal(t, [][]string{
		{"slow", "fastest; fastest and 1 ms", "2.50", "1.50", "2.25", "0.00", "", ""},
		{"behind", "PQS", "1.00", "1.00", "", "", "1.50", "0.00"},
	}, h.report.sections[0].table[1:])
}

// What is asked of the past is compared with a question that there is.
func TestQuestionsOfThePastNameOneOfNow(t *testing.T) {
	titles := map[string]bool{}
	var named []string
	for _, theme := range questionThemes {
		questions, err := readQuestions(theme)
		require.NoError(t, err)
		for _, q := range questions {
			titles[q.title] = true
			if q.now != "" {
				named = append(named, q.now)
			}
		}
	}
	require.NotEmpty(t, named)
	for _, title := range named {
		require.True(t, titles[title], title)
	}
}
