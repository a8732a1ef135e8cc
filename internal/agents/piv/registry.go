package piv

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
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
	document *yaml.Node
}

// SizeLimit is how long a registry or manifest may be, in bytes. A longer file is not one of PIV's.
const SizeLimit = 4 << 20

// ErrBroken is wrapped by the errors of [ParseRegistry] and [ParseManifest]: this is not such a file, or only a part of it.
var ErrBroken = errors.New("cannot be understood")

// ParseRegistry reads a registry. An entry that makes no sense has a Fault; a file that makes none is an error that
// wraps [ErrBroken].
func ParseRegistry(text []byte) (*Registry, error) {
	document, root, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("registry %w", err)
	}
	r := &Registry{document: document, Complete: scalar(root, "lastUpdated") != ""}
	projects := member(root, "projects")
	if root == nil || projects == nil || isNull(projects) {
		if root != nil && len(root.Content) > 0 && projects == nil {
			return nil, fmt.Errorf("registry %w: it has no projects", ErrBroken)
		}
		return r, nil
	}
	if projects.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("registry %w: line %d: projects is no mapping", ErrBroken, projects.Line)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(projects.Content); i += 2 {
		key := projects.Content[i]
		if seen[key.Value] {
			return nil, fmt.Errorf("registry %w: line %d: project %q is there twice", ErrBroken, key.Line, key.Value)
		}
		seen[key.Value] = true
		r.Projects = append(r.Projects, project(key.Value, resolve(projects.Content[i+1])))
	}
	return r, nil
}

func project(key string, n *yaml.Node) Project {
	p := Project{Key: key, Name: key, Phase: NoPhase, LastCompleted: NoPhase}
	if n == nil || n.Kind != yaml.MappingNode {
		p.Fault = "the entry is no mapping"
		return p
	}
	p.Path, p.Status, p.Heartbeat = scalar(n, "path"), Status(scalar(n, "status")), scalar(n, "heartbeat")
	if name := scalar(n, "name"); name != "" {
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
		p.PID, p.Fault = 0, "orchestratorPid is no process number"
	case errPhase != nil || errLast != nil:
		p.Fault = "currentPhase or lastCompletedPhase is no number"
	}
	return p
}

// Change is what becomes of one project. Nil members stay as they are.
type Change struct {
	Key    string
	Status *Status
	PID    *int // 0: null
}

// With returns the registry's text with the changes, lastUpdated included. Unknown keys and comments stay. A project
// that is not there is left out: it was taken away meanwhile.
func (r *Registry) With(changes []Change, now time.Time) ([]byte, error) {
	root := r.document.Content[0]
	projects := member(root, "projects")
	for _, c := range changes {
		entry := member(projects, c.Key)
		if entry == nil || entry.Kind != yaml.MappingNode {
			continue
		}
		if c.Status != nil {
			set(entry, "status", string(*c.Status), "!!str")
		}
		if c.PID != nil && *c.PID == 0 {
			set(entry, "orchestratorPid", "null", "!!null")
		} else if c.PID != nil {
			set(entry, "orchestratorPid", strconv.Itoa(*c.PID), "!!int")
		}
	}
	set(root, "lastUpdated", FormatTime(now), "!!str")
	var out bytes.Buffer
	dumper, err := yaml.NewDumper(&out, yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err != nil {
		return nil, fmt.Errorf("write registry: %w", err)
	}
	if err := errors.Join(dumper.Dump(r.document), dumper.Close()); err != nil {
		return nil, fmt.Errorf("write registry: %w", err)
	}
	// What was written is read again: a registry that only we can write would be worse than none.
	if again, err := ParseRegistry(out.Bytes()); err != nil || len(again.Projects) != len(r.Projects) {
		return nil, fmt.Errorf("write registry: the text does not read back (%w)", errors.Join(err, ErrBroken))
	}
	return out.Bytes(), nil
}

// timeLayouts are the forms of ISO 8601 that JavaScript's Date reads and its writers use.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02"}

// localLayouts have no zone: JavaScript takes them as local time.
var localLayouts = []string{"2006-01-02T15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04:05.999999999"}

// ParseTime reads a heartbeat or another time of PIV.
func ParseTime(s string) (time.Time, error) {
	s = strings.TrimSpace(s)
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	for _, layout := range localLayouts {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("time %.40q %w", s, ErrBroken)
}

// FormatTime writes a time as JavaScript's toISOString does.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
