package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// said makes events of lines "ACTION TEST OUTPUT" of one package.
func said(t *testing.T, lines ...string) *tally {
	t.Helper()
	all := newTally()
	for _, line := range lines {
		word := strings.SplitN(line, " ", 3)
		e := event{Action: word[0], Package: "p"}
		if len(word) > 1 {
			e.Test = strings.Trim(word[1], "-")
		}
		if len(word) > 2 {
			e.Output = word[2] + "\n"
		}
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var back event
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		all.add(back)
	}
	return all
}

func TestCounts(t *testing.T) {
	r := collect([]*tally{said(t,
		"run TestA", "pass TestA", "run TestB", "output TestB     b_test.go:1: left to .ci/run full: a storm", "skip TestB",
		"run TestC", "output TestC     c_test.go:1: no compiler", "skip TestC", "pass")})
	var out strings.Builder
	r.print(&out)
	if want := "1 passed, 0 failed, 1 skipped, 1 left to .ci/run full, 0 flaky in 1 packages\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("said %q, want %q", out.String(), want)
	}
	if !r.ok() {
		t.Error("not ok")
	}
}

func TestNotOK(t *testing.T) {
	for name, lines := range map[string][]string{
		"no test ran":          {"pass"},
		"a test failed":        {"run TestA", "pass TestA", "run TestB", "fail TestB", "fail"},
		"a test did not end":   {"run TestA", "pass TestA", "run TestB", "fail"},
		"the package failed":   {"run TestA", "pass TestA", "fail"},
		"it did not build":     {"run TestA", "pass TestA", "build-fail"},
		"all that ran skipped": {"run TestA", "skip TestA", "pass"},
	} {
		t.Run(name, func(t *testing.T) {
			if collect([]*tally{said(t, lines...)}).ok() {
				t.Error("is ok")
			}
		})
	}
}

