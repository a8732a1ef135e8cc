package sharing

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
)

// still is a server that does nothing.
type still struct{}

func (still) Join(_, _ *os.File)                                      {}
func (still) Restart(context.Context, supervise.Source, string) error { return nil }
func (still) End()                                                    {}

// manyDirectories is a daemon with servers of one command, each in a directory of its own.
func manyDirectories(t *testing.T, n int, idle time.Duration) (*Daemon, []*member) {
	t.Helper()
	d := NewDaemon(Options{Idle: idle, Open: func(string, Request, func([]byte)) (Server, error) { return still{}, nil }})
	var env []string
	for i := range 40 {
		env = append(env, fmt.Sprintf("VARIABLE_%d=value", i))
	}
	var all []*member
	for i := range n {
		m, err := d.join(Request{Name: "x", PID: i + 1, Command: []string{"x"}, Dir: fmt.Sprint("/", i), Env: env})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return d, all
}

// A status is asked for once a second while somebody looks, and says what keeps each server apart from each other of its command.
func TestAStatusComparesNothing(t *testing.T) {
	d, _ := manyDirectories(t, 30, time.Hour)
	all := d.Status()
	if len(all) != 30 || len(all[0].Apart) != 29 || !slices.Equal(all[0].Apart[0].By, []string{"directory"}) {
		t.Fatalf("%+v", all)
	}
	if n := testing.AllocsPerRun(10, func() { d.Status() }); n > 1000 {
		t.Errorf("%v allocations", n)
	}
}

// A server that has ended keeps none apart any more.
func TestApartAreThoseThatAreThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, members := manyDirectories(t, 2, time.Minute)
		d.leave(members[0])
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if all := d.Status(); len(all) != 1 || all[0].Apart != nil {
			t.Errorf("%+v", all)
		}
		d.End()
	})
}
