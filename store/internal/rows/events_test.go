package rows

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// A carried row has every column of the fact that it stands for, where its table has one of that name.
func TestCarriedRowsSayWhatFactsSay(t *testing.T) {
	t.Parallel()
	requireCopied(t, carriedCreation)
	requireCopied(t, carriedInterfaceView)
	requireCopied(t, carriedReassignment)
	require.Equal(t, int64(1), carriedCreation(&Created{LedgerOffset: 1}).LedgerOffset)
}

func requireCopied[F, C any](t *testing.T, carry func(*F) C) {
	t.Helper()
	fact := new(F)
	for i := range reflect.ValueOf(fact).Elem().NumField() {
		setSomething(t, reflect.ValueOf(fact).Elem().Field(i))
	}
	carried, shared := reflect.ValueOf(carry(fact)), 0
	for _, column := range reflect.VisibleFields(carried.Type()) {
		if of := reflect.ValueOf(fact).Elem().FieldByName(column.Name); of.IsValid() {
			require.Equal(t, of.Interface(), carried.FieldByIndex(column.Index).Interface(), "%s of %T", column.Name, *fact)
			shared++
		}
	}
	require.Greater(t, shared, 10)
}

// setSomething makes a value one that is not zero.
func setSomething(t *testing.T, value reflect.Value) {
	t.Helper()
	switch value.Kind() {
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
	case reflect.Struct:
		for i := range value.NumField() {
			if value.Field(i).Kind() == reflect.Bool {
				value.Field(i).SetBool(true)
			}
		}
	case reflect.String:
		value.SetString("x")
	case reflect.Bool:
		value.SetBool(true)
	default:
		require.True(t, value.CanInt(), value.Kind())
		value.SetInt(7)
	}
	require.False(t, value.IsZero())
}
