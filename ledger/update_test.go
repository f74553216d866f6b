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
