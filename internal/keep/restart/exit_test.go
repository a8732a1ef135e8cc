package restart

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMeaning(t *testing.T) {
	sysexits := ExitRules{RestartOn: []int{75}, FailOn: []int{2, 78}}
	turned := ExitRules{RestartOn: []int{0, 143}, FailOn: []int{42}}
	for _, c := range []struct {
		rules     ExitRules
		code      int
		signalled bool
		want      Meaning
	}{
		{ExitRules{}, 0, false, Clean},
		{ExitRules{}, 42, false, Requested},
		{ExitRules{}, 1, false, Crash},
		{ExitRules{}, 127, false, Crash},
		{ExitRules{}, 139, true, Crash},
		{ExitRules{}, -1, false, Crash},
		{ExitRules{}, 0, true, Crash},
		{sysexits, 75, false, Requested},
		{sysexits, 78, false, Fail},
		{sysexits, 2, false, Fail},
		{sysexits, 42, false, Requested},
		{sysexits, 0, false, Clean},
		{turned, 0, false, Requested},
		{turned, 42, false, Fail},
		{turned, 143, true, Requested},
		{ExitRules{RestartOn: []int{5}, FailOn: []int{5}}, 5, false, Fail},
		{ExitRules{Endless: true}, 0, false, Crash},
		{ExitRules{Endless: true}, 42, false, Requested},
		{ExitRules{Endless: true, FailOn: []int{0}}, 0, false, Fail},
	} {
		if got := c.rules.Meaning(c.code, c.signalled); got != c.want {
			t.Errorf("%+v: code %d, signalled %v: got %d, want %d", c.rules, c.code, c.signalled, got, c.want)
		}
	}
}

func TestParseCodes(t *testing.T) {
	for text, want := range map[string][]int{
		"":           nil,
		" ":          nil,
		"75":         {75},
		"75,100-103": {75, 100, 101, 102, 103},
		" 9 , 3-4,3": {3, 4, 9},
		"7-7":        {7},
		"255":        {255},
	} {
		got, err := ParseCodes(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
	}
	for text, says := range map[string]string{
		"x": "such as 75,100-110", "1,": "such as", "-5": "such as", "5-": "such as", "1-2-3": "such as",
		"+5": "such as", "9-3": "write 3-9", "4294967296": "such as",
	} {
		if _, err := ParseCodes(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, want it to say %q", text, err, says)
		}
	}
}
