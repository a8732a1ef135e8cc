package notify

import (
	"fmt"
	"time"
)

// Failure is why a message was not sent, as it matters for the next try.
type Failure string

// The kinds of failure.
const (
	// Unreachable: no answer, or the server's own failure (5xx). Try again after a while.
	Unreachable Failure = "unreachable"
	// Limited: too many messages (429). Try again after SendError.RetryAfter.
	Limited Failure = "limited"
	// Refused: the token is dead, or we may not write there (401, 403, 404). No message will get through until a human
	// has done something.
	Refused Failure = "refused"
	// Rejected: this message is wrong (400), others may be right.
	Rejected Failure = "rejected"
	// Moved: the chat has another number now, SendError.Address.
	Moved Failure = "moved"
	// Gone: the message to be changed does not exist any more, or cannot be changed.
	Gone Failure = "gone"
)

// SendError says why a message was not sent.
type SendError struct {
	Failure    Failure
	RetryAfter time.Duration // of [Limited]; 0: it was not said
	Address    string        // of [Moved]
	// Unsure says that the message may have arrived without confirmation.
	Unsure bool
	Err    error
}

// Error names the failure; no token is in it.
func (e *SendError) Error() string { return fmt.Sprintf("%s: %v", e.Failure, e.Err) }

// Unwrap returns the channel's error.
func (e *SendError) Unwrap() error { return e.Err }

// Pauses of the outbox.
const (
	messagePause = time.Second     // the least between two tries
	firstRetry   = 2 * time.Second // after an unreachable server, doubled up to lastRetry
	lastRetry    = 5 * time.Minute
	limitedRetry = 30 * time.Second // after a 429 that does not say how long
	refusedRetry = time.Hour        // after a dead token: a human may have dealt with it
)

// verdict says how a failed message is handled.
type verdict struct {
	wait          time.Duration
	drop          bool
	unsure, plain bool
	gone, refused bool
	address       string
}

// judge decides how to handle a failed message after so many earlier tries.
func judge(failure *SendError, m Message, tries int, plain bool) verdict {
	switch failure.Failure {
	case Limited:
		wait := failure.RetryAfter
		if wait <= 0 {
			wait = limitedRetry
		}
		return verdict{wait: max(wait, messagePause)}
	case Moved:
		return verdict{wait: messagePause, address: failure.Address}
	case Refused:
		return verdict{wait: refusedRetry, refused: true}
	case Gone: // a deleted message is not sent again for a minor change
		return verdict{wait: messagePause, gone: true, drop: m.Minor}
	case Rejected:
		// PIV-12: a message rejected with its formatting is sent without. If that fails, too, it never works.
		return verdict{wait: messagePause, plain: true, drop: plain}
	}
	return verdict{wait: min(firstRetry<<min(tries, 10), lastRetry), unsure: failure.Unsure}
}
