package proxy

import (
	"reflect"
	"time"
)

// longestGap is the most that can lie between the end of one image and the beginning of the next, beyond what a clock
// that was set meanwhile would make of it.
const longestGap = 10 * time.Second

var timeType = reflect.TypeFor[time.Time]()

// rebase makes every time in v, a pointer to what was saved at the time at, one of this program's own: readings of the
// monotonic clock do not outlive the program that made them, and wall clocks are set. Zero times stay zero.
func rebase(v any, at, now time.Time) {
	gap := min(max(now.Sub(at), 0), longestGap)
	shift(reflect.ValueOf(v), func(t time.Time) time.Time { return now.Add(t.Sub(at) - gap) })
}

func shift(v reflect.Value, by func(time.Time) time.Time) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			shift(v.Elem(), by)
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			shift(v.Index(i), by)
		}
	case reflect.Map:
		for values := v.MapRange(); values.Next(); { // of pointers: a time that is a value itself cannot be set
			shift(values.Value(), by)
		}
	case reflect.Struct:
		if v.Type() == timeType {
			if t := v.Interface().(time.Time); !t.IsZero() {
				v.Set(reflect.ValueOf(by(t)))
			}
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				shift(v.Field(i), by)
			}
		}
	}
}
