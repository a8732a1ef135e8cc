package hooks

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Outcome is how a request ended.
type Outcome string

// The outcomes. The first two come from a person or the policy; with all others the CLI's own dialog decides.
const (
	Allowed    Outcome = "allow"
	Denied     Outcome = "deny"
	Expired    Outcome = "expired"    // no answer in time
	Withdrawn  Outcome = "withdrawn"  // the CLI ended the hook: it was answered in the CLI's dialog, or the CLI ended
	Unattended Outcome = "unattended" // the program that answers has ended
	Abandoned  Outcome = "abandoned"  // the hook was killed
)

// Settlement is how a request ended, and by whom.
type Settlement struct {
	Outcome Outcome   `json:"outcome"`
	Message string    `json:"message,omitempty"` // for the agent, with Denied
	By      string    `json:"by,omitempty"`      // who decided; "": nobody
	At      time.Time `json:"at"`
	Nonce   string    `json:"nonce,omitempty"`
}

// Decision is a person's answer.
type Decision struct {
	Allow bool
	// Message tells the agent why it was denied. "": "Denied by" and the person's name.
	Message string
}

// The reasons why an answer is rejected.
var (
	// ErrUnknownRequest: there is no such request, or it ended more than a day ago.
	ErrUnknownRequest = errors.New("no such request")
	// ErrNonce: the answer belongs to another request.
	ErrNonce = errors.New("the answer does not belong to this request")
)

// SettledError says that an answer came too late, and how the request had ended.
type SettledError struct{ Settlement }

// Error is worded for the person who pressed a button.
func (e *SettledError) Error() string {
	at := e.At.Local().Format("15:04:05")
	switch e.Outcome {
	case Allowed, Denied:
		verb := map[Outcome]string{Allowed: "allowed", Denied: "denied"}[e.Outcome]
		return fmt.Sprintf("already %s by %s at %s", verb, e.By, at)
	case Expired:
		return "nobody had answered at " + at + ": the dialog in the terminal decides"
	case Unattended:
		return "the monitor was away at " + at + ": the dialog in the terminal decides"
	case Withdrawn:
		return "the agent stopped waiting at " + at + ": answered in the terminal, or ended"
	}
	return "the agent's hook was killed before " + at
}

// Answer decides an open request, once. nonce is that of the [Request] as it was shown, and by names the person. An
// answer that comes too late gets a [*SettledError].
func Answer(dir, id, nonce string, d Decision, by string) error {
	if !requestID.MatchString(id) {
		return fmt.Errorf("answer a request: %w", ErrUnknownRequest)
	}
	var r Request
	err := readJSON(requestPath(dir, id), &r)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("answer request %s: %w", id, lateness(dir, id, nonce))
	case err != nil:
		return fmt.Errorf("answer request %s: %w", id, err)
	case !sameNonce(r.Nonce, nonce):
		return fmt.Errorf("answer request %s: %w", id, ErrNonce)
	case !hookLives(dir, id):
		if err := abandon(dir, &r); err != nil {
			return fmt.Errorf("answer request %s: %w", id, err)
		}
		return fmt.Errorf("answer request %s: %w", id, lateness(dir, id, nonce))
	}
	s := Settlement{Outcome: Denied, Message: d.Message, By: by, At: time.Now(), Nonce: nonce}
	if d.Allow {
		s.Outcome, s.Message = Allowed, ""
	} else if s.Message == "" {
		s.Message = "Denied by " + by
	}
	err = settle(dir, id, s)
	if errors.Is(err, fs.ErrExist) {
		err = lateness(dir, id, nonce)
	}
	if err != nil {
		return fmt.Errorf("answer request %s: %w", id, err)
	}
	return nil
}

func sameNonce(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// lateness says how a request that is no longer open has ended, but only if nonce is the request's.
func lateness(dir, id, nonce string) error {
	s, err := settlement(dir, id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrUnknownRequest
	case err != nil:
		return err
	case s.Nonce != "" && !sameNonce(s.Nonce, nonce):
		return ErrNonce
	}
	return &SettledError{s}
}

func settlement(dir, id string) (s Settlement, err error) {
	err = readJSON(answerPath(dir, id), &s)
	return s, err
}

// settle records how a request ended. If that is recorded already, the error is fs.ErrExist. It uses a link because,
// unlike a rename, that does not replace an existing file: only the first caller succeeds.
func settle(dir, id string, s Settlement) error {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("settle request: %w", err)
	}
	temp := filepath.Join(dir, answersFolder, "."+id+"."+rand.Text()[:8])
	if err := writeNew(temp, text); err != nil {
		return fmt.Errorf("settle request: %w", err)
	}
	err = os.Link(temp, answerPath(dir, id))
	_ = os.Remove(temp)
	if err != nil {
		return fmt.Errorf("settle request: %w", err)
	}
	return nil
}
