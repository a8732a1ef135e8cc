package heartbeat

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestNotice(t *testing.T) {
	for _, tc := range []struct {
		text string
		want Notice
	}{
		{"WATCHDOG=1", Notice{Watchdog: true}},
		{"WATCHDOG=1\n", Notice{Watchdog: true}},
		{"READY=1\nSTATUS=Up and running\nMAINPID=99", Notice{Ready: true, Status: "Up and running"}},
		{"STATUS=4/9 done", Notice{Status: "4/9 done"}},
		{"STATUS=", Notice{}},
		{"STOPPING=1", Notice{Stopping: true}},
		{"RELOADING=1\nMONOTONIC_USEC=5", Notice{}},
		{"WATCHDOG=trigger", Notice{Trigger: true}},
		{"ERRNO=2\nSTATUS=no file", Notice{Status: "no file"}},
		{"STOPPING=1\nERRNO=2", Notice{Stopping: true}},
		{"EXTEND_TIMEOUT_USEC=600000000", Notice{Extend: 10 * time.Minute}},
		{"EXTEND_TIMEOUT_USEC=9223372036854775807", Notice{Extend: LongestPromise}},
		{"EXIT_STATUS=3", Notice{}},
		{"WATCHDOG=1\nMAINPID=x\nEXTEND_TIMEOUT_USEC=-1\nERRNO=99999\nEXIT_STATUS=256\nnonsense\n=\nX_MORE=1", Notice{Watchdog: true}},
	} {
		if n, err := ParseNotice([]byte(tc.text)); err != nil || n != tc.want {
			t.Errorf("%q is %+v, %v, want %+v", tc.text, n, err, tc.want)
		}
	}
	for _, text := range []string{"", "\n", "READY=0", "ready=1", "FDSTORE=1", "BARRIER=1", "MAINPID=0", "ERRNO=0", "EXIT_STATUS=256", "WATCHDOG", "WATCHDOG_USEC=5"} {
		if n, err := ParseNotice([]byte(text)); !errors.Is(err, ErrNoBeat) {
			t.Errorf("%q is %+v, %v", text, n, err)
		}
	}
}

func FuzzNotice(f *testing.F) {
	f.Add([]byte("READY=1\nSTATUS=x\nMAINPID=4\nWATCHDOG=1\nEXTEND_TIMEOUT_USEC=100\nERRNO=1\nEXIT_STATUS=0"))
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := ParseNotice(text)
		if err != nil {
			return
		}
		if len(n.Status) > NoteLimit || strings.ContainsAny(n.Status, "\n\x1b\x00") || n.Extend < 0 || n.Extend > LongestPromise {
			t.Fatalf("out of bounds: %+v", n)
		}
	})
}
