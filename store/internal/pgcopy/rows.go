package pgcopy

import (
	"iter"
	"reflect"
	"unsafe"
)

// Rows are rows of one type. They are sent, or compared with stored rows.
type Rows struct {
	row   reflect.Type   // a struct, whose fields have a tag db with the column's name; embedded ones are theirs
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
	fields := fieldsOf(r.row)
	names := make([]string, len(fields))
	for i := range names {
		names[i] = fields[i].Tag.Get("db")
	}
	return names
}

// fieldsOf returns the fields of a struct that are columns, with their places in it: those of a struct that is embedded
// in it too.
func fieldsOf(row reflect.Type) (fields []reflect.StructField) {
	for i := range row.NumField() {
		field := row.Field(i)
		if !field.Anonymous {
			fields = append(fields, field)
			continue
		}
		for _, inner := range fieldsOf(field.Type) {
			inner.Offset += field.Offset
			inner.Index = append([]int{i}, inner.Index...)
			fields = append(fields, inner)
		}
	}
	return fields
}

// Values returns the values of each row.
func (r Rows) Values() iter.Seq[[]any] {
	return func(yield func([]any) bool) {
		fields := fieldsOf(r.row)
		for i := range r.count {
			row := reflect.NewAt(r.row, r.pointer(i)).Elem()
			values := make([]any, len(fields))
			for j := range values {
				values[j] = row.FieldByIndex(fields[j].Index).Interface()
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
		for _, field := range fieldsOf(r.row) {
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
