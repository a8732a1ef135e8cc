package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"runtime/pprof"
	"sync"
	"testing"
)

// Many machines that come at the same time are let in, each token by one of the two that use it; and they do not take a thread each,
// of which a program may have 10,000.
func TestManyMachinesComeAtOnce(t *testing.T) {
	const n = 1000
	s := &settings{state: t.TempDir()}
	secrets := make([]string, n)
	if err := s.changeTokens(func(f *tokenFile) error {
		for i := range secrets {
			secrets[i] = rand.Text()
			f.Tokens = append(f.Tokens, known{Host: fmt.Sprintf("m%d", i), Hash: hashOf(secrets[i])})
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	a, threads := &admission{settings: s}, pprof.Lookup("threadcreate").Count()
	var all sync.WaitGroup
	errs := make([][2]error, n)
	for i := range n {
		for k := range 2 {
			all.Go(func() { errs[i][k] = a.admit(fmt.Sprintf("m%d", i), fmt.Sprintf("machine%d", k), secrets[i], "here") })
		}
	}
	all.Wait()
	if more := pprof.Lookup("threadcreate").Count() - threads; more > n/4 {
		t.Errorf("%d threads for %d machines", more, 2*n)
	}
	f, err := s.tokens()
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range errs {
		winner := 0
		if e[0] != nil {
			winner = 1
		}
		if e[winner] != nil || !errors.Is(e[1-winner], errOtherUser) {
			t.Fatalf("m%d: %v", i, e)
		}
		if used := f.Tokens[i].Machine; used != fmt.Sprintf("machine%d", winner) {
			t.Errorf("m%d: machine%d was let in, and %q is written down", i, winner, used)
		}
	}
	if err := a.admit("m0", f.Tokens[0].Machine, "wrong", "here"); !errors.Is(err, errNoToken) {
		t.Errorf("a wrong secret: %v", err)
	}
}
