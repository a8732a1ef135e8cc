package agentrun

import (
	"testing"
	"time"
)

// A spinner and its time are drawn all the while and say nothing; a line that was not there before does.
func TestNewTextIsToldFromAnAnimation(t *testing.T) {
	t.Parallel()
	began := time.Unix(1_800_000_000, 0)
	s := newSeen(Report{})
	sh := share(s, nil, true, window{Rows: 6, Cols: 60}, func(int, int) {}, func([]byte) error { return nil })
	defer sh.close(Exit{})
	s.lookAt(sh.lines)
	for i, step := range []struct {
		output string
		news   bool
	}{
		{"\x1b[2J\x1b[Hreading\r\n⠋ Working (58s • esc to interrupt)", true},
		{"\x1b[2;1H⠙ Working (59s • esc to interrupt)", false},
		{"\x1b[2;1H\x1b[K⠹ Worki", false},
		{"\x1b[2;1H\x1b[K⠹ Working (1m 0", false},
		{"\x1b[2;1H\x1b[K⠸ Working (1m 01s • esc to interrupt)", false},
		{"\x1b[2;1H\x1b[K⠼ Working (12:59 • esc to interrupt)", false},
		{"\x1b[1;1H\x1b[Kfetched 1 of 9", true},
		{"\x1b[1;1H\x1b[Kfetched 2 of 9", true},
		{"\x1b[1;1H\x1b[Kreading", false},
		{"\x1b]0;⠋ shop\x07", false},
	} {
		at := began.Add(time.Duration(i) * time.Minute)
		sh.output([]byte(step.output), at)
		r := s.snapshot(at)
		if got := r.TextAt.Equal(at); got != step.news || !r.OutputAt.Equal(at) {
			t.Errorf("after %q: text at %v, output at %v", step.output, r.TextAt, r.OutputAt)
		}
	}
}
