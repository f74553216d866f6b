package pgcopy

import (
	"iter"
	"reflect"
	"unsafe"
)

// Rows are rows of one type. They are sent, or compared with stored rows.
type Rows struct {
	row   reflect.Type   // a struct, whose fields have a tag db with the column's name
	first unsafe.Pointer // to the first of them
	count int
}

// Of returns the rows of a list, which must not change as long as they are used.
func Of[T any](list []T) Rows {
	return Rows{row: reflect.TypeFor[T](), first: unsafe.Pointer(unsafe.SliceData(list)), count: len(list)}
}

// Count returns how many rows there are.
func (r Rows) Count() int { return r.count }

// Columns returns the columns' names, in the order of a row's values.
func (r Rows) Columns() []string {
	names := make([]string, r.row.NumField())
	for i := range names {
		names[i] = r.row.Field(i).Tag.Get("db")
	}
	return names
}

// Values returns the values of each row.
func (r Rows) Values() iter.Seq[[]any] {
	return func(yield func([]any) bool) {
		for i := range r.count {
			row := reflect.NewAt(r.row, r.pointer(i)).Elem()
			values := make([]any, row.NumField())
			for j := range values {
				values[j] = row.Field(j).Interface()
			}
			if !yield(values) {
				return
			}
		}
	}
}

// Numbers returns each row's value of a column, which has to be of type bigint and NOT NULL.
func (r Rows) Numbers(column string) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for i := range r.row.NumField() {
			field := r.row.Field(i)
			if field.Tag.Get("db") != column || field.Type.Kind() != reflect.Int64 {
				continue
			}
			for j := range r.count {
				if !yield(*(*int64)(unsafe.Add(r.pointer(j), field.Offset))) {
					return
				}
			}
			return
		}
		panic("rows of " + r.row.String() + " have no numbers in column " + column)
	}
}

func (r Rows) pointer(i int) unsafe.Pointer { return unsafe.Add(r.first, uintptr(i)*r.row.Size()) }
