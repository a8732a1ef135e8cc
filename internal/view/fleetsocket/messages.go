package fleetsocket

import (
	"fmt"
	"time"
)

// Status is how a fleet stands, seen from this machine.
type Status struct {
	Version   string    `json:"version"` // of outlive here
	Host      string    `json:"host"`    // what this machine is called in the fleet
	Hub       string    `json:"hub"`     // its address
	Connected bool      `json:"connected"`
	Since     time.Time `json:"since"`         // of the connection, of its loss, or since when nothing is written
	Why       string    `json:"why,omitempty"` // it is not connected, or nothing is written
	// Partial says that the hub has not told everything in time: machines and cases may be missing.
	Partial bool   `json:"partial,omitempty"`
	Hosts   []Host `json:"hosts"`
	// Cases are what the fleet has found that concerns more than one machine, and is not over.
	Cases []Case `json:"cases"`
}

// Case is something that concerns more than one machine.
type Case struct {
	Kind    string    `json:"kind"`    // silent: a machine; machines: several that fell silent at the same time; shared: a cause of trouble
	Subject string    `json:"subject"` // the machine, the first of several, or the cause
	How     string    `json:"how,omitempty"`
	Since   time.Time `json:"since,omitzero"`   // by our clock, where that of the machine that found it is known
	Agents  []string  `json:"agents,omitempty"` // that share a cause, or the machines of several
	By      string    `json:"by"`               // the machine that tells of it, or has found it; "": one that has it told by itself
	State   string    `json:"state"`            // one of the words below
}

// The words for how far it has come with telling people of a case.
const (
	Found   = "found"      // nobody can be told yet
	Telling = "being told" // a machine is about to
	Told    = "told"       // its monitor has told of it
	Shown   = "shown"      // its monitor shows it, and has no channel
)

// Host is a machine of the fleet.
type Host struct {
	Name    string    `json:"name"`
	Version string    `json:"version,omitempty"`  // of outlive there
	State   string    `json:"state"`              // one of the words below
	How     string    `json:"how,omitempty"`      // it is silent: gone, cut off or lost, where that was found out
	Why     string    `json:"why,omitempty"`      // it is not connected
	Heard   time.Time `json:"heard,omitzero"`     // when it was heard last, by its own clock
	ClockMS int64     `json:"clock_ms,omitempty"` // how far that clock is ahead of ours, with what the way takes; 0: it is not known yet
	Servers int       `json:"servers"`
	Agents  int       `json:"agents"`
	// Incidents are the open ones.
	Incidents int `json:"incidents"`
	// Tells says that its monitor has a channel, by which people are told.
	Tells bool `json:"tells,omitempty"`
}

// The words for how a machine stands.
const (
	Connected = "connected"
	Silent    = "silent"    // nothing was heard of it for two beats and a second
	Unknown   = "not known" // we have no connection to the hub, nothing is written there, or what it says cannot be read
	Left      = "has left"  // it is in the fleet no more
	NoAnswer  = "no answer" // it was asked, and did not answer
	NoMember  = "no member" // there is no member on this machine
)

// Trouble is one of an agent here, whose cause agents of other machines may share.
type Trouble struct {
	Cause string `json:"cause"`
	Agent string `json:"agent"`
	Told  bool   `json:"told,omitempty"` // people were told of it here
}

// ShareAnswer are the causes that the fleet tells people of.
type ShareAnswer struct {
	Causes []string `json:"causes"`
}

// Command is what outlive on a host is to do.
type Command struct {
	Host string   `json:"host"`
	Args []string `json:"args"`
}

// Frame is a piece of what came of a command. The last one has Exit or Ended.
type Frame struct {
	Out   []byte  `json:"out,omitempty"`
	Err   []byte  `json:"err,omitempty"`
	Exit  *int    `json:"exit,omitempty"`
	Ended *Ending `json:"ended,omitempty"` // there is no exit status
}

// Ending is why nothing more comes, as an error.
type Ending struct {
	Word string    `json:"word"`
	Why  string    `json:"why"`
	From time.Time `json:"from,omitzero"` // since when it is so; zero: since now
	// Position is where the next Follow goes on; "": nowhere in particular.
	Position string `json:"position,omitempty"`
}

// Error implements error.
func (e *Ending) Error() string { return e.Why }

// Since is since when it is so; zero: not known.
func (e *Ending) Since() time.Time { return e.From }

// The words for how a machine has fallen silent.
const (
	Gone   = "gone"    // its connection was closed
	CutOff = "cut off" // its connection fell silent
)

// whySilent are those words for people. "": it was not found out.
var whySilent = map[string]string{
	"":     "it is off, cut off, or its member does not run (outlive fleet join)",
	Gone:   "it is gone: its connection was closed, so its member has ended (outlive fleet join)",
	CutOff: "it is cut off, asleep or off: its connection fell silent",
}

// SilentFor is the ending of a host that says nothing; how is one of the words above, or "".
func SilentFor(host string, heard time.Time, how string) *Ending {
	if heard.IsZero() {
		return &Ending{Word: Silent, Why: fmt.Sprintf("nothing was heard of %s yet", host)}
	}
	why, known := whySilent[how]
	if !known {
		why = whySilent[""]
	}
	return &Ending{Word: Silent, Why: "nothing was heard of it since " + heard.UTC().Format(time.DateTime) + " UTC: " + why, From: heard}
}

// Entry is what the registry of the fleet is asked for, or to change, by a gateway on this machine: records of its sessions, and the lease by
// which one machine has them.
type Entry struct {
	Op     string `json:"op"` // one of the words below
	Key    string `json:"key"`
	Value  []byte `json:"value,omitempty"`  // to be written
	Before uint64 `json:"before,omitempty"` // the revision that it replaces; 0: there is none
}

// The words for what is done with an entry.
const (
	Get   = "get"
	Write = "write" // if it has the revision Before
)

// EntryAnswer is what came of it.
type EntryAnswer struct {
	Value    []byte `json:"value,omitempty"`
	Revision uint64 `json:"revision,omitempty"`
	// Refused is one of the words below; "": it was done.
	Refused string `json:"refused,omitempty"`
	Why     string `json:"why,omitempty"`
}

// The words for why nothing was done, or is known to have been done.
const (
	NotFound = "not found"
	Conflict = "conflict"
	TooLarge = "too large"
	Maybe    = "no answer" // in time: it may have happened
)
