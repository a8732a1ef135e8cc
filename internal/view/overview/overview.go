package overview

import (
	"time"

	"github.com/outlive-mcp/outlive/internal/gateway/sharing"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/view/control"
)

// Day is how far back an overview looks.
const Day = 24 * time.Hour

// Health is how something stands, at a glance.
type Health uint8

// The healths, the worst last.
const (
	Unknown Health = iota // nothing is known of that time
	Idle                  // not needed now, or stopped on purpose
	Good
	Busy // starting, or being restarted
	Warn // it works, and something is wrong, or is being dealt with
	Bad  // it does not work, or waits for a person
	healths
)

var healthNames = [healths]string{"unknown", "idle", "good", "busy", "warn", "bad"}

// String is a word for programs.
func (h Health) String() string { return healthNames[h] }

// MarshalText writes the word.
func (h Health) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// Wrong reports whether somebody should look.
func (h Health) Wrong() bool { return h >= Warn }

// Input is what was gathered.
type Input struct {
	At        time.Time
	Instances []Instance
	Events    []Event // of the last day, in any order
	Home      *Home   // nil: there is none
	Trouble   []string
}

// Instance is a running outlive and what it said.
type Instance struct {
	control.Instance
	Status control.Status
	Silent bool      // it did not answer in time; Status is empty then
	Heard  time.Time // when it answered last; zero: never
}

// State is everything there is to show.
type State struct {
	At        time.Time
	Servers   []Server
	Agents    []Agent
	Incidents []Incident // open ones first, then the newest
	Events    []Event    // the newest first
	Monitor   int        // PID of the home's monitor; 0: none runs
	Home      string     // "": there is none
	Trouble   []string   // what could not be looked at
	Wrong     int        // servers and agents with which something is wrong
	Waiting   int        // incidents that nobody has acknowledged
}

// Server is one server, or the gateway or daemon that has several.
type Server struct {
	Key      string // NAME@PID or NAME@PID/SERVER
	Name     string
	Of       string // the gateway's key; "": none
	Gateway  bool   // it is a gateway or daemon, and no server
	Instance control.Instance
	Health   Health
	State    string // a word
	Why      string // "": nothing is wrong
	Since    time.Time
	Next     time.Time // when it is started again; zero: not known, or it runs

	Restarts  int
	Causes    []Count // restarts by cause
	Memory    int64   // bytes
	InFlight  int
	Queued    int
	Processes []Process
	Era       string
	Protocol  string
	Clients   []string
	Version   string // of outlive
	Command   []string
	Dir       string
	URL       string
	Config    string
	LogPath   string
	Runs      []sharing.Run
	Apart     []sharing.Apart
	Calls     []backend.Calls // that were made
	Strip     []Span          // of the last day
	Renewals  []Renewal       // restarts of the last day, the newest first
}

// Count is how often something was.
type Count struct {
	Name string
	N    int64
}

// Process is one process of a server.
type Process struct {
	PID    int
	Role   string // serving, or what it is beside that
	State  string
	Client string
	Memory int64 // bytes, of its whole tree
	Up     time.Duration
}

// Span is a time in which something stood one way.
type Span struct {
	From, To time.Time
	Health   Health
	Restarts int // in that time
}

// Renewal is one restart.
type Renewal struct {
	At     time.Time
	Took   time.Duration // until the new process answered; 0: not known yet
	Done   bool
	Failed bool   // another one followed before it answered
	Cause  string // a supervise.Cause
	Source string // who asked; a supervise.Source
	Reason string
}

// Home is what a monitor's home shows.
type Home struct {
	Path      string
	Monitor   int       // PID; 0: none runs
	Since     time.Time // when it has started; zero: not known
	Trouble   string    // why the registry cannot be used
	At        time.Time
	Agents    []Agent
	Incidents []Incident
}

// Agent is an unattended agent.
type Agent struct {
	Key      string
	Name     string
	Kind     string
	Dir      string
	Health   Health
	Class    string // of the verdict, for programs
	State    string // in words
	Why      string
	Since    time.Time
	PID      int
	Session  string
	LastSign string
	Aspects  []Aspect // what is wrong, what was done, what is asked of a person
	Evidence []string // one line for each source
	Acts     []Act
	CostUSD  float64 // 0: not known
	Tokens   int64   // likewise
	Output   string  // the file that its output is kept in; "": none
	Strip    []Span
}

// Aspect is one thing that is said of an agent.
type Aspect struct{ Name, Text string }

// Act is something that was done about an agent.
type Act struct {
	At     time.Time
	Step   string // for programs
	Text   string
	Helped time.Time // when it worked again; zero: not seen
}

// Incident is something that a person was told of, or is to be.
type Incident struct {
	ID       string
	Agent    string // its key; "": of several
	Class    string // of the verdict, for programs
	Untold   bool   // a channel did not get the last message
	Title    string
	Details  string
	Severity string
	State    string
	Told     string // who was told
	ToDo     string
	Opened   time.Time
	Resolved time.Time
	Ending   string
	Until    time.Time // acknowledged until
	By       string
	Buttons  []Button // what can be done about it
}

// Open reports whether it is not over.
func (i Incident) Open() bool { return i.Resolved.IsZero() }

// Waits reports whether somebody is asked to do something.
func (i Incident) Waits() bool { return i.Open() && i.State != "acknowledged" }

// Button is something that can be done about an incident.
type Button struct {
	Verb, Label string
	Target      string // what exactly is answered, such as a permission request; "": the incident
}

// Of makes the overview.
func Of(in Input) State {
	s := State{At: in.At, Trouble: in.Trouble, Events: newest(in.Events, in.At)}
	byInstance := sorted(s.Events)
	for _, i := range in.Instances {
		s.Servers = append(s.Servers, serversOf(i, byInstance[i.PID], in.At)...)
	}
	if h := in.Home; h != nil {
		s.Home, s.Monitor, s.Agents, s.Incidents = h.Path, h.Monitor, agentsOf(h, in.At), ordered(h.Incidents)
		if h.Trouble != "" {
			s.Trouble = append(s.Trouble[:len(s.Trouble):len(s.Trouble)], h.Trouble)
		}
	}
	for _, one := range s.Servers {
		if one.Health.Wrong() && (!one.Gateway || one.Health == Bad) {
			s.Wrong++
		}
	}
	for _, one := range s.Agents {
		if one.Health.Wrong() {
			s.Wrong++
		}
	}
	for _, i := range s.Incidents {
		if i.Waits() {
			s.Waiting++
		}
	}
	return s
}
