package audit

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
)

// renderedJSON writes a value as a server may that writes it anew: members in another order, with one that is null, and
// numbers in texts with another digit.
func renderedJSON(value ledger.JSON, r *rand.Rand) ledger.JSON {
	var any any
	if value == nil || json.Unmarshal(value, &any) != nil || strings.Contains(string(value), `\u`) {
		return value
	}
	d := json.NewDecoder(strings.NewReader(string(value)))
	d.UseNumber()
	if d.Decode(&any) != nil {
		return value
	}
	text, err := json.Marshal(renderedAny(any, r))
	if err != nil {
		return value
	}
	return text
}

func renderedAny(value any, r *rand.Rand) any {
	switch value := value.(type) {
	case []any:
		for i := range value {
			value[i] = renderedAny(value[i], r)
		}
	case map[string]any:
		for name := range value {
			value[name] = renderedAny(value[name], r)
		}
		value["newField"] = nil
	case string:
		if whole, fraction, ok := strings.Cut(value, "."); ok && len(fraction) == 10 && strings.Trim(whole+fraction, "0123456789") == "" {
			return value + []string{"", "0", "E+0"}[r.IntN(3)]
		}
	}
	return value
}

// renderedPage is the page as the server renders it anew; its views too, if it prefers another package.
func renderedPage(page ledger.Page, r *rand.Rand, other bool) ledger.Page {
	page.Updates = slices.Clone(page.Updates)
	for i := range page.Updates {
		u := &page.Updates[i]
		u.Created, u.Exercised = slices.Clone(u.Created), slices.Clone(u.Exercised)
		for j := range u.Created {
			c := &u.Created[j]
			c.Argument, c.ContractKey, c.Extra = renderedJSON(c.Argument, r), renderedJSON(c.ContractKey, r), renderedJSON(c.Extra, r)
			if c.Extra == nil {
				c.Extra = ledger.JSON(`{"notYetKnown":null}`)
			}
			c.InterfaceViews = slices.Clone(c.InterfaceViews)
			for k := range c.InterfaceViews {
				v := &c.InterfaceViews[k]
				v.Value = renderedJSON(v.Value, r)
				if other {
					v.ImplementationPackageID, v.Value = new("pkg-other"), ledger.JSON(`{"by":"another"}`)
				}
			}
			if n := len(c.InterfaceViews); other && n > 0 && r.IntN(3) == 0 {
				c.InterfaceViews = c.InterfaceViews[1:]
			} else if other && n > 0 && r.IntN(3) == 0 {
				c.InterfaceViews = append(c.InterfaceViews, ledger.InterfaceView{InterfaceID: "pkg-9:Other:View", StatusCode: new(int32(0))})
			}
		}
		for j := range u.Exercised {
			e := &u.Exercised[j]
			e.Argument, e.Result = renderedJSON(e.Argument, r), renderedJSON(e.Result, r)
		}
	}
	return page
}

// changes are what a server may show that is another fact.
var changes = map[string]func(u *ledger.Update) bool{
	"a field of a contract": func(u *ledger.Update) bool {
		return ofCreation(u, func(c *ledger.CreatedEvent) bool { return changedField(&c.Argument) })
	},
	"a field of an argument": func(u *ledger.Update) bool {
		return len(u.Exercised) > 0 && changedField(&u.Exercised[0].Argument)
	},
	"a witness": func(u *ledger.Update) bool {
		return ofCreation(u, func(c *ledger.CreatedEvent) bool {
			c.WitnessParties = append(slices.Clone(c.WitnessParties), "zoe::1220")
			return true
		})
	},
	"a signatory": func(u *ledger.Update) bool {
		return ofCreation(u, func(c *ledger.CreatedEvent) bool {
			c.Signatories = append(slices.Clone(c.Signatories), "zoe::1220")
			return true
		})
	},
	"an actor": func(u *ledger.Update) bool {
		return len(u.Exercised) > 0 && setTo(&u.Exercised[0].ActingParties, []string{"zoe::1220"})
	},
	"a choice": func(u *ledger.Update) bool { return len(u.Exercised) > 0 && setTo(&u.Exercised[0].Choice, "Another") },
	"a template": func(u *ledger.Update) bool {
		return ofCreation(u, func(c *ledger.CreatedEvent) bool { return setTo(&c.TemplateID, "pkg-1:Main:Another") })
	},
	"an id":    func(u *ledger.Update) bool { return setTo(&u.ID, u.ID+"x") },
	"an event": func(u *ledger.Update) bool { return len(u.Archived) > 0 && setTo(&u.Archived, u.Archived[1:]) },
	"a new field": func(u *ledger.Update) bool {
		return ofCreation(u, func(c *ledger.CreatedEvent) bool { return setTo(&c.Extra, ledger.JSON(`{"new":0}`)) })
	},
}

