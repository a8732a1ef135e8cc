package lazyregexp

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// declared is as rooms declare theirs.
var declared = New(`(\w+)@(\w+)`)

func TestADeclarationIsNotCompiled(t *testing.T) {
	p := New(`a+`)
	if p.re != nil || p.text != `a+` {
		t.Errorf("compiled as %v before its use, made of %q", p.re, p.text)
	}
	if !p.MatchString("xaay") || p.re == nil {
		t.Error("not compiled by its use")
	}
	if first := p.Compiled(); p.MatchString("b") || p.Compiled() != first {
		t.Error("compiled again")
	}
}

func TestMethodsAreThoseOfRegexp(t *testing.T) {
	const text = "ada@home, bob@work"
	got := []any{
		declared.Match([]byte(text)), declared.MatchString("nobody"), declared.FindString(text), declared.FindStringSubmatch(text),
		declared.FindAllStringSubmatch(text), declared.ReplaceAllString(text, "${2}:${1}"),
		declared.ReplaceAllStringFunc(text, strings.ToUpper), declared.FindStringSubmatch("nobody"),
	}
	want := []any{
		true, false, "ada@home", []string{"ada@home", "ada", "home"},
		[][]string{{"ada@home", "ada", "home"}, {"bob@work", "bob", "work"}}, "home:ada, work:bob",
		"ADA@HOME, BOB@WORK", []string(nil),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Whoever comes first compiles; the race detector sees whether the others wait for it.
func TestManyUseOneAtOnce(t *testing.T) {
	p := New(`^(a|b)+$`)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if !p.MatchString("abba") {
				t.Error("no match")
			}
		})
	}
	all.Wait()
}

func TestATextThatIsNoPatternPanicsWhenUsed(t *testing.T) {
	p := New(`(`)
	defer func() {
		if recover() == nil {
			t.Error("( was compiled")
		}
	}()
	p.MatchString("(")
}
