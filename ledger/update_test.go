package ledger

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each list of an update counts: who adds a kind of event can't forget it.
func TestElementsOfAnUpdate(t *testing.T) {
	t.Parallel()
	var u Update
	lists := 0
	for i := range reflect.TypeFor[Update]().NumField() {
		if field := reflect.ValueOf(&u).Elem().Field(i); field.Kind() == reflect.Slice && field.Type().Elem().Kind() == reflect.Struct {
			field.Set(reflect.MakeSlice(field.Type(), 1<<lists, 1<<lists))
			lists++
		}
	}
	require.Positive(t, lists)
	require.Equal(t, 1<<lists-1, u.Elements())
}

// What is redacted of an update goes from each list, and what others have of the update stays.
func TestRedactingAnUpdate(t *testing.T) {
	t.Parallel()
	filled := func() (u Update) {
		u.Extra = JSON(`{}`)
		for i := range reflect.TypeFor[Update]().NumField() {
			field := reflect.ValueOf(&u).Elem().Field(i)
			if field.Kind() != reflect.Slice || field.Type().Elem().Kind() != reflect.Struct {
				continue
			}
			field.Set(reflect.MakeSlice(field.Type(), 2, 2))
			for j := range 2 {
				content := field.Index(j).FieldByName("Extra")
				if !content.IsValid() {
					content = field.Index(j).FieldByName("Raw")
				}
				content.Set(reflect.ValueOf(JSON(`{}`)))
			}
		}
		u.Created[0].ContractID, u.Created[0].InterfaceViews = "00", []InterfaceView{{Value: JSON(`{}`)}}
		return u
	}
	whole := filled()
	u := whole
	u.Redact(true, nil)
	require.Equal(t, filled(), whole)
	require.Equal(t, Update{
		Created:  []CreatedEvent{{ContractID: "00", InterfaceViews: make([]InterfaceView, 1)}, {}},
		Archived: make([]ArchivedEvent, 2), Exercised: make([]ExercisedEvent, 2), Assigned: make([]AssignedEvent, 2),
		Unassigned: make([]UnassignedEvent, 2), Topology: make([]TopologyEvent, 2), Unknown: make([]UnknownElement, 2),
	}, u)
	u = whole
	u.Redact(false, func(e Element) bool { return e.Contract() == "00" })
	require.Nil(t, u.Created[0].Extra)
	require.Equal(t, whole.Created[1], u.Created[1])
	require.Equal(t, whole.Archived, u.Archived)
	require.Equal(t, filled(), whole)
}
