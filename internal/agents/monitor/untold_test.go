package monitor

import (
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// Where the system does not tell the CPU time, a command at work does not look idle; a process that it starts is work.
func TestProcessorTimeThatIsNotTold(t *testing.T) {
	t.Parallel()
	compiler := process.Process{Identity: process.Identity{PID: 7}, Age: time.Hour, CPU: process.Untold}
	young := process.Process{Identity: process.Identity{PID: 8}, Age: time.Second, CPU: process.Untold}
	look := func(entries ...process.Process) cpuMark {
		first := cpuMark{}.next([]process.Process{compiler}, Clocks{Mono: time.Hour})
		return first.next(entries, Clocks{Mono: time.Hour + 2*cpuWindow})
	}
	if m := look(compiler); m.Known {
		t.Errorf("a long command: %+v", m)
	}
	if m := look(compiler, young); !m.Known || !m.Starts {
		t.Errorf("one that starts processes: %+v", m)
	}
	told := compiler
	told.CPU = time.Second
	if m := look(told); !m.Known {
		t.Errorf("where it is told: %+v", m)
	}

	server := Server{Key: "shop", Processes: []int{7}, Calls: []ServerCall{{}}}
	k := kept{all: []Server{server}}
	k.lookAtWork(&sources{table: process.TableOf([]process.Process{compiler})}, time.Now())
	if len(k.state.Work) > 0 {
		t.Errorf("a server: %+v", k.state.Work)
	}
}
