package overview

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/gateway/sharing"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/record/curve"
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

// UnmarshalText reads the word; one that another version knows is [Unknown].
func (h *Health) UnmarshalText(word []byte) error {
	*h = Health(max(0, slices.Index(healthNames[:], string(word))))
	return nil
}

// Wrong reports whether somebody should look.
func (h Health) Wrong() bool { return h >= Warn }

// Input is what was gathered.
type Input struct {
	At        time.Time
	Instances []Instance
	Events    []Event // of the last day, in any order
	Home      *Home   // nil: there is none
	Trouble   []string
	Machines  []Machine // others that are looked at
	Memory    *Memory   // what was computed for the overview before; nil: there is none
}

// Instance is a running outlive and what it said.
type Instance struct {
	control.Instance
	Status control.Status `json:"status"`
	Silent bool           `json:"silent,omitempty"` // it did not answer in time; Status has nothing but the path of the log then
	Heard  time.Time      `json:"-"`                // when it answered last; zero: never
	// Curves are how its servers did, by their names: of those that were called while it was looked at.
	Curves map[string]*curve.Curve `json:"-"`
}

// State is everything there is to show.
type State struct {
	At        time.Time
	Servers   []Server
	Agents    []Agent
	Incidents []Incident // those that wait first, the worst of them first; then the newest
	Monitor   int        // PID of the home's monitor; 0: none runs
	Home      string     // "": there is none
	Trouble   []string   // what could not be looked at
	Wrong     int        // servers, agents and machines with which something is wrong, but of which no incident waits
	Waiting   int        // incidents that nobody has acknowledged
	Hosts     []Host     // other machines, in the order that they were named in
}

// Server is one server, or the gateway or daemon that has several.
type Server struct {
	Key      string // NAME@PID or NAME@PID/SERVER, and HOST/ before that on another machine
	Name     string // likewise
	Host     string // "": this machine
	Of       string // the gateway's key; "": none
	Gateway  bool   // it is a gateway or daemon, and no server
	Instance control.Instance
	Health   Health
	State    string // a word
	Why      string // "": nothing is wrong
	Since    time.Time
	Next     time.Time // when it is started again; zero: not known, or it runs
	Gone     bool      // it, or its outlive, is not there any more
	Stops    int       // how often it has stopped working of late; 0: not often enough to be told

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
	Curve     *curve.Curve    // how it did, minute by minute; nil: not known, or it was not called
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
	Client string
	Memory int64 // bytes, of its whole tree
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
	Begun  time.Time     // when the new process was started, if that waited; zero: at once
	Took   time.Duration // until the new process answered; 0: not known yet
	Done   bool
	Failed bool   // another one followed before it answered
	Cause  string // a supervise.Cause
	Source string // who asked; a supervise.Source
	Reason string
}

// Home is what a monitor's home shows.
type Home struct {
	Path      string     `json:"path"`
	Monitor   int        `json:"monitor_pid,omitempty"` // PID; 0: none runs
	Watched   []Period   `json:"watched,omitempty"`     // when a monitor has looked, the oldest first
	Channels  int        `json:"channels,omitempty"`    // by which the monitor can tell people
	Trouble   string     `json:"trouble,omitempty"`     // why the registry cannot be used
	At        time.Time  `json:"at"`
	Agents    []Agent    `json:"agents,omitempty"`
	Incidents []Incident `json:"incidents,omitempty"`
}

// Agent is an unattended agent.
type Agent struct {
	Host     string    `json:"-"` // "": this machine
	Key      string    `json:"key"`
	Name     string    `json:"name"`
	Kind     string    `json:"kind"`
	Dir      string    `json:"dir,omitempty"`
	Health   Health    `json:"health"`
	Class    string    `json:"class"` // of the verdict, for programs
	State    string    `json:"state"` // in words
	Why      string    `json:"why,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	PID      int       `json:"pid,omitempty"`
	Session  string    `json:"session,omitempty"`
	Joinable bool      `json:"joinable,omitempty"`       // people can join its terminal
	LastSign string    `json:"last_sign,omitempty"`      // and how long ago it was
	SignAt   time.Time `json:"last_sign_at,omitzero"`    // when it was; zero: not known
	SignFrom string    `json:"last_sign_from,omitempty"` // what it was
	Aspects  []Aspect  `json:"aspects,omitempty"`        // what is wrong, what was done, what is asked of a person
	Evidence []string  `json:"evidence,omitempty"`       // one line for each source
	Acts     []Act     `json:"acts,omitempty"`
	CostUSD  float64   `json:"cost_usd,omitempty"` // 0: not known
	Tokens   int64     `json:"tokens,omitempty"`   // likewise
	Output   string    `json:"output,omitempty"`   // the file that its output is kept in; "": none
	// History is how it stood, as the monitor has written it down, the oldest first. [Of] cuts it to the last day and adds the
	// times in which no monitor looked.
	History []Standing `json:"history,omitempty"`
	Strip   []Span     `json:"-"`
}

// Period is a time in which a monitor looked.
type Period struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Standing is how an agent stood from a time on, until the next one.
type Standing struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"-"` // filled in by [Of]
	Health  Health    `json:"health"`
	State   string    `json:"state"` // in words
	Why     string    `json:"why,omitempty"`
	Watched bool      `json:"-"` // by a monitor; false: nothing is known of this time. Filled in by [Of]
}

