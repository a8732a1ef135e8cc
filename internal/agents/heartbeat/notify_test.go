package heartbeat

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNotice(t *testing.T) {
	beat := Observation{Agent: "a", Source: FromNotify, Tier: SelfReport, Kind: Beat, Wall: night, PID: 7}
	with := func(change func(*Observation)) Observation { o := beat; change(&o); return o }
	for _, tc := range []struct {
		text string
		want Observation
	}{
		{"WATCHDOG=1", beat},
		{"WATCHDOG=1\n", beat},
		{"READY=1\nSTATUS=Up and running\nMAINPID=99", with(func(o *Observation) { o.State, o.Note = Working, "Up and running" })},
		{"STATUS=4/9 done", with(func(o *Observation) { o.Note = "4/9 done" })},
		{"STATUS=", beat},
		{"STOPPING=1", with(func(o *Observation) { o.State = Exiting })},
		{"RELOADING=1\nMONOTONIC_USEC=5", with(func(o *Observation) { o.State = Working })},
		{"WATCHDOG=trigger", with(func(o *Observation) { o.State = Stuck })},
		{"ERRNO=2\nSTATUS=no file", with(func(o *Observation) { o.Kind, o.Note = Log, "no file" })},
		{"STOPPING=1\nERRNO=2", with(func(o *Observation) { o.State, o.Note = Exiting, syscall.ENOENT.Error() })},
		{"EXTEND_TIMEOUT_USEC=600000000", with(func(o *Observation) { o.Next = 10 * time.Minute })},
		{"EXTEND_TIMEOUT_USEC=9223372036854775807", with(func(o *Observation) { o.Next = LongestPromise })},
		{"EXIT_STATUS=3", with(func(o *Observation) { o.Exit = ptr(3) })},
		{"WATCHDOG=1\nMAINPID=x\nEXTEND_TIMEOUT_USEC=-1\nERRNO=99999\nEXIT_STATUS=256\nnonsense\n=\nX_MORE=1", beat},
	} {
		n, err := ParseNotice([]byte(tc.text))
		if err != nil {
			t.Errorf("%q: %v", tc.text, err)
			continue
		}
		if diff := cmp.Diff(tc.want, n.Observation("a", 7, night)); diff != "" {
			t.Errorf("%q: %s", tc.text, diff)
		}
	}
	for _, text := range []string{"", "\n", "READY=0", "ready=1", "FDSTORE=1", "BARRIER=1", "MAINPID=0", "WATCHDOG", "WATCHDOG_USEC=5"} {
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
		checkBounds(t, n.Observation("a", 1, night))
	})
}