// What is tried again: the test that started the foreign program, or the one above it that has itself something to say; nothing else.
func TestUnits(t *testing.T) {
	for name, tc := range map[string]struct {
		lines []string
		want  []string
	}{
		"our own program alone": {[]string{"run TestA", "output TestA     a_test.go:1: wrong", "fail TestA", "fail"}, nil},
		"with a foreign one":    {[]string{"run TestA", "output TestA     a_test.go:1: foreign: codex", "fail TestA", "fail"}, []string{"p TestA"}},
		"the cell of a trial": {[]string{"run TestA", "run TestA/cell", "output TestA/cell     a_test.go:1: foreign: node", "run TestA/cell/trial",
			"output TestA/cell/trial     a_test.go:2: wrong", "fail TestA/cell/trial", "fail TestA/cell", "fail TestA", "fail"}, []string{"p TestA/cell"}},
		"the test above complains, too": {[]string{"run TestA", "output TestA     a_test.go:9: sum is wrong", "run TestA/cell",
			"output TestA/cell     a_test.go:1: foreign: node", "fail TestA/cell", "fail TestA", "fail"}, []string{"p TestA"}},
		"a neighbour's program": {[]string{"run TestA", "output TestA     a_test.go:1: foreign: node", "pass TestA", "run TestB",
			"output TestB     b_test.go:1: wrong", "fail TestB", "fail"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, one := range said(t, tc.lines...).units() {
				got = append(got, one.key())
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("tried again: %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSecondTry(t *testing.T) {
	first := []string{"run TestA", "run TestA/cell", "output TestA/cell     a_test.go:1: foreign: node", "output TestA/cell     a_test.go:2: wrong",
		"fail TestA/cell", "fail TestA", "fail"}
	for name, tc := range map[string]struct {
		more, second []string
		ok           bool
	}{
		"passes":                     {nil, []string{"run TestA", "run TestA/cell", "pass TestA/cell", "pass TestA", "pass"}, true},
		"fails again":                {nil, []string{"run TestA", "run TestA/cell", "fail TestA/cell", "fail TestA", "fail"}, false},
		"does not run it":            {nil, []string{"pass"}, false},
		"another one failed as well": {[]string{"run TestB", "output TestB     b_test.go:1: wrong", "fail TestB"}, []string{"run TestA", "run TestA/cell", "pass TestA/cell", "pass TestA", "pass"}, false},
		"the package complains":      {[]string{"output - e2e: a class was never shown"}, []string{"run TestA", "run TestA/cell", "pass TestA/cell", "pass TestA", "pass"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			all := said(t, append(slices.Clone(first), tc.more...)...)
			unit := all.units()[0]
			all.takeSecond(unit, said(t, tc.second...))
			all.forgive()
			if got := collect([]*tally{all}).ok(); got != tc.ok {
				t.Errorf("ok is %v, want %v", got, tc.ok)
			}
		})
	}
}

func TestAgainCommand(t *testing.T) {
	got := againCommand([]string{"go", "test", "-json", "-run", "TestX", "-count=1", "./..."}, &test{pkg: "p", name: "TestA/run/go×py (1)"})
	want := []string{"go", "test", "-json", "-count=1", "-run", `^TestA$/^run$/^go×py \(1\)$`, "p"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReasonIsTheTestsOwnWords(t *testing.T) {
	all := said(t, "run TestA", "output TestA === RUN   TestA", "output TestA     a_test.go:1: foreign: node", "output TestA     a_test.go:2: no answer", "fail TestA")
	if got := all.reason(all.tests["p TestA"]); got != "a_test.go:2: no answer" {
		t.Errorf("reason %q", got)
	}
}

func TestFilesThatARunLeaves(t *testing.T) {
	dir := t.TempDir()
	r := collect([]*tally{said(t, "run TestA", "pass TestA", "pass")})
	r.flaky = []string{"p TestA (first: why)"}
	for _, step := range []string{"test", "e2e"} {
		if err := r.write(dir, step); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"e2e.tests.jsonl": `{"name":"p TestA","result":"pass","seconds":0,"seed":"1","tries":1}` + "\n",
		"flaky.txt":       "test: p TestA (first: why)\ne2e: p TestA (first: why)\n",
	} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q (%v), want %q", name, got, err, want)
		}
	}
}

// Parts that run beside each other make their test slow, though go test says that it ended at once.
func TestSlowest(t *testing.T) {
	all := said(t, "run TestA", "pass TestA", "run TestB", "run TestB/x", "run TestB/x/y", "run TestB/z", "pass TestB/x/y", "pass TestB/x", "pass TestB/z", "pass TestB")
	for name, seconds := range map[string]float64{"TestA": 3, "TestB": 0.5, "TestB/x": 2, "TestB/x/y": 2, "TestB/z": 4} {
		all.tests["p "+name].seconds = seconds
	}
	var out strings.Builder
	collect([]*tally{all}).printSlowest(&out)
	if want := "the slowest of 2, with their parts:\n     6.0 s p TestB\n     3.0 s p TestA\n"; out.String() != want {
		t.Errorf("said %q, want %q", out.String(), want)
	}
}

// ending passes SIGTERM on to the tests as soon as they have said something.
type ending struct{ s *settings }

func (e ending) Write(b []byte) (int, error) {
	e.s.pass(syscall.SIGTERM)
	return len(b), nil
}

// A test that kills its process group ends all tests, as whoever ends the run does; what did not end is named all the same.
func TestTheTestsAreKilled(t *testing.T) {
	const begins = `echo '{"Action":"run","Package":"p","Test":"TestA"}'; `
	s := &settings{}
	for name, tc := range map[string]struct {
		script string
		raw    io.Writer
	}{
		"by one of them": {begins + "kill -9 0", io.Discard},
		"by a signal":    {begins + "exec sleep 600", ending{s}},
	} {
		t.Run(name, func(t *testing.T) {
			all := newTally()
			if err := s.runIn(t.TempDir(), []string{"sh", "-c", tc.script}, all, tc.raw); err != nil {
				t.Fatal(err)
			}
			if left := all.unfinished(); len(left) != 1 || left[0].name != "TestA" || collect([]*tally{all}).ok() {
				t.Errorf("%d tests did not end", len(left))
			}
		})
	}
}
