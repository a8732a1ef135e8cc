package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
	"github.com/outlive-mcp/outlive/internal/testing/proc"
)

// keepSpare keeps the scripted server and a spare of it.
func keepSpare(t *testing.T, argv []string) *kept {
	t.Helper()
	return keep(t, Options{Backend: backend.Options{Name: "srv", Command: argv, Supervise: supervise.Options{Standby: 1}}})
}

// killServing kills the process that serves and returns its generation.
func (k *kept) killServing() (gen int) {
	k.Helper()
	k.do(func() {
		s := k.Backend.Serving().(*server)
		gen = s.gen
		if err := proc.Kill(s.PID()); err != nil { // one that is not spawned has the number -1
			k.Error(err)
		}
	})
	return gen
}

// list asks for the tools: whether the killed process has read that just before it died makes no difference to the client.
func (k *kept) list(id int) {
	k.Helper()
	k.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, id), `"echo"`)
}

// A spare, which was a starting process once, takes over from a killed one, and the next stands by, again and again.
func TestASpareTakesOver(t *testing.T) {
	argv, _ := mcptest.Command()
	k := keepSpare(t, argv)
	k.greet("serverInfo")
	for life := range 5 {
		k.await(event.SpareReady)
		dead := k.killServing()
		k.list(10 + life)
		k.do(func() {
			if now := k.Backend.Serving().(*server).gen; now == dead {
				t.Errorf("generation %d serves on", now)
			}
		})
		if e := k.await(event.ServerExited); e.Generation != dead {
			t.Errorf("generation %d has exited, want %d", e.Generation, dead)
		}
	}
	k.end()
}

// A spare that cannot be started is told of, and takes nothing away from the client; when it can be, it comes.
func TestASpareThatCannotBeStarted(t *testing.T) {
	argv, _ := mcptest.Command()
	program := filepath.Join(t.TempDir(), "server")
	if err := os.Symlink(argv[0], program); err != nil {
		t.Fatal(err)
	}
	argv[0] = program
	k := keepSpare(t, argv)
	k.greet("serverInfo")
	k.await(event.SpareReady)
	if err := os.Rename(program, program+".away"); err != nil {
		t.Fatal(err)
	}
	k.killServing()
	k.list(10)
	k.await(event.SpawnFailed)
	k.list(11)
	if err := os.Rename(program+".away", program); err != nil {
		t.Fatal(err)
	}
	k.await(event.SpareReady)
	k.list(12)
	k.end()
}

// beside starts a process that the backend knows nothing of, and returns it while it is starting.
func (k *kept) beside(then func(*server)) *server {
	k.Helper()
	var s *server
	k.do(func() {
		started, err := (*world)(k.Host).Start(backend.Launch{Gen: 99, Beside: true})
		if err != nil {
			k.Fatal(err)
		}
		s = started.(*server)
		if s.PID() != backend.NotSpawned {
			k.Errorf("its pid is %d already", s.PID())
		}
		then(s)
	})
	return s
}

// gone waits until nothing is left of a process.
func (k *kept) gone(s *server) {
	k.Helper()
	select {
	case <-s.left:
	case <-time.After(patience):
		k.Fatal("the process does not end")
	}
	if err := syscall.Kill(s.process.PID(), 0); !errors.Is(err, syscall.ESRCH) {
		k.Errorf("process %d: %v", s.process.PID(), err)
	}
}

// What a process is given before it exists is kept, and counted as not read; that it is to end, too.
func TestAStartingProcessThatIsToEnd(t *testing.T) {
	argv, _ := mcptest.Command()
	k := keep(t, Options{Backend: backend.Options{Name: "srv", Command: argv}})
	k.greet("serverInfo")
	for name, end := range map[string]func(*server){"Kill": (*server).Kill, "Terminate": (*server).Terminate, "CloseInput": (*server).CloseInput} {
		s := k.beside(func(s *server) {
			s.Send([]byte("12345"))
			s.Forward([]byte("123"))
			if n, ok := s.Unread(); n != 10 || !ok {
				t.Errorf("%d bytes are unread, %v; want 10", n, ok)
			}
			end(s)
		})
		t.Log(name)
		k.gone(s)
	}
	k.list(10)
	k.end()
}

// A host that is closed ends also what it is just starting.
func TestCloseEndsAStartingProcess(t *testing.T) {
	argv, _ := mcptest.Command()
	k := keep(t, Options{Backend: backend.Options{Name: "srv", Command: argv}})
	k.greet("serverInfo")
	s := k.beside(func(*server) { k.loop.Stop() })
	<-k.over
	k.gone(s)
}
