package agentrun

import (
	"testing"
	"time"
)

// A spinner and its time are drawn all the while and say nothing; a line that was not there before does, and a count of tokens.
func TestNewTextIsToldFromAnAnimation(t *testing.T) {
	t.Parallel()
	began := time.Unix(1_800_000_000, 0)
	s := newSeen(Report{})
	sh := share(s, nil, true, window{Rows: 6, Cols: 60}, func(int, int) {}, func([]byte) error { return nil })
	defer sh.close(Exit{})
	for i, step := range []struct {
		output       string
		news, counts bool
	}{
		{"\x1b[2J\x1b[Hreading\r\n⠋ Working (58s • esc to interrupt)", true, false},
		{"\x1b[2;1H⠙ Working (59s • esc to interrupt)", false, false},
		{"\x1b[2;1H\x1b[K⠹ Worki", false, false},
		{"\x1b[2;1H\x1b[K⠹ Working (1m 0", false, false},
		{"\x1b[2;1H\x1b[K⠸ Working (1m 01s • esc to interrupt)", false, false},
		{"\x1b[2;1H\x1b[K⠼ Working (12:59 • esc to interrupt)", false, false},
		{"\x1b[1;1H\x1b[Kfetched 1 of 9", true, false},
		{"\x1b[1;1H\x1b[Kfetched 2 of 9", true, false},
		{"\x1b[1;1H\x1b[Kreading", false, false},
		{"\x1b]0;⠋ shop\x07", false, false},
		{"\x1b[2;1H\x1b[K✻ Pondering… (2m · ↓ 0 tokens)", true, true},
		{"\x1b[2;1H\x1b[K✶ Musing… (3m · ↓ 0 tokens)", true, false},
		{"\x1b[2;1H\x1b[K✶ Musing… (3m 1s · ↓ 0 tok", false, false},
		{"\x1b[2;1H\x1b[K✻ Musing… (4m · ↓ 1.2k tokens)", true, true},
	} {
		at := began.Add(time.Duration(i) * time.Minute)
		sh.output([]byte(step.output), at)
		r := s.snapshot()
		if r.TextAt.Equal(at) != step.news || r.CountAt.Equal(at) != step.counts || !r.OutputAt.Equal(at) {
			t.Errorf("after %q: text at %v, tokens at %v, output at %v", step.output, r.TextAt, r.CountAt, r.OutputAt)
		}
	}
}