// Aspect is one thing that is said of an agent.
type Aspect struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Act is something that was done about an agent.
type Act struct {
	At     time.Time `json:"at"`
	Step   string    `json:"step,omitempty"` // for programs
	Text   string    `json:"text"`
	Again  time.Time `json:"again,omitzero"`   // when the agent worked again; zero: not seen
	Helped time.Time `json:"helped,omitzero"`  // when it had done so for long enough; zero: it has not, or not yet
	Effect string    `json:"effect,omitempty"` // both in words; "": nothing was seen
}

// Incident is something that a person was told of, or is to be.
type Incident struct {
	Host     string    `json:"-"` // "": this machine
	ID       string    `json:"id"`
	Agent    string    `json:"agent,omitempty"`   // its key; "": of several
	Members  []string  `json:"members,omitempty"` // their keys, if they are several
	Server   string    `json:"server,omitempty"`  // the name of the server that it is about: NAME or GATEWAY/NAME
	Class    string    `json:"class,omitempty"`   // of the verdict, for programs
	Untold   bool      `json:"untold,omitempty"`  // a channel did not get the last message
	Refused  bool      `json:"refused,omitempty"` // none of them got it
	Case     string    `json:"case,omitempty"`    // of the fleet, that it is about
	Title    string    `json:"title"`
	Details  string    `json:"details,omitempty"`
	Severity string    `json:"severity"`
	State    string    `json:"state"`
	Told     string    `json:"told,omitempty"` // who was told
	ToDo     string    `json:"to_do,omitempty"`
	Opened   time.Time `json:"opened"`
	Began    time.Time `json:"began,omitzero"` // of the trouble, before it was opened; zero: of an older outlive
	Resolved time.Time `json:"resolved,omitzero"`
	Ending   string    `json:"ending,omitempty"`
	Until    time.Time `json:"until,omitzero"` // acknowledged until
	By       string    `json:"by,omitempty"`
	Buttons  []Button  `json:"buttons,omitempty"` // what can be done about it
}

// About reports whether it is an agent's, alone or with others.
func (i Incident) About(agent string) bool {
	return i.Agent == agent || slices.Contains(i.Members, agent)
}

// AboutServer reports whether it is about that server, or about a process of that.
func (i Incident) AboutServer(s Server) bool {
	if i.Server == "" || i.Host != s.Host {
		return false
	}
	key := There(s.Host, s.Key)
	at := max(0, strings.LastIndexByte(key, '@'))
	name, its := key[:at], key[at:]
	if _, server, behind := strings.Cut(its, "/"); behind {
		name += "/" + server
	}
	return i.Server == name
}

// Since is when its trouble began, as far as is known.
func (i Incident) Since() time.Time { return cmp.Or(i.Began, i.Opened) }

// Open reports whether it is not over.
func (i Incident) Open() bool { return i.Resolved.IsZero() }

// Waits reports whether somebody is asked to do something.
func (i Incident) Waits() bool { return i.Open() && i.State != "acknowledged" }

// Health is how bad it is.
func (i Incident) Health() Health {
	switch {
	case i.Waits():
		return Bad
	case i.Open():
		return Warn
	}
	return Idle
}

// Button is something that can be done about an incident.
type Button struct {
	Verb   string `json:"verb"`
	Label  string `json:"label"`
	Target string `json:"target,omitempty"` // what exactly is answered, such as a permission request; "": the incident
}

