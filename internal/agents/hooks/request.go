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

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// Request is a permission that an agent waits for, while its hook waits for us.
type Request struct {
	ID string `json:"id"` // 12 characters, A to Z and 2 to 7
	// Nonce must come back with the answer: it proves that who answers was shown this request. 16 characters.
	Nonce   string `json:"nonce"`
	Vendor  string `json:"vendor"`
	Session string `json:"session"`
	Dir     string `json:"dir"` // the agent's working directory
	Mode    string `json:"mode,omitempty"`
	Tool    string `json:"tool"`
	// Command is all of the tool's input, at most 2,500 bytes: the command, then every other member as a line "name: value",
	// with the characters that a screen does not show escaped by [Escape]. Nothing is taken out: an input with a secret is
	// not asked about.
	Command string `json:"command"`
	// Subagent is the id of the subagent that asks. "": the agent itself.
	Subagent string `json:"subagent,omitempty"`
	// PID is that of [Event].
	PID      int       `json:"pid,omitempty"`
	Asked    time.Time `json:"asked"`
	Deadline time.Time `json:"deadline"` // when the CLI's own dialog takes over
}

// maxCommand is the most that is asked about, in bytes. It has to stand whole in one message, and a message of Telegram has
// 4096 UTF-16 code units; the rest of them is for who asks, since when and why.
const maxCommand = 2500

// settledKept is how long it is known how a request ended, for those who answer late.
const settledKept = 24 * time.Hour

var requestID = lazyregexp.New(`^[A-Z2-7]{12}$`)

// newRequest gives a request its id and nonce.
func newRequest(c *call, deadline time.Time) *Request {
	return &Request{
		ID: rand.Text()[:12], Nonce: rand.Text()[:16],
		Vendor: c.Vendor, Session: c.Session, Dir: c.Dir, Mode: c.Mode, Tool: c.Tool, Command: c.full,
		Subagent: c.Subagent, PID: c.PID, Asked: c.Time, Deadline: deadline,
	}
}

func requestPath(dir, id string) string { return filepath.Join(dir, requestsFolder, id+".json") }
func lockPath(dir, id string) string    { return filepath.Join(dir, requestsFolder, id+".lock") }
func answerPath(dir, id string) string  { return filepath.Join(dir, answersFolder, id+".json") }

// open publishes the request. The hook holds its lock from before until it ends, however it ends: so others see that it
// is still there.
func (r *Request) open(dir string) (*flock.Flock, error) {
	lock := flock.New(lockPath(dir, r.ID), flock.SetPermissions(0o600))
	// Who sweeps may look at the lock in the moment before it is taken.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := lock.TryLockContext(ctx, 5*time.Millisecond); err != nil {
		return nil, fmt.Errorf("open request: %w", err)
	}
	text, err := json.Marshal(r)
	if err == nil {
		err = publish(filepath.Join(dir, requestsFolder), r.ID+".json", text)
	}
	if err != nil {
		return nil, fmt.Errorf("open request: %w", errors.Join(err, lock.Close(), os.Remove(lock.Path())))
	}
	return lock, nil
}

// close takes the request away. How it ended has been settled before.
func (r *Request) close(dir string, lock *flock.Flock) error {
	err := errors.Join(os.Remove(requestPath(dir, r.ID)), lock.Close())
	_ = os.Remove(lock.Path()) // not while somebody looks at it, on Windows: then [Requests] does it
	if err != nil {
		return fmt.Errorf("close request: %w", err)
	}
	return nil
}

// hookLives reports whether the hook of a request is still there.
func hookLives(dir, id string) bool {
	path := lockPath(dir, id)
	if _, err := os.Lstat(path); err != nil {
		return false
	}
	lock := flock.New(path, flock.SetPermissions(0o600))
	got, err := lock.TryRLock()
	_ = lock.Close()
	return err == nil && !got
}

// Requests returns the open requests, the longest waiting first, and clears away what hooks that were killed have left.
// Files that are not requests are named in the error, which does not keep the others back.
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

// Withdraw settles an open request whose agent waits no longer: its hook ends, and an answer from now on is late. Claude Code
// shows its own dialog beside the hook, and does not end the hook when the user has answered there.
func Withdraw(dir, id string) error {
	if !requestID.MatchString(id) {
		return fmt.Errorf("withdraw a request: %w", ErrUnknownRequest)
	}
	var r Request
	err := readJSON(requestPath(dir, id), &r)
	if err == nil {
		err = settle(dir, id, Settlement{Outcome: Withdrawn, At: time.Now(), Nonce: r.Nonce})
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) { // it has ended otherwise
		return fmt.Errorf("withdraw request %s: %w", id, err)
	}
	return nil
}

// turnIsOver are events after which an agent waits for no permission any more.
var turnIsOver = []string{"Stop", "StopFailure", "UserPromptSubmit", "SessionEnd"}

// withdrawSession withdraws what the agent of an event asked for earlier in its session. Its subagents go on.
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

// sweepRequest removes a half written request, and a lock whose hook was killed before its request was there.
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

// clearSettled forgets how requests of yesterday ended.
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
