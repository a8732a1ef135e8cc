package piv

import (
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// ManifestPath is where a project's manifest is (PIV-4).
func ManifestPath(project string) string { return filepath.Join(project, ".agents", "manifest.yaml") }

// Manifest is what a project's manifest tells of how far it has come.
type Manifest struct {
	LastUpdated   time.Time      // zero: it does not say
	Failures      []Failure      // that nobody has dealt with
	Notifications []Notification // that the agent waits for an answer to
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
	Details    string
}

// Notification is one entry of notifications[].
type Notification struct {
	Category string
	Details  string
}

// ParseManifest reads a manifest. What is no mapping is an error that wraps [ErrBroken]; members it does not know, and
// entries that make no sense, are passed over.
func ParseManifest(text []byte) (*Manifest, error) {
	root, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("manifest %w", err)
	}
	m := &Manifest{}
	if at, err := ParseTime(root.TextOf("last_updated")); err == nil {
		m.LastUpdated = at
	}
	m.Phase, m.Complete = progress(root.Good("phases"))
	for _, n := range items(root, "failures") {
		// The others are auto_fixed, rolled_back, escalated, escalated_blocking or auto_rollback_retry.
		if n.TextOf("resolution") == "pending" {
			m.Failures = append(m.Failures, failure(n))
		}
	}
	for _, n := range items(root, "notifications") {
		if yes(n, "blocking") && !yes(n, "acknowledged") {
			m.Notifications = append(m.Notifications, Notification{Category: n.TextOf("category"), Details: n.TextOf("details")})
		}
	}
	return m, nil
}

// progress says how far the phases have come: each is planned, executed and validated.
func progress(phases *tree.Node) (current int, complete bool) {
	if phases == nil {
		return NoPhase, false
	}
	open, known := NoPhase, false
	for _, f := range phases.Members() {
		number, err := strconv.Atoi(f.Key)
		if err != nil {
			continue
		}
		known = true
		validated := f.TextOf("validation")
		if f.TextOf("plan") == "complete" && f.TextOf("execution") == "complete" && (validated == "pass" || validated == "complete") {
			continue
		}
		if open == NoPhase || number < open {
			open = number
		}
	}
	return open, known && open == NoPhase
}

func failure(n *tree.Node) Failure {
	return Failure{
		Command: n.TextOf("command"), Phase: numberOr(n, "phase", NoPhase), Category: n.TextOf("error_category"),
		Retries: numberOr(n, "retry_count", 0), MaxRetries: numberOr(n, "max_retries", 0), Details: n.TextOf("details"),
	}
}

// numberOr is a member that is a whole number; absent for anything else.
func numberOr(n *tree.Node, key string, absent int) int {
	i, _ := number(n, key, absent)
	return i
}
