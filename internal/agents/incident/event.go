package incident

import "time"

// Event is something that happened to an incident.
type Event interface{ event() }

// Opened says that there is trouble: that the incident begins, goes on, or came back.
type Opened struct {
	Facts Facts
	// Nonce is the one-time word of the buttons from now on, by chance. "": the present one, or none.
	Nonce string
}

// Changed says that there are new facts, or that something was done.
type Changed struct {
	Facts Facts
	// Nonce as in [Opened]; without one, a new request for permission gets no buttons.
	Nonce string
}

// Sent says that a channel has shown a message of the incident.
type Sent struct{ Channel string }

// Failed says that a channel has given up on one.
type Failed struct{ Channel string }

// Pressed says that somebody has pressed a button. Whether that person may is the caller's business.
type Pressed struct {
	Verb  Verb
	Nonce string // that the button carried
	By    string // who, for people
	// Next is the one-time word of the buttons after this press, if it uses up the present one.
	Next string
}

// Timer says that it is the time that [SetTimer] named, or later.
type Timer struct{}

// Recovered says that the agent works again. How is what did it, such as "after 1 restart"; "": it did by itself.
type Recovered struct{ How string }

// Gone says that there is nothing left to tell of: the agent was paused or removed, or its work is done.
type Gone struct{ Why string }

func (Opened) event()    {}
func (Changed) event()   {}
func (Sent) event()      {}
func (Failed) event()    {}
func (Pressed) event()   {}
func (Timer) event()     {}
func (Recovered) event() {}
func (Gone) event()      {}

// Effect is something that the caller brings about.
type Effect interface{ effect() }

// Send puts a message before somebody's eyes, with a sound.
type Send struct {
	// Key is the same for the same message, whatever is repeated after a kill.
	Key      string
	Channels []string
	Message  Message
}

// Edit changes what was sent with Key, where it was sent.
type Edit struct {
	Key      string
	Channels []string
	Message  Message
	// InPlace says that it must make no sound: channels that cannot change a message show nothing.
	InPlace bool
}

// Answer is the answer to a button press, in 200 characters at most.
type Answer struct{ Text string }

// Do is the requested action. Request is the permission request that Allow and Deny answer.
type Do struct {
	Verb    Verb
	Agent   string
	Request string
	By      string
}

// SetTimer is when [Timer] is wanted, instead of any earlier time. Zero: none.
type SetTimer struct{ At time.Time }

func (Send) effect()     {}
func (Edit) effect()     {}
func (Answer) effect()   {}
func (Do) effect()       {}
func (SetTimer) effect() {}
