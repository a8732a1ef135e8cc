package notify

import "context"

// Channel sends messages: to a chat, a push service, a program. It is used by one goroutine at a time.
type Channel interface {
	// Send sends one message, which fits [Sized], and returns its id in the channel, "" if it has none. An error is a
	// [SendError]; any other counts as [Unreachable], unsure.
	Send(ctx context.Context, m Message) (ref string, err error)
}

// Unopened is a channel that could not be opened, for example for a wrong address. Its messages wait until it can be.
type Unopened struct{ Err error }

// Send fails.
func (u Unopened) Send(context.Context, Message) (string, error) {
	return "", &SendError{Failure: Refused, Err: u.Err}
}

// Editor is a channel whose messages can be changed. Changing one twice has no further effect.
type Editor interface {
	// Update replaces the whole message with its buttons. An error is a [SendError]; [Gone] says that the message does
	// not exist.
	Update(ctx context.Context, ref string, m Message) error
}

// Sized is a channel that takes only so much in one message.
type Sized interface {
	// Limit is in UTF-16 code units. A channel that is not Sized takes [MessageLimit].
	Limit() int
}

// Paced is a channel that takes only so many messages.
type Paced interface {
	Pace() Pace
}

// Mover is a channel whose address can change while messages wait for it.
type Mover interface {
	// Address is where messages go now.
	Address() string
	// MoveTo sends every later message elsewhere.
	MoveTo(address string)
}

// Checker is a channel that can be tested without sending a message.
type Checker interface {
	// Check returns our name there, or of a program its path.
	Check(ctx context.Context) (name string, err error)
}
