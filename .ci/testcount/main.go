// Testcount reads `go test -json` from stdin and prints what a person wants of it: one line for each package, the
// whole output of what failed or did not end, and last the counts and the names of both. It exits 1 when something failed or when no test ran at all.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
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

// tally counts tests, subtests included, and keeps the output of what has not passed yet.
type tally struct {
	passed, failed, skipped, packages int
	brokenPackages                    int
	output                            map[string]*strings.Builder
	running                           map[string]bool // begun, and not ended
	wrong                             []string        // names of failed tests
}

func main() {
	signal.Ignore(syscall.SIGTERM) // whoever ends the tests is still told how far they came
	t := &tally{output: map[string]*strings.Builder{}, running: map[string]bool{}}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var e event
		if json.Unmarshal(in.Bytes(), &e) != nil {
			fmt.Println(in.Text())
			continue
		}
		t.add(e)
	}
	if err := in.Err(); err != nil {
		fmt.Println("testcount: read events:", err)
		os.Exit(1)
	}
	unfinished := slices.Sorted(maps.Keys(t.running))
	for _, key := range unfinished {
		fmt.Print(t.kept(key))
	}
	fmt.Printf("%d passed, %d failed, %d skipped in %d packages\n", t.passed, t.failed, t.skipped, t.packages)
	for _, name := range t.wrong {
		fmt.Println("failed:", name)
	}
	for _, key := range unfinished {
		fmt.Println("did not end:", key)
	}
	if t.brokenPackages > 0 {
		fmt.Printf("%d packages failed\n", t.brokenPackages)
	}
	if t.failed+t.brokenPackages+len(unfinished) > 0 || t.passed == 0 {
		os.Exit(1)
	}
}

func (t *tally) add(e event) {
	key := e.Package + e.ImportPath + " " + e.Test
	switch e.Action {
	case "run":
		t.running[key] = true
	case "output", "build-output":
		if t.output[key] == nil {
			t.output[key] = &strings.Builder{}
		}
		t.output[key].WriteString(e.Output)
	case "build-fail", "fail":
		fmt.Print(t.kept(key))
		t.count(e, &t.failed)
		delete(t.running, key)
		if e.Test != "" {
			t.wrong = append(t.wrong, key)
		}
		if e.Test == "" && e.Action == "fail" {
			t.brokenPackages++
			fmt.Printf("FAIL %s (%.1fs)\n", e.Package, e.Elapsed)
		}
	case "pass":
		t.count(e, &t.passed)
		if e.Test == "" {
			fmt.Printf("ok   %s (%.1fs)\n", e.Package, e.Elapsed)
		}
	case "skip":
		if e.Test != "" {
			fmt.Print(t.kept(key))
		}
		t.count(e, &t.skipped)
	}
	if e.Action == "pass" || e.Action == "skip" {
		delete(t.running, key)
		delete(t.output, key)
	}
}

// count leaves packages without tests out: they end with skip and no test.
func (t *tally) count(e event, tests *int) {
	switch {
	case e.Action == "build-fail":
	case e.Test != "":
		*tests++
	case e.Action != "skip":
		t.packages++
	}
}

func (t *tally) kept(key string) string {
	b := t.output[key]
	if b == nil {
		return ""
	}
	delete(t.output, key)
	return b.String()
}
