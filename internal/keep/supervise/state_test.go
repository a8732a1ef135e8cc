package supervise

import (
	"fmt"
	"testing"
)

func TestEveryValueHasAWordOfItsOwn(t *testing.T) {
	words := map[string]bool{}
	say := func(kind string, v fmt.Stringer) {
		word := kind + " " + v.String()
		if v.String() == "" || words[word] {
			t.Errorf("%q is no word, or stands for two", word)
		}
		words[word] = true
	}
	for s := Stopped; s <= Failed; s++ {
		say("state", s)
	}
	for c := NoCause; c <= Idle; c++ {
		say("cause", c)
	}
	for s := range sourceWords {
		say("source", Source(s))
	}
}
