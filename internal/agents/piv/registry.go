package piv

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// Status is what the registry says of a project (PIV-1).
type Status string

// The statuses of PIV-1.
const (
	Idle     Status = "idle"
	Running  Status = "running"
	Stalled  Status = "stalled" // the monitor has asked for a human's help
	Complete Status = "complete"
	Failed   Status = "error" // the agent has reported a failure that it cannot get over
)

// NoPhase stands for a phase that is not known: null, or absent.
const NoPhase = -1

// Project is one entry of the registry.
type Project struct {
	Key           string // of the entry
	Name          string // as people call it; the key when the entry has none
	Path          string // of its directory
	Status        Status
	Heartbeat     string // as written: ISO 8601, read by [ParseTime]; "" when there never was one
	PID           int    // orchestratorPid; 0: none
	Phase         int    // currentPhase, or [NoPhase]
	LastCompleted int    // lastCompletedPhase, or [NoPhase]
	// Fault says why the entry cannot be judged; "" when it can.
	Fault string
}

// ResumePhase is where a new orchestrator goes on: the phase under way, else the one after the last completed.
func (p Project) ResumePhase() int {
	if p.Phase == NoPhase && p.LastCompleted != NoPhase {
		return p.LastCompleted + 1
	}
	return p.Phase
}

// Registry is a registry.yaml that was understood.
type Registry struct {
	Projects []Project // in the order of the file
	// Complete says that lastUpdated is there. PIV's writers put it at the end, so without it this may be half a file: one
	// that ends between two lines looks like a whole one, whose last project has no process.
	Complete bool
	text     []byte
}

// SizeLimit is how long a registry or manifest may be, in bytes. A longer file is not one of PIV's.
const SizeLimit = 4 << 20

// ErrBroken is wrapped by the errors of [ParseRegistry] and [ParseManifest]: this is not such a file, or only a part of it.
var ErrBroken = errors.New("cannot be understood")

// ReadFile reads a file of at most [SizeLimit] bytes. What is longer, or no ordinary file, is none of PIV's: the error wraps
// [ErrBroken].
func ReadFile(path string) ([]byte, error) {
	text, err := atomicfile.Read(path, SizeLimit)
	if errors.Is(err, atomicfile.ErrIrregular) || errors.Is(err, atomicfile.ErrTooLong) {
		err = fmt.Errorf("%w: %w", err, ErrBroken)
	}
	return text, err
}

// ParseRegistry reads a registry. An entry that makes no sense has a Fault; a file that makes none is an error that
// wraps [ErrBroken].
func ParseRegistry(text []byte) (*Registry, error) {
	root, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("registry %w", err)
	}
	r := &Registry{text: text, Complete: root.TextOf("lastUpdated") != ""}
	projects := root.Get("projects")
	switch {
	case root != nil && len(root.Members()) > 0 && projects == nil:
		return nil, fmt.Errorf("registry %w: it has no projects", ErrBroken)
	case projects == nil || projects.Kind == tree.Null:
		return r, nil
	case projects.Kind != tree.Object:
		return nil, fmt.Errorf("registry %w: line %d: projects must be a mapping", ErrBroken, projects.Pos.Line)
	}
	for _, f := range projects.Members() {
		r.Projects = append(r.Projects, project(f.Key, f))
	}
	return r, nil
}

func project(key string, n *tree.Node) Project {
	p := Project{Key: key, Name: key, Phase: NoPhase, LastCompleted: NoPhase}
	if n.Kind != tree.Object {
		p.Fault = "the entry must be a mapping"
		return p
	}
	p.Path, p.Status, p.Heartbeat = n.TextOf("path"), Status(n.TextOf("status")), n.TextOf("heartbeat")
	if name := n.TextOf("name"); name != "" {
		p.Name = name
	}
	pid, errPID := number(n, "orchestratorPid", 0)
	var errPhase, errLast error
	p.Phase, errPhase = number(n, "currentPhase", NoPhase)
	p.LastCompleted, errLast = number(n, "lastCompletedPhase", NoPhase)
	p.PID = pid
	switch {
	case p.Path == "":
		p.Fault = "path is missing"
	case errPID != nil || pid < 0:
		p.PID, p.Fault = 0, "orchestratorPid must be a process number"
	case errPhase != nil || errLast != nil:
		p.Fault = "currentPhase or lastCompletedPhase must be a number"
	}
	return p
}

// Change is what becomes of one project. Zero members stay as they are.
type Change struct {
	Key    string
	Status Status
	PID    int
}

// With returns the registry's text with the changes, lastUpdated included. Everything else stays byte for byte. A project
// that is not there is left out: it was taken away meanwhile.
func (r *Registry) With(changes []Change, now time.Time) ([]byte, error) {
	d, err := tree.Open(tree.YAML, "registry", r.text)
	set := func(v any, path ...string) {
		if err == nil {
			err = d.Set(v, path...)
		}
	}
	for _, c := range changes {
		known := err == nil && d.Root.At("projects", c.Key) != nil
		if known && c.Status != "" {
			set(string(c.Status), "projects", c.Key, "status")
		}
		if known && c.PID != 0 {
			set(c.PID, "projects", c.Key, "orchestratorPid")
		}
	}
	var text []byte
	if set(FormatTime(now), "lastUpdated"); err == nil {
		text, err = d.Text()
	}
	if err != nil {
		return nil, fmt.Errorf("write registry: %w: %w", ErrBroken, err)
	}
	return text, nil
}

// timeLayouts are the forms of ISO 8601 that JavaScript's Date reads and its writers use.
var timeLayouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05.999999999Z07:00",
	"2006-01-02T15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04:05.999999999", // without a zone: local time
}

// ParseTime reads a heartbeat or another time of PIV.
func ParseTime(s string) (time.Time, error) {
	s = strings.TrimSpace(s)
	for _, layout := range timeLayouts {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	t, err := time.Parse(time.DateOnly, s) // a date alone is in UTC
	if err != nil {
		return time.Time{}, fmt.Errorf("time %.40q %w", s, ErrBroken)
	}
	return t, nil
}

// FormatTime writes a time as JavaScript's toISOString does.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
