package service

import (
	"errors"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// systemd is an environment: NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, each "" where there is none.
func systemd(socket, usec, pid string) func(string) string {
	return func(name string) string {
		return map[string]string{"NOTIFY_SOCKET": socket, "WATCHDOG_USEC": usec, "WATCHDOG_PID": pid}[name]
	}
}

func TestNotifierOptions(t *testing.T) {
	ours, another := strconv.Itoa(os.Getpid()), strconv.Itoa(os.Getpid()+1)
	tests := []struct {
		name     string
		getenv   func(string) string
		watchdog time.Duration
		bad      bool
		none     bool
	}{
		{"nobody to tell", systemd("", "1000000", ""), 0, false, true},
		{"no watchdog", systemd("/run/n", "", ""), 0, false, false},
		{"a watchdog", systemd("@n", "120000000", ours), 2 * time.Minute, false, false},
		{"a watchdog for anybody", systemd("@n", "2000000", ""), 2 * time.Second, false, false},
		{"another's watchdog", systemd("@n", "2000000", another), 0, false, false},
		{"a socket of another kind", systemd("vsock:2:1", "", ""), 0, true, true},
		{"no number", systemd("/n", "soon", ""), 0, true, true},
		{"never", systemd("/n", "0", ""), 0, true, true},
	}
	for _, tt := range tests {
		n, err := NewNotifier(tt.getenv)
		if (err != nil) != tt.bad || (n == nil) != tt.none || n != nil && n.watchdog != tt.watchdog {
			t.Errorf("%s: %+v, %v", tt.name, n, err)
		}
	}
	var none *Notifier
	if err := errors.Join(none.Ready("x"), none.Alive(time.Now()), none.Stopping()); err != nil {
		t.Errorf("with nobody to tell: %v", err)
	}
}

// However often a loop calls, the watchdog hears it in time and not all the time.
func TestAliveIsSaidInTime(t *testing.T) {
	for _, call := range []time.Duration{10 * time.Millisecond, time.Second, 7 * time.Second, 25 * time.Second} {
		n, err := NewNotifier(systemd("/n", "100000000", "")) // 100 s
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(1_800_000_000, 0)
		last, count := now, 0
		n.send = func(_, text string) error {
			if gap := now.Sub(last); gap > n.watchdog/2 {
				t.Errorf("called each %v: %v without a word", call, gap)
			}
			last = now
			count++
			return nil
		}
		for end := now.Add(time.Hour); now.Before(end); now = now.Add(call) {
			if err := n.Alive(now); err != nil {
				t.Fatal(err)
			}
		}
		if most := int(time.Hour/(25*time.Second)) + 1; count > most {
			t.Errorf("called each %v: said %d times in an hour, want %d at most", call, count, most)
		}
	}
}

func TestStatusIsOneLine(t *testing.T) {
	var said []string
	n := &Notifier{socket: "/n", send: func(_, text string) error { said = append(said, text); return nil }}
	if err := errors.Join(n.Ready("a\nWATCHDOG=1"), n.Stopping()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"READY=1\nSTATUS=a WATCHDOG=1", "STOPPING=1"}, said); diff != "" {
		t.Error(diff)
	}
}
