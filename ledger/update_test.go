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
			if id := field.Index(0).FieldByName("ContractID"); id.IsValid() {
				id.SetString("00")
				require.Equal(t, "00", field.Index(0).Addr().Interface().(Element).Contract(), field.Type())
			}
		}
	}
	require.Positive(t, lists)
	require.Equal(t, 1<<lists-1, u.Elements())
}

// What is redacted of an update goes from each list, and what others have of the update stays.
func TestRedactingAnUpdate(t *testing.T) {
	t.Parallel()
	contents := func(u *Update) (all []JSON) { // of each element of each list
		for i := range reflect.TypeFor[Update]().NumField() {
			list := reflect.ValueOf(u).Elem().Field(i)
			if list.Kind() != reflect.Slice || list.Type().Elem().Kind() != reflect.Struct {
				continue
			}
			if list.Len() == 0 {
				list.Set(reflect.MakeSlice(list.Type(), 2, 2))
			}
			for j := range list.Len() {
				content := list.Index(j).FieldByName("Extra")
				if !content.IsValid() {
					content = list.Index(j).FieldByName("Raw")
				}
				if u.Extra == nil { // being filled
					content.Set(reflect.ValueOf(JSON(`{}`)))
				}
				all = append(all, content.Interface().(JSON))
			}
		}
		return all
	}
	var before Update
	full := contents(&before)
	before.Extra = JSON(`{}`)
	before.Created[0].ContractID, before.Created[0].InterfaceViews = "00", []InterfaceView{{Value: JSON(`{}`)}}

	created := func(e Element) bool {
		_, is := e.(*CreatedEvent)
		return is
	}
	u := before
	u.Redact(true, created)
	require.Nil(t, u.Extra)
	u.Extra = JSON(`{}`)
	require.Equal(t, make([]JSON, len(full)), contents(&u))
	require.Equal(t, make([]InterfaceView, 1), u.Created[0].InterfaceViews)
	u = before
	u.Redact(true, func(Element) bool { return false })
	require.Equal(t, before.Created, u.Created, "of contracts it stays")
	u.Redact(false, created)
	u.Extra = JSON(`{}`)
	require.Equal(t, make([]JSON, len(full)), contents(&u))
	require.Equal(t, full, contents(&before), "others have it too")
	require.NotNil(t, before.Created[0].InterfaceViews[0].Value)

	u = before
	u.Redact(false, func(e Element) bool { return e.Contract() == "00" })
	require.Nil(t, u.Created[0].Extra)
	require.Equal(t, full[1:], contents(&u)[1:], "of others it stays")
}
