package control

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/record/latency"
)

// Whatever a status says comes out at the other end. A struct within another one whose members have the same JSON name would
// lose them without an error.
func TestEveryMemberOfAStatusArrives(t *testing.T) {
	dir := shortDir(t)
	f := newFake("full")
	fill(t, reflect.ValueOf(&f.status).Elem(), "Status")
	f.status.Upgrades = 0 // the fake counts them
	listen(t, dir, "full", 5, f)
	got, err := discover(t, dir)[0].Status(t.Context())
	same := cmp.Comparer(func(a, b latency.Histogram) bool { return a == b })
	if d := cmp.Diff(f.status, got, same); err != nil || d != "" {
		t.Errorf("status (-said +heard):\n%s%v", d, err)
	}
}

// fill sets everything that v holds to something else than its zero value.
func fill(t *testing.T, v reflect.Value, name string) {
	t.Helper()
	switch to := v.Addr().Interface().(type) {
	case *time.Time:
		*to = time.Unix(1_800_000_000, 0).UTC()
		return
	case *latency.Histogram:
		to.Add(3 * time.Millisecond)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), v.Type().Field(i).Name)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), name)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0), name)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, name)
		fill(t, value, name)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(name)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint64:
		v.SetUint(7)
	default:
		t.Fatalf("%s: nothing is known for a %s", name, v.Kind())
	}
}
