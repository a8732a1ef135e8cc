package agentrun

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofrs/flock"

	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// A wrapper whose agent has ended is waited for, so that a restart is not refused.
func TestAWrapperThatIsEndingIsWaitedFor(t *testing.T) {
	self, err := (process.System{}).Look(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	ended := Report{Version: 1, Agent: "shop", PID: self.PID, Start: self.Start, Boot: self.Boot, Exit: &Exit{}}
	living := ended
	living.Exit = nil
	killed := living
	killed.Start++ // another process has its number
	for name, tt := range map[string]struct {
		last    Report
		release time.Duration // of the lock
		waits   time.Duration
		refused bool
	}{
		"ends in time":        {last: ended, release: time.Second, waits: time.Second},
		"was not reported":    {last: killed, release: time.Second, waits: time.Second},
		"does not end":        {last: ended, release: time.Hour, waits: endingTime, refused: true},
		"has a living agent":  {last: living, release: time.Hour, refused: true},
		"nobody has the lock": {last: ended},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "shop.json")
			if err := write(path, tt.last); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				if tt.release > 0 {
					other := flock.New(filepath.Join(filepath.Dir(path), "shop.lock"))
					if ok, err := other.TryLock(); err != nil || !ok {
						t.Fatal(ok, err)
					}
					defer other.Close()
					defer time.AfterFunc(tt.release, func() { _ = other.Close() }).Stop()
				}
				began := time.Now()
				c, err := claim(path)
				if waited := time.Since(began).Round(time.Second); waited != tt.waits || errors.Is(err, ErrRunning) != tt.refused {
					t.Errorf("after %s: %v, want %s", waited, err, tt.waits)
				}
				if c != nil {
					_ = c.Close()
				}
			})
		})
	}
}
