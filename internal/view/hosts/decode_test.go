package hosts

import (
	"errors"
	"strings"
	"testing"
)

// What another machine says is read within bounds: a few kilobytes of zip can be a list of a million entries.
func TestDecode(t *testing.T) {
	var v struct {
		Instances []struct{ Name string } `json:"instances"`
	}
	if err := Decode([]byte(`{"instances":[{"name":"a"},{"name":"b"}]}`), &v); err != nil || len(v.Instances) != 2 {
		t.Errorf("%v, %v", v, err)
	}
	for name, text := range map[string]string{
		"many entries": `{"instances":[` + strings.Repeat("{},", valuesMost+1) + `{}]}`,
		"nothing":      `{"instances":[` + strings.Repeat("0,", valuesMost+1) + `0]}`,
		"a long text":  `{"instances":[{"name":"` + strings.Repeat("a", answerLimit) + `"}]}`,
	} {
		if err := Decode([]byte(text), &v); !errors.Is(err, ErrTooMuch) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