// Of makes the overview.
func Of(in Input) State {
	w := in.Memory
	if w == nil {
		w = &Memory{}
	}
	w.begin(in)
	s := State{At: in.At, Trouble: in.Trouble}
	s.Servers = allServers(in.Instances, w, "", in.At)
	if h := in.Home; h != nil {
		s.Home, s.Monitor, s.Agents, s.Incidents = h.Path, h.Monitor, agentsOf(h, w, in.At), h.Incidents
		if h.Trouble != "" {
			s.Trouble = append(s.Trouble[:len(s.Trouble):len(s.Trouble)], h.Trouble)
		}
	}
	for _, m := range in.Machines {
		s.addMachine(m, w)
	}
	s.Incidents = ordered(s.Incidents)
	s.Servers = worstFirst(s.Servers)
	slices.SortStableFunc(s.Agents, func(a, b Agent) int { return urgency(a.Health) - urgency(b.Health) })
	s.countWrong()
	return s
}

// urgency is 0 for what is broken, 1 for what is in trouble, 2 for all else, which keeps its place.
func urgency(h Health) int { return int(Bad) - int(max(h, Busy)) }

// inGroups sorts servers: a gateway and what is behind it are a group, with the gateway first. What says the same of two groups, or of two
// in a group, leaves them as they came.
func inGroups(all []Server, ofGroup func(key string) int, ofOne func(Server) int) []Server {
	group := func(s Server) string { return cmp.Or(s.Of, s.Key) }
	place := map[string]int{}
	for n, s := range slices.Backward(all) {
		place[group(s)] = n // where its first one is
	}
	list := slices.Clone(all)
	slices.SortStableFunc(list, func(a, b Server) int {
		of, by := group(a), group(b)
		if of != by {
			return cmp.Or(ofGroup(of)-ofGroup(by), place[of]-place[by])
		}
		if (a.Of == "") != (b.Of == "") {
			return len(a.Of) - len(b.Of)
		}
		return ofOne(a) - ofOne(b)
	})
	return list
}

// worstFirst are servers, those that are worst first; what is behind a gateway stays below it.
func worstFirst(all []Server) []Server {
	first := map[string]int{} // how urgent a gateway is, with all that is behind it
	for _, s := range all {
		key := cmp.Or(s.Of, s.Key)
		if was, known := first[key]; !known || urgency(s.Health) < was {
			first[key] = urgency(s.Health)
		}
	}
	return inGroups(all, func(key string) int { return first[key] }, func(s Server) int { return urgency(s.Health) })
}

// Leave adds servers that are not there any more. Those of a gateway stand behind its others, or behind the gateway that has gone, too.
func (s *State) Leave(gone []Server) {
	if len(gone) == 0 {
		return
	}
	all := append(s.Servers[:len(s.Servers):len(s.Servers)], gone...)
	s.Servers = inGroups(all, func(string) int { return 0 }, func(Server) int { return 0 })
	s.countWrong()
}

// Wrong reports whether somebody should look at it. Of a gateway whose servers say it themselves nothing is wrong.
func (s Server) Wrong() bool { return s.Health.Wrong() && (!s.Gateway || s.Health == Bad) }

// Attention is what of a state is wrong, each once.
type Attention struct {
	Incidents []Incident // that wait
	Servers   []Server   // that none of these is about; likewise the others
	Agents    []Agent
	Hosts     []Host
}

// Attention finds what is wrong.
func (s *State) Attention() (a Attention) {
	for _, i := range s.Incidents {
		if i.Waits() {
			a.Incidents = append(a.Incidents, i)
		}
	}
	for _, one := range s.Servers {
		if one.Wrong() && !slices.ContainsFunc(a.Incidents, func(i Incident) bool { return i.AboutServer(one) }) {
			a.Servers = append(a.Servers, one)
		}
	}
	for _, one := range s.Agents {
		if one.Health.Wrong() && !slices.ContainsFunc(a.Incidents, func(i Incident) bool { return i.About(one.Key) }) {
			a.Agents = append(a.Agents, one)
		}
	}
	for _, one := range s.Hosts {
		if one.Health.Wrong() {
			a.Hosts = append(a.Hosts, one)
		}
	}
	return a
}

func (s *State) countWrong() {
	a := s.Attention()
	s.Wrong, s.Waiting = len(a.Servers)+len(a.Agents)+len(a.Hosts), len(a.Incidents)
}
