package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// event is one line of `go test -json`.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64
}

// left begins the reason of a skip that is no gap: the full run makes that test.
const left = "left to .ci/run full: "

// test is one test or subtest, or with no name a package.
type test struct {
	pkg, name string
	result    string // pass, fail or skip; "" until it has ended
	seconds   float64
	tries     int
	left      bool     // skipped here, and made by the full run
	foreign   []string // programs of others that it has started
	output    strings.Builder
}

func (t *test) key() string { return strings.TrimSuffix(t.pkg+" "+t.name, " ") }

// tally has what one run of `go test -json` said.
type tally struct {
	tests  map[string]*test
	broken []string // what failed and is no test
	flaky  []string // passed at the second try: name and why the first one failed
}

func newTally() *tally { return &tally{tests: map[string]*test{}} }

// addLine takes one line of the run's output, and prints what a person waits for.
func (t *tally) addLine(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil {
		fmt.Printf("%s\n", line)
		return
	}
	if told := t.add(e); told != "" {
		fmt.Print(told)
	}
}

// add takes one event and returns what is told of it at once.
func (t *tally) add(e event) string {
	pkg := e.Package
	if pkg == "" {
		pkg = e.ImportPath
	}
	key := strings.TrimSuffix(pkg+" "+e.Test, " ")
	one := t.tests[key]
	if one == nil {
		one = &test{pkg: pkg, name: e.Test, tries: 1}
		t.tests[key] = one
	}
	switch e.Action {
	case "output", "build-output":
		one.output.WriteString(e.Output)
		if _, program, ok := strings.Cut(e.Output, ": foreign: "); ok {
			one.foreign = append(one.foreign, strings.TrimSpace(program))
		}
	case "build-fail":
		t.broken = append(t.broken, pkg+": does not build")
		return one.output.String()
	case "pass", "fail", "skip":
		one.result, one.seconds = e.Action, e.Elapsed
		return one.told()
	}
	return ""
}

// told is what a test that has ended is worth: nothing if it passed, its output if it failed or was skipped for a reason of its own.
func (t *test) told() string {
	out := t.output.String()
	if t.result == "pass" {
		t.output.Reset()
	}
	switch {
	case t.name == "" && t.result == "fail":
		return out + fmt.Sprintf("FAIL %s (%.1fs)\n", t.pkg, t.seconds)
	case t.name == "" && t.result == "pass":
		return fmt.Sprintf("ok   %s (%.1fs)\n", t.pkg, t.seconds)
	case t.name == "":
		return ""
	case t.result == "fail":
		return out
	case t.result == "skip":
		if t.left = strings.Contains(out, left); !t.left {
			return out
		}
	}
	return ""
}

// failed are the failed tests, without the packages.
func (t *tally) failed() []*test {
	return t.with(func(o *test) bool { return o.result == "fail" && o.name != "" })
}

// unfinished are the tests that began and did not end: of a panic, a limit or a kill.
func (t *tally) unfinished() []*test {
	return t.with(func(o *test) bool { return o.result == "" && o.name != "" })
}

func (t *tally) with(ok func(*test) bool) []*test {
	var found []*test
	for _, key := range slices.Sorted(maps.Keys(t.tests)) {
		if one := t.tests[key]; ok(one) {
			found = append(found, one)
		}
	}
	return found
}

// frame are lines of a test's output that go test writes, not the test.
var frame = regexp.MustCompile(`^\s*(=== |--- (FAIL|PASS|SKIP)|FAIL\b|PASS\b|ok\s|exit status)`)

// ownLines are the lines that a test itself has written.
func (t *test) ownLines() []string {
	var own []string
	for line := range strings.Lines(t.output.String()) {
		if line = strings.TrimSpace(line); line != "" && !frame.MatchString(line) {
			own = append(own, line)
		}
	}
	return own
}
