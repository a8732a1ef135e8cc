package streamhttp

import (
	"bytes"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"testing"
)

// book is a log that is read while it is written.
type book struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// A request of the modern era tells how far it has come, by its id; at any other level it tells nothing.
func TestAModernRequestTellsItsWay(t *testing.T) {
	for _, tc := range []struct {
		level slog.Level
		want  []string
	}{
		{slog.LevelDebug, []string{"request read", "request handed on", "answer written", "reply over"}},
		{slog.LevelInfo, nil},
	} {
		t.Run(tc.level.String(), func(t *testing.T) {
			told := &book{}
			log := slog.New(slog.NewTextHandler(told, &slog.HandlerOptions{Level: tc.level}))
			w := newWorld(t, &testHub{answer: echo}, Options{Log: log})
			// A short answer is sent when its handler has returned, so that all is told once it is here.
			if a := w.do("POST", modernLine(7, "tools/list", ""), modernHeaders("tools/list")...); a.status != 200 {
				t.Fatalf("status %d", a.status)
			}
			var got []string
			for _, m := range regexp.MustCompile(`msg="([^"]+)" id=7 `).FindAllStringSubmatch(told.String(), -1) {
				got = append(got, m[1])
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("told %q, want %q:\n%s", got, tc.want, told)
			}
		})
	}
}
