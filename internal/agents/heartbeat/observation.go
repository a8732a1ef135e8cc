package heartbeat

import (
	"fmt"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// Kind is what happened.
type Kind string

// The kinds of observations.
const (
	Beat    Kind = "beat"    // alive; State says in which state
	Started Kind = "started" // a run has begun
	Success Kind = "success" // a run has succeeded, or a periodic job is well
	Failure Kind = "failure" // a run has failed
	Log     Kind = "log"     // a note, which does not show that the agent is alive
)

// State is what an agent says that it is doing; "" if it did not say.
type State string

// The states of hb/<agent>.json. Those of pings are converted to these.
const (
	Working State = "working"
	Waiting State = "waiting" // for a person's answer or permission
	Idle    State = "idle"    // has nothing to do
	Stuck   State = "stuck"   // cannot continue by itself
	Exiting State = "exiting" // is about to end on purpose
	Done    State = "done"    // has finished its task
)

// Progress is how much of a task is done; the zero Progress says nothing.
type Progress struct {
	Done  int `json:"done"`
	Total int `json:"total"` // 0: not known
}

// Observation is one sign of life in any form.
type Observation struct {
	Agent    string    `json:"agent"`
	Wall     time.Time `json:"wall"` // the sender's clock if given, otherwise ours; may be in the future
	Kind     Kind      `json:"kind"`
	State    State     `json:"state,omitempty"`
	Note     string    `json:"note,omitempty"` // one line, at most [NoteLimit] bytes
	Phase    *int      `json:"phase,omitempty"`
	Progress Progress  `json:"progress,omitzero"`
	PID      int       `json:"pid,omitempty"`   // of the agent, or of the process that reported for it; 0: unknown
	Start    uint64    `json:"start,omitempty"` // PID's start time, in the system's own units; 0: unknown
	// Next means that no further sign is to be expected earlier than this after Wall. At most [LongestPromise]; 0:
	// not given.
	Next time.Duration `json:"next,omitempty"`
	Exit *int          `json:"exit,omitempty"` // exit status of the run that has ended
}

// Limits of what is kept.
const (
	NoteLimit = 500       // bytes of a note
	BodyLimit = 10_000    // bytes of a ping's body (healthchecks: PING_BODY_LIMIT)
	FileLimit = 64 * 1024 // bytes of a heartbeat file; a longer one is invalid
	// LongestPromise is the maximum of Next, as it is for diagnose: the absence of an agent must be noticed within a night.
	LongestPromise = time.Hour
)

var safeName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// reservedName matches names that Windows reserves for devices, with any extension.
var reservedName = lazyregexp.New(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)`)

// ValidName says why an agent cannot have this name, or returns nil. A valid name is a valid file name on every
// system.
func ValidName(name string) error {
	switch {
	case !safeName.MatchString(name) || strings.HasSuffix(name, "."):
		return fmt.Errorf("%.70q is not an agent name: use up to 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit, not ending with a dot", name)
	case reservedName.MatchString(name):
		return fmt.Errorf("%.70q is not an agent name: Windows keeps it for a device", name)
	}
	return nil
}

// oneLine makes a note of a text: its first line, shortened, without control characters for terminals.
func oneLine(s string) string {
	s = strings.TrimSpace(s)
	s, _, _ = strings.Cut(s, "\n")
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || 0x80 <= c && c < 0xa0 {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(s, "�"))
	return strings.TrimSpace(cut(s, NoteLimit))
}

// cut shortens a text to at most limit bytes, between two characters.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "")
}

func promise(d time.Duration) time.Duration { return min(max(d, 0), LongestPromise) }
