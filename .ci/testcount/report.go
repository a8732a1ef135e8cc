package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// slowest is how many tests the list of the slowest names.
const slowest = 30

// report is what all runs together came to.
type report struct {
	tests      []*test // without packages
	unfinished []*test
	packages   int
	broken     []string
	flaky      []string
}

func collect(all []*tally) *report {
	r := &report{}
	defer func() { slices.SortFunc(r.tests, func(a, b *test) int { return strings.Compare(a.key(), b.key()) }) }()
	for _, t := range all {
		for _, one := range t.with(func(*test) bool { return true }) {
			switch {
			case one.name != "":
				r.tests = append(r.tests, one)
			case one.result == "pass":
				r.packages++
			case one.result == "fail":
				r.packages++
				r.broken = append(r.broken, one.pkg)
			}
		}
		r.unfinished = append(r.unfinished, t.unfinished()...)
		r.broken = append(r.broken, t.broken...)
		r.flaky = append(r.flaky, t.flaky...)
	}
	return r
}

func (r *report) count(ok func(*test) bool) int {
	n := 0
	for _, one := range r.tests {
		if ok(one) {
			n++
		}
	}
	return n
}

func (r *report) passed() int { return r.count(func(o *test) bool { return o.result == "pass" }) }
func (r *report) failed() int { return r.count(func(o *test) bool { return o.result == "fail" }) }

func (r *report) ok() bool {
	return r.failed()+len(r.unfinished)+len(r.broken) == 0 && r.passed() > 0
}

func (r *report) print(w io.Writer) {
	for _, one := range r.unfinished {
		fmt.Fprint(w, one.output.String())
	}
	r.printSlowest(w)
	for _, line := range r.flaky {
		fmt.Fprintln(w, "flaky:", line)
	}
	for _, one := range r.tests {
		if one.result == "fail" {
			fmt.Fprintln(w, "failed:", one.key())
		}
	}
	for _, one := range r.unfinished {
		fmt.Fprintln(w, "did not end:", one.key())
	}
	for _, what := range r.broken {
		fmt.Fprintln(w, "failed:", what)
	}
	leftOut := r.count(func(o *test) bool { return o.left })
	skipped := r.count(func(o *test) bool { return o.result == "skip" && !o.left })
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped, %d left to .ci/run full, %d flaky in %d packages\n",
		r.passed(), r.failed(), skipped, leftOut, len(r.flaky), r.packages)
}

// printSlowest names whole tests. A test whose parts run beside each other ends, for go test, before they do: it counts as long as all
// of them together.
func (r *report) printSlowest(w io.Writer) {
	seconds := map[string]float64{}
	for _, one := range r.tests {
		if outer, _, part := strings.Cut(one.name, "/"); part && !r.hasParts(one) {
			seconds[one.pkg+" "+outer] += one.seconds
		}
	}
	var whole []string
	for _, one := range r.tests {
		if strings.Contains(one.name, "/") {
			continue
		}
		whole = append(whole, one.key())
		seconds[one.key()] = max(seconds[one.key()], one.seconds)
	}
	slices.SortStableFunc(whole, func(a, b string) int { return cmp.Compare(seconds[b], seconds[a]) })
	if len(whole) > 0 {
		fmt.Fprintf(w, "the slowest of %d, with their parts:\n", len(whole))
	}
	for _, key := range whole[:min(len(whole), slowest)] {
		fmt.Fprintf(w, "%8.1f s %s\n", seconds[key], key)
	}
}

// hasParts says whether a test has subtests; they follow it in the order of names.
func (r *report) hasParts(one *test) bool {
	i, _ := slices.BinarySearchFunc(r.tests, one.key()+"/", func(t *test, key string) int { return strings.Compare(t.key(), key) })
	return i < len(r.tests) && strings.HasPrefix(r.tests[i].key(), one.key()+"/")
}

// write leaves a line for each test, and adds the flaky ones to the list of all steps.
func (r *report) write(folder, step string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(folder, step+".tests.jsonl"))
	if err != nil {
		return err
	}
	defer f.Close()
	enc := json.NewEncoder(f)
	for _, one := range r.tests {
		line := struct {
			Name    string  `json:"name"`
			Result  string  `json:"result"`
			Seconds float64 `json:"seconds"`
			Seed    string  `json:"seed"`
			Tries   int     `json:"tries"`
		}{one.key(), cmp.Or(one.result, "did not end"), one.seconds, seed(), one.tries}
		if one.left {
			line.Result = "left to full"
		}
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	if len(r.flaky) == 0 {
		return nil
	}
	list, err := os.OpenFile(filepath.Join(folder, "flaky.txt"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer list.Close()
	for _, line := range r.flaky {
		if _, err := fmt.Fprintf(list, "%s: %s\n", step, line); err != nil {
			return err
		}
	}
	return nil
}

// seed is what the tests of this run draw from.
func seed() string {
	return cmp.Or(os.Getenv("OUTLIVE_TEST_SEED"), os.Getenv("RAPID_SEED"), "1")
}
