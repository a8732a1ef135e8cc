package hooks

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// Request is a permission request of an agent, while its hook waits for the answer.
type Request struct {
	ID string `json:"id"` // 12 characters, A to Z and 2 to 7
	// Nonce must be part of the answer. It proves that the person who answers was shown this request. 16 characters.
	Nonce   string `json:"nonce"`
	Vendor  string `json:"vendor"`
	Session string `json:"session"`
	Dir     string `json:"dir"` // the agent's working directory
	Tool    string `json:"tool"`
	// Command is the tool's whole input, at most 2,500 bytes: the command, then every other member as a line "name:
	// value". Invisible characters are escaped by [Escape]. Nothing is removed: an input with a secret is not passed
	// on.
	Command string `json:"command"`
	// Subagent is the id of the subagent that asks. "": the agent itself.
	Subagent string `json:"subagent,omitempty"`
	// PID is that of the [Event].
	PID      int       `json:"pid,omitempty"`
	Asked    time.Time `json:"asked"`
	Deadline time.Time `json:"deadline"` // from then on the CLI's own dialog decides
}

// maxCommand is the maximum size of a command that is passed on, in bytes. It has to fit into one message, and a
// message of Telegram has 4096 UTF-16 code units; the rest is for who asks, since when and why.
const maxCommand = 2500

// settledKept is how long the outcome of a request is kept, for answers that come late.
const settledKept = 24 * time.Hour

var requestID = lazyregexp.New(`^[A-Z2-7]{12}$`)

// newRequest returns a request with a new id and nonce.
func newRequest(c *call, deadline time.Time) *Request {
	return &Request{
		ID: rand.Text()[:12], Nonce: rand.Text()[:16],
		Vendor: c.Vendor, Session: c.Session, Dir: c.Dir, Tool: c.Tool, Command: c.full,
		Subagent: c.Subagent, PID: c.PID, Asked: c.Time, Deadline: deadline,
	}
}

func requestPath(dir, id string) string { return filepath.Join(dir, requestsFolder, id+".json") }
func lockPath(dir, id string) string    { return filepath.Join(dir, requestsFolder, id+".lock") }
func answerPath(dir, id string) string  { return filepath.Join(dir, answersFolder, id+".json") }

// open publishes the request. The hook takes its lock first and holds it until it ends in any way: that shows other
// processes that it still waits.
func (r *Request) open(dir string) (*flock.Flock, error) {
	lock, err := hold(context.Background(), lockPath(dir, r.ID))
	if err != nil {
		return nil, fmt.Errorf("open request: %w", err)
	}
	text, err := json.Marshal(r)
	if err == nil {
		err = atomicfile.Write(requestPath(dir, r.ID), text)
	}
	if err != nil {
		return nil, fmt.Errorf("open request: %w", errors.Join(err, lock.Close(), os.Remove(lock.Path())))
	}
	return lock, nil
}

// close removes the request, which has been settled before.
func (r *Request) close(dir string, lock *flock.Flock) error {
	err := errors.Join(os.Remove(requestPath(dir, r.ID)), lock.Close())
	_ = os.Remove(lock.Path()) // on Windows this fails while another process has it open; [Requests] removes it then
	if err != nil {
		return fmt.Errorf("close request: %w", err)
	}
	return nil
}

// hookLives reports whether the hook of a request is still running.
func hookLives(dir, id string) bool { return isHeld(lockPath(dir, id)) }

// Requests returns the open requests, the oldest first, and removes files that killed hooks have left. Files that are
// not requests are named in the error, until they are removed after a while; the others are returned all the same.
func Requests(dir string) ([]Request, error) {
	folder := filepath.Join(dir, requestsFolder)
	names, err := namesIn(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list requests: %w", err)
	}
	var open []Request
	var odd error
	for _, name := range names {
		id, isRequest := strings.CutSuffix(name, ".json")
		if !isRequest || !requestID.MatchString(id) {
			sweepRequest(dir, name)
			continue
		}
		var r Request
		switch err := readJSON(filepath.Join(folder, name), &r); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil || r.ID != id:
			odd = errors.Join(odd, fmt.Errorf("request %s cannot be read: %w", id, err))
			if !hookLives(dir, id) {
				sweep(filepath.Join(folder, name))
			}
		case hookLives(dir, id):
			open = append(open, r)
		default:
			odd = errors.Join(odd, abandon(dir, &r))
		}
	}
	clearSettled(dir)
	slices.SortFunc(open, func(a, b Request) int { return a.Asked.Compare(b.Asked) })
	return open, odd
}

// Withdraw settles an open request whose agent no longer waits: its hook ends, and an answer from now on is late. It
// is needed for Claude Code, which shows its own dialog while the hook waits, and does not end the hook when the user
// has answered there.
func Withdraw(dir, id string) error {
	if !requestID.MatchString(id) {
		return fmt.Errorf("withdraw a request: %w", ErrUnknownRequest)
	}
	var r Request
	err := readJSON(requestPath(dir, id), &r)
	if err == nil {
		err = settle(dir, id, Settlement{Outcome: Withdrawn, At: time.Now(), Nonce: r.Nonce})
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) { // settled in the meantime
		return fmt.Errorf("withdraw request %s: %w", id, err)
	}
	return nil
}

// turnIsOver are events after which an agent no longer waits for a permission.
var turnIsOver = []string{"Stop", "StopFailure", "UserPromptSubmit", "SessionEnd"}

// withdrawSession withdraws the earlier requests of the event's agent in its session. Requests of its subagents are
// kept.
func withdrawSession(dir string, e Event) error {
	if e.Session == "" || e.Subagent != "" || !slices.Contains(turnIsOver, e.Name) {
		return nil
	}
	open, err := Requests(dir)
	for _, r := range open {
		if r.Vendor == e.Vendor && r.Session == e.Session && r.Subagent == "" {
			err = errors.Join(err, Withdraw(dir, r.ID))
		}
	}
	return err
}

// sweepRequest removes a partial request, or a lock whose hook was killed before it wrote its request.
func sweepRequest(dir, name string) {
	path := filepath.Join(dir, requestsFolder, name)
	if id, isLock := strings.CutSuffix(name, ".lock"); isLock {
		if _, err := os.Lstat(requestPath(dir, id)); err == nil || hookLives(dir, id) {
			return
		}
	}
	sweep(path)
}

// abandon settles a request whose hook was killed.
func abandon(dir string, r *Request) error {
	err := settle(dir, r.ID, Settlement{Outcome: Abandoned, At: time.Now(), Nonce: r.Nonce})
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	err = nil
	for _, path := range []string{requestPath(dir, r.ID), lockPath(dir, r.ID)} {
		if e := os.Remove(path); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// clearSettled removes outcomes older than settledKept.
func clearSettled(dir string) {
	folder := filepath.Join(dir, answersFolder)
	names, err := namesIn(folder)
	if err != nil {
		return
	}
	for _, name := range names {
		info, err := os.Lstat(filepath.Join(folder, name))
		if err == nil && time.Since(info.ModTime()) > settledKept {
			_ = os.Remove(filepath.Join(folder, name))
		}
	}
}
