package agentrun

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/files/stateversion"
)

// Report is what the wrapper has seen of an agent, as stored in the agent's file. If the agent could not be started, it
// has the wrapper's own process, the reason in LastLines, and 126 or 127 as exit code.
type Report struct {
	Version int    `json:"v"` // 1
	Agent   string `json:"agent"`
	PID     int    `json:"pid"`   // of the agent
	Start   uint64 `json:"start"` // its start time, in the system's own units
	Boot    string `json:"boot,omitempty"`
	// Wrapper is our own process. If it is killed, the file stays as it was: readers must check whether it lives.
	Wrapper   process.Identity `json:"wrapper"`
	StartedAt time.Time        `json:"started_at"`

	OutputAt time.Time `json:"output_at,omitzero"` // of the last byte that the agent has written
	TextAt   time.Time `json:"text_at,omitzero"`   // of the last that its terminal had not shown before, animations and times aside; zero: not known
	CountAt  time.Time `json:"count_at,omitzero"`  // when a count of tokens on it last changed; zero: none has
	Bytes    int64     `json:"bytes"`

	TypedAt time.Time `json:"typed_at,omitzero"` // when a key was last pressed at its terminal, the wrapper's or a joined one; zero: none was

	Socket string   `json:"socket,omitempty"` // where its terminal can be joined ([Attach]); "": it has none
	Joined []Joined `json:"joined,omitempty"` // who has
	Piped  bool     `json:"piped,omitempty"`  // it has pipes, and no terminal

	Title      string          `json:"title,omitempty"`       // of its terminal (OSC 0 and 2)
	TitleState agentcli.Status `json:"title_state,omitempty"` // what the title says: idle, busy, waiting; "": nothing
	TitleAt    time.Time       `json:"title_at,omitzero"`     // when it came to say so
	LastLines  []string        `json:"last_lines,omitempty"`  // printable, not redacted

	// Headless says that the command works on one prompt and exits, such as claude -p: exit status 0 means done.
	Headless bool `json:"headless,omitempty"`

	Exit    *Exit   `json:"exit,omitempty"`    // nil: it runs
	Notice  *Notice `json:"notice,omitempty"`  // the last of sd_notify; nil: it has said nothing
	Session string  `json:"session,omitempty"` // that the output names
	Failed  string  `json:"failed,omitempty"`  // the error that its last turn ended with, by stream-json output; not redacted
}

// Process is the agent's process. Its start time is 0 if the process had ended before it was examined.
func (r Report) Process() process.Identity {
	return process.Identity{PID: r.PID, Start: r.Start, Boot: r.Boot}
}

// Exit is how an agent ended.
type Exit struct {
	Code   int       `json:"code"`             // 128+n after a signal
	Signal string    `json:"signal,omitempty"` // such as "killed"; "": it ended by itself
	At     time.Time `json:"at"`
}

// Notice is what an agent has said by sd_notify.
type Notice struct {
	Ready      bool      `json:"ready,omitempty"`
	Status     string    `json:"status,omitempty"`
	WatchdogAt time.Time `json:"watchdog_at,omitzero"`
	Until      time.Time `json:"extend_until,omitzero"` // EXTEND_TIMEOUT_USEC: nothing is to be expected before
	Stopping   bool      `json:"stopping,omitempty"`
	Stuck      bool      `json:"stuck,omitempty"` // WATCHDOG=trigger, and no WATCHDOG=1 since
	PID        int       `json:"pid,omitempty"`   // who has said the last: the agent, or somebody below it
	At         time.Time `json:"at,omitzero"`     // when
}

// reportLimit is the longest report there can be, in bytes.
const reportLimit = 256 << 10

// ErrNoReport is wrapped by the errors about a file that is not a report, or incomplete.
var ErrNoReport = errors.New("not an agent wrapper's report")

// Path is where the report about an agent is, in a home.
func Path(home, agent string) string { return filepath.Join(home, "run", agent+".json") }

// Read reads a report. A file that is not there is an error that wraps [os.ErrNotExist].
func Read(path string) (Report, error) {
	text, err := atomicfile.ReadPlain(path, reportLimit)
	if errors.Is(err, atomicfile.ErrIrregular) || errors.Is(err, atomicfile.ErrTooLong) {
		err = fmt.Errorf("%w: %w", ErrNoReport, err)
	}
	if err != nil {
		return Report{}, err
	}
	var r Report
	err = json.Unmarshal(text, &r)
	if err == nil {
		err = stateversion.Check("the report", r.Version, 1)
	}
	if err != nil || r.Version != 1 || r.PID <= 0 {
		return Report{}, fmt.Errorf("read %s: %w", path, errors.Join(ErrNoReport, err))
	}
	return r, nil
}

// SocketPath is where people join the terminal of an agent, in a home; [Report.Socket] tells where it is in fact.
func SocketPath(home, agent string) string { return filepath.Join(home, "run", agent+".tty") }
