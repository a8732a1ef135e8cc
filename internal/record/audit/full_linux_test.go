package audit

import (
	"testing"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

// /dev/full answers each write as a full disk does.
func TestFullDisk(t *testing.T) {
	warnings := make(chan error, 10)
	l := open(t, "/dev/full", Options{OnFailure: func(err error) { warnings <- err }})
	for range 5 {
		l.Emit(event.Event{Type: event.ProxyStarted, Time: at})
	}
	closed(t, l)
	if l.Lost() != 5 || len(warnings) != 1 {
		t.Errorf("lost %d, %d warnings", l.Lost(), len(warnings))
	}
}