func setTo[T any](value *T, to T) bool {
	*value = to
	return true
}

func ofCreation(u *ledger.Update, change func(*ledger.CreatedEvent) bool) bool {
	return len(u.Created) > 0 && change(&u.Created[0])
}

func changedField(value *ledger.JSON) bool {
	var object map[string]any
	if json.Unmarshal(*value, &object) != nil || len(object) == 0 {
		return false
	}
	for name := range object {
		object[name] = "changed"
	}
	text, err := json.Marshal(object)
	*value = text
	return err == nil
}

// However a participant renders what it stores: only what it changes is a difference, always, and so is what is changed
// of what is stored.
func TestRenderingsAndChanges(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "compares again and again")
	c := newCompared(t)
	r := rand.New(rand.NewPCG(5, 6))
	compare := func(page ledger.Page, statements ...string) (real, rendered []Difference) {
		tx := c.spoil(append([]string{"SELECT 1"}, statements...)...)
		require.NoError(t, c.store.compare(t.Context(), tx, page, func(d Difference) {
			if d.Rendering == nil {
				real = append(real, d)
			} else {
				rendered = append(rendered, d)
			}
		}))
		require.NoError(t, tx.Rollback(t.Context()))
		return real, rendered
	}
	real, rendered := compare(renderedPage(c.page, r, false))
	require.Empty(t, real)
	require.Empty(t, rendered)
	real, rendered = compare(c.page, "UPDATE indexer.interface_views SET view_value = '{}' WHERE implementation_package_id IS NOT NULL AND status_code = 0")
	require.NotEmpty(t, real, "the same package computed something else")
	require.Empty(t, rendered)
	for _, other := range []bool{false, true} {
		for name, change := range changes {
			page := renderedPage(c.page, r, other)
			made := false
			for i := r.IntN(len(page.Updates) / 2); i < len(page.Updates) && !made; i++ {
				made = change(&page.Updates[i])
			}
			require.True(t, made, name)
			real, rendered = compare(page)
			require.NotEmpty(t, real, name)
			require.Equal(t, other, len(rendered) > 0, name)
		}
		page := renderedPage(c.page, r, other)
		for _, damage := range []string{
			"UPDATE indexer.created SET payload = jsonb_set(payload, '{damaged}', 'true') WHERE ctid = (SELECT min(ctid) FROM indexer.created WHERE payload IS NOT NULL)",
			"UPDATE indexer.created SET signatories_ref = witness_parties_ref WHERE signatories_ref <> witness_parties_ref",
			"UPDATE indexer.exercised SET choice_argument = '{}'", "UPDATE indexer.archived SET witness_parties_ref = NULL",
			"UPDATE indexer.interface_views SET contract_id = 'another'",
			"DELETE FROM indexer.template_interfaces",
		} {
			real, _ = compare(page, damage)
			require.NotEmpty(t, real, damage)
		}
	}
	real, rendered = compare(renderedPage(c.page, r, true))
	require.Empty(t, real)
	kinds := map[Disagreement]bool{}
	for _, d := range rendered {
		kinds[d.Kind] = true
		if d.Relation == "interface_views" && d.Kind == Altered {
			require.Equal(t, "pkg-other", *d.Rendering.Ledger)
			require.Contains(t, d.String(), `: rendered otherwise, by package "pkg-other" now and by `)
		}
	}
	require.Len(t, kinds, 3, rendered)
}
