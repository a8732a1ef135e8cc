package heartbeat

import (
	"fmt"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// Source is where an observation comes from.
type Source string

// The sources.
const (
	FromFile         Source = "file"         // hb/<agent>.json
	FromHealthchecks Source = "healthchecks" // /ping/…
	FromNotify       Source = "sd_notify"
)

// Tier is how good evidence is. What an agent says of itself is the best there is; the other tiers are other rooms'.
type Tier string

// SelfReport is the tier of everything here: the agent, or a program on its behalf, has spoken.
const SelfReport Tier = "H"

// Kind is what happened.
type Kind string

// The kinds.
const (
	Beat    Kind = "beat"    // alive; State says in which state
	Started Kind = "started" // a run has begun
	Success Kind = "success" // a run has ended well, or a periodic job is well
	Failure Kind = "failure" // a run has ended badly
	Log     Kind = "log"     // something to note, which says nothing about life
)

// State is what an agent says that it is doing; "" when it did not say.
type State string

// The states of hb/<agent>.json. What pings and sd_notify say is turned into these.
const (
	Working State = "working"
	Waiting State = "waiting" // for a human's answer or permission
	Idle    State = "idle"    // has nothing to do
	Stuck   State = "stuck"   // cannot go on by itself
	Exiting State = "exiting" // is about to end on purpose
	Done    State = "done"    // has finished what it was for
)

// Progress is how far a piece of work is; the zero Progress is none.
type Progress struct {
	Done  int `json:"done"`
	Total int `json:"total"` // 0: not known
}

// Observation is one sign of life, whatever it came as.
type Observation struct {
	Agent    string    `json:"agent"`
	Source   Source    `json:"source"`
	Tier     Tier      `json:"tier"`
	Wall     time.Time `json:"wall"` // by the giver's clock where it says, else by ours; may lie in the future
	Kind     Kind      `json:"kind"`
	State    State     `json:"state,omitempty"`
	Note     string    `json:"note,omitempty"` // one line, at most [NoteLimit] bytes
	Body     string    `json:"body,omitempty"` // of a ping, at most [BodyLimit] bytes; not redacted
	Run      string    `json:"run,omitempty"`  // healthchecks' rid: which run this belongs to
	Phase    *int      `json:"phase,omitempty"`
	Progress Progress  `json:"progress,omitzero"`
	PID      int       `json:"pid,omitempty"`   // of the agent, or of the process that spoke for it; 0: not known
	Start    uint64    `json:"start,omitempty"` // PID's start time, in the system's own units; 0: not known
	// Next is a promise: no sign is to be expected earlier than this after Wall. At most [LongestPromise]; 0: none.
	Next time.Duration `json:"next,omitempty"`
	Exit *int          `json:"exit,omitempty"` // status of the run that has ended
}

// Limits of what is kept.
const (
	NoteLimit = 500       // bytes of a note
	BodyLimit = 10_000    // bytes of a ping's body (healthchecks: PING_BODY_LIMIT)
	FileLimit = 64 * 1024 // bytes of a heartbeat file; a longer one is none
	// LongestPromise is the most that Next can be: an agent that should be missed after a night must report within it.
	LongestPromise = 4 * time.Hour
)

var safeName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// reservedName are files that Windows takes for devices, whatever follows the first dot.
var reservedName = lazyregexp.New(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)`)

// ValidName says why an agent cannot be called so, or nil: its name is a file's name on every system.
func ValidName(name string) error {
	switch {
	case !safeName.MatchString(name) || strings.HasSuffix(name, "."):
		return fmt.Errorf("%.70q is not an agent name: use up to 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit, not ending with a dot", name)
	case reservedName.MatchString(name):
		return fmt.Errorf("%.70q is not an agent name: Windows keeps it for a device", name)
	}
	return nil
}

// oneLine makes a note of what somebody said: its first line, shortened, without what a terminal would obey.
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
