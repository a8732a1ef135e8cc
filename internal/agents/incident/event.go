package incident

import "github.com/outlive-mcp/outlive/internal/agents/notify"

// Event is something that happened to an incident.
type Event interface{ event() }

// Opened says that there is trouble: the incident begins, continues, or returns.
type Opened struct {
	Facts Facts
	// Nonce is the nonce of the buttons from now on. "": the present one, or none.
	Nonce string
}

// Changed says that there are new facts, or that something was done.
type Changed struct {
	Facts Facts
	// Nonce is as in [Opened]; without one, a new permission request gets no buttons.
	Nonce string
}

// Sent says that a channel has shown a message of the incident.
type Sent struct{ Channel string }

// Failed says that a channel has given up on a message.
type Failed struct{ Channel string }

// Pressed says that a button was pressed. The caller checks the permission.
type Pressed struct {
	Verb  Verb
	Nonce string // that of the button
	By    string // the person, for people to read
	// Next is the one-time nonce of the buttons after this press, if it uses up the present one.
	Next string
}

// Timer says that the time of [Incident.Next] has come.
type Timer struct{}

// Recovered says that the agent works again. How is what helped, such as "after 1 restart"; "": nothing was done.
type Recovered struct{ How string }

// Gone says that there is nothing more to report: the agent was paused or removed, or its work is done.
type Gone struct{ Why string }

func (Opened) event()    {}
func (Changed) event()   {}
func (Sent) event()      {}
func (Failed) event()    {}
func (Pressed) event()   {}
func (Timer) event()     {}
func (Recovered) event() {}
func (Gone) event()      {}

// Effect is something that the caller has to do.
type Effect interface{ effect() }

// Send sends a message, with a sound.
type Send struct {
	// Key identifies the message, also when it is sent again after a kill.
	Key      string
	Channels []string
	Message  notify.Message
}

// Edit changes the message that was sent with Key.
type Edit struct {
	Key      string
	Channels []string
	Message  notify.Message
	// InPlace says that it must make no sound: channels that cannot edit messages skip it.
	InPlace bool
}

// Answer is the answer to a button press, at most 200 characters.
type Answer struct{ Text string }

// Do is the requested action. Request is the permission request that Allow and Deny answer.
type Do struct {
	Verb    Verb
	Agent   string
	Request string
	By      string
}

func (Send) effect()   {}
func (Edit) effect()   {}
func (Answer) effect() {}
func (Do) effect()     {}
