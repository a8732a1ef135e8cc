package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// mostAgain is how many tests are tried once more. More failures than that are no chance.
const mostAgain = 6

// tryAgain runs each failed test with a foreign program once more, by itself. One that passes is flaky, and so are the tests
// that failed only because it did.
func (s *settings) tryAgain(folder string, t *tally, raw io.Writer) {
	units := t.units()
	if len(t.unfinished()) > 0 || len(units) == 0 {
		return
	}
	if len(units) > mostAgain {
		fmt.Printf("%d tests with foreign programs failed: too many for chance, none is tried again\n", len(units))
		return
	}
	for _, unit := range units {
		fmt.Printf("again: %s (it has started %s)\n", unit.key(), strings.Join(slices.Compact(unit.foreign), ", "))
		second := newTally()
		if err := s.runIn(folder, againCommand(s.command, unit), second, raw); err != nil {
			fmt.Println("testcount:", err)
			continue
		}
		why := t.reason(unit)
		t.takeSecond(unit, second)
		if unit.result == "pass" {
			t.flaky = append(t.flaky, fmt.Sprintf("%s (first: %s)", unit.key(), why))
		}
	}
	t.forgive()
}

// units are the tests to try again: for each failed test without failed parts, the outermost test above it that has started a
// foreign program, or has said something itself. A test is left out if nothing on its way up has started any.
func (t *tally) units() []*test {
	var units []*test
	for _, leaf := range t.failed() {
		if t.hasFailedPart(leaf) {
			continue
		}
		var unit *test
		foreign := false
		for name := leaf.name; name != ""; name = above(name) {
			one := t.tests[leaf.pkg+" "+name]
			if one == nil {
				break
			}
			if len(one.foreign) > 0 {
				foreign = true
			}
			if len(one.foreign) > 0 || len(one.ownLines()) > 0 {
				unit = one
			}
		}
		if unit != nil && (foreign || t.partIsForeign(unit)) && !slices.Contains(units, unit) {
			units = append(units, unit)
		}
	}
	return units
}

// above is the name of the test that a subtest is a part of, or nothing.
func above(name string) string {
	i := strings.LastIndexByte(name, '/')
	return name[:max(i, 0)]
}

func (t *tally) parts(of *test) []*test {
	return t.with(func(o *test) bool { return o.pkg == of.pkg && strings.HasPrefix(o.name, of.name+"/") })
}

func (t *tally) hasFailedPart(of *test) bool {
	return slices.ContainsFunc(t.parts(of), func(o *test) bool { return o.result == "fail" })
}

func (t *tally) partIsForeign(of *test) bool {
	return slices.ContainsFunc(t.parts(of), func(o *test) bool { return len(o.foreign) > 0 })
}

// reason is the first line that the failed test, or a failed part of it, has written of itself.
func (t *tally) reason(unit *test) string {
	for _, one := range append(t.parts(unit), unit) {
		if one.result != "fail" {
			continue
		}
		for _, line := range one.ownLines() {
			if !strings.Contains(line, "foreign: ") {
				return line
			}
		}
	}
	return "it says nothing"
}

// againCommand is the command for one test alone: the same flags, another -run, one package.
func againCommand(command []string, unit *test) []string {
	var again []string
	for i := 0; i < len(command); i++ {
		arg := command[i]
		switch {
		case arg == "-run" || arg == "-skip":
			i++
		case strings.HasPrefix(arg, "-run=") || strings.HasPrefix(arg, "-skip=") || strings.HasPrefix(arg, "./"):
		default:
			again = append(again, arg)
		}
	}
	parts := strings.Split(unit.name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return append(again, "-run", strings.Join(parts, "/"), unit.pkg)
}

// takeSecond replaces the results of the unit and its parts by those of the second try. What the second try did not reach stays failed.
func (t *tally) takeSecond(unit *test, second *tally) {
	if again := second.tests[unit.key()]; again == nil || len(second.unfinished()) > 0 {
		return
	}
	for _, one := range append(t.parts(unit), unit) {
		one.tries = 2
		if again := second.tests[one.key()]; again != nil {
			one.result, one.seconds, one.left = again.result, one.seconds+again.seconds, again.left
		}
	}
}

// forgive counts tests and packages as passed that failed only because a part of them did, which has passed by now.
func (t *tally) forgive() {
	failed := t.failed()
	slices.SortFunc(failed, func(a, b *test) int { return strings.Count(b.name, "/") - strings.Count(a.name, "/") }) // parts first
	for _, one := range failed {
		retried := slices.ContainsFunc(t.parts(one), func(o *test) bool { return o.tries > 1 })
		if retried && !t.hasFailedPart(one) && len(one.ownLines()) == 0 {
			one.result = "pass"
		}
	}
	for _, pkg := range t.with(func(o *test) bool { return o.name == "" && o.result == "fail" }) {
		ofIt := t.with(func(o *test) bool { return o.pkg == pkg.pkg && o.name != "" })
		retried := slices.ContainsFunc(ofIt, func(o *test) bool { return o.tries > 1 })
		if retried && !slices.ContainsFunc(ofIt, func(o *test) bool { return o.result == "fail" }) && len(pkg.ownLines()) == 0 {
			pkg.result = "pass"
		}
	}
}
