package supervise

import (
	"fmt"
	"testing"
)

func TestEveryValueHasAWordOfItsOwn(t *testing.T) {
	words := map[string]bool{}
	say := func(kind string, v fmt.Stringer) {
		word := kind + " " + v.String()
		if words[word] {
			t.Errorf("%s stands for two", word)
		}
		words[word] = true
	}
	for s := Stopped; s <= Failed; s++ {
		say("state", s)
	}
	for c := NoCause; c <= Idle; c++ {
		say("cause", c)
	}
	for s := NoSource; s <= SourceLimit; s++ {
		say("source", s)
	}
}
