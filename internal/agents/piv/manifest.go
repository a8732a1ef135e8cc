package piv

import (
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"
)

// ManifestPath is where a project's manifest is (PIV-4).
func ManifestPath(project string) string { return filepath.Join(project, ".agents", "manifest.yaml") }

// Manifest is what a project's manifest tells of how far it has come.
type Manifest struct {
	LastUpdated   time.Time // zero: it does not say
	Failures      []Failure
	Notifications []Notification
	// Phase is the first that is not complete; [NoPhase] when there is none.
	Phase int
	// Complete says that there are phases, and that all of them are complete.
	Complete bool
}

// Failure is one entry of failures[].
type Failure struct {
	Command    string
	Phase      int    // or [NoPhase]
	Category   string // error_category, such as integration_auth
	Retries    int
	MaxRetries int
	Resolution string // pending, auto_fixed, rolled_back, escalated, escalated_blocking, auto_rollback_retry
	Details    string
}

// Pending reports a failure that nobody has dealt with.
func (f Failure) Pending() bool { return f.Resolution == "pending" }

// Notification is one entry of notifications[].
type Notification struct {
	Type         string // escalation, info, completion
	Category     string
	Phase        int // or [NoPhase]
	Details      string
	Time         time.Time // zero: it does not say
	Blocking     bool
	Acknowledged bool
}

// Waits reports a notification that the agent waits for an answer to.
func (n Notification) Waits() bool { return n.Blocking && !n.Acknowledged }

// ParseManifest reads a manifest. What is no mapping is an error that wraps [ErrBroken]; members it does not know, and
// entries that make no sense, are passed over.
func ParseManifest(text []byte) (*Manifest, error) {
	_, root, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("manifest %w", err)
	}
	m := &Manifest{LastUpdated: timeOf(root, "last_updated")}
	m.Phase, m.Complete = progress(member(root, "phases"))
	for _, n := range items(root, "failures") {
		m.Failures = append(m.Failures, failure(n))
	}
	for _, n := range items(root, "notifications") {
		m.Notifications = append(m.Notifications, notification(n))
	}
	return m, nil
}

// progress says how far the phases have come: each is planned, executed and validated.
func progress(phases *yaml.Node) (current int, complete bool) {
	if phases == nil || phases.Kind != yaml.MappingNode {
		return NoPhase, false
	}
	open, known := NoPhase, false
	for i := 0; i+1 < len(phases.Content); i += 2 {
		number, err := strconv.Atoi(phases.Content[i].Value)
		if err != nil {
			continue
		}
		known = true
		entry := resolve(phases.Content[i+1])
		validated := scalar(entry, "validation")
		if scalar(entry, "plan") == "complete" && scalar(entry, "execution") == "complete" && (validated == "pass" || validated == "complete") {
			continue
		}
		if open == NoPhase || number < open {
			open = number
		}
	}
	return open, known && open == NoPhase
}

func failure(n *yaml.Node) Failure {
	return Failure{
		Command: scalar(n, "command"), Phase: phase(n), Category: scalar(n, "error_category"),
		Retries: count(n, "retry_count"), MaxRetries: count(n, "max_retries"),
		Resolution: scalar(n, "resolution"), Details: scalar(n, "details"),
	}
}

func notification(n *yaml.Node) Notification {
	return Notification{
		Type: scalar(n, "type"), Category: scalar(n, "category"), Phase: phase(n), Details: scalar(n, "details"),
		Time: timeOf(n, "timestamp"), Blocking: yes(n, "blocking"), Acknowledged: yes(n, "acknowledged"),
	}
}

func phase(n *yaml.Node) int {
	p, err := number(n, "phase", NoPhase)
	if err != nil {
		return NoPhase
	}
	return p
}

func count(n *yaml.Node, key string) int {
	c, err := number(n, key, 0)
	if err != nil {
		return 0
	}
	return c
}

func timeOf(n *yaml.Node, key string) time.Time {
	t, err := ParseTime(scalar(n, key))
	if err != nil {
		return time.Time{}
	}
	return t
}
