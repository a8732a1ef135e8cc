package hooks

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// Version is that of a CLI: major, minor, patch.
type Version = agentcli.Version

var versionText = lazyregexp.New(`\b(\d{1,6})\.(\d{1,6})\.(\d{1,6})`)

// ParseVersion finds the version in a CLI's output for --version: "2.1.330 (Claude Code)", "codex-cli 0.169.0".
func ParseVersion(text string) (v Version, ok bool) {
	m := versionText.FindStringSubmatch(text)
	if m == nil {
		return v, false
	}
	for i := range v {
		v[i], _ = strconv.Atoi(m[i+1]) // not an error: the pattern has at most six digits
	}
	return v, true
}

// quickTimeout is the CLI's timeout for a hook that only writes an event: a hundred times what that takes.
const quickTimeout = 10 * time.Second

// TimeoutMargin is how much longer than our own wait the CLI's timeout for the hook is: time to start, and to report
// that there was no answer.
const TimeoutMargin = 30 * time.Second

// DefaultWait is how long a permission request waits for its answer. With [TimeoutMargin] it is the 600 s that Claude
// Code and Codex give a hook by default.
const DefaultWait = 570 * time.Second

// Vendor is an agent CLI with hooks. Its name is the one on the command line, and its command.
type Vendor struct {
	Name, Title string
	place       agentcli.Place
	agentcli.Hooks
}

// Vendors are the CLIs with hooks, in a fixed order.
func Vendors() []*Vendor {
	var all []*Vendor
	for _, c := range agentcli.CLIs() {
		if c.Hooks != nil {
			all = append(all, &Vendor{Name: string(c.Kind), Title: c.Title, place: c.Place, Hooks: *c.Hooks})
		}
	}
	return all
}

// VendorNamed returns the vendor with this name; nil: there is none.
func VendorNamed(name string) *Vendor {
	for _, v := range Vendors() {
		if v.Name == name {
			return v
		}
	}
	return nil
}

// CanAsk reports whether the CLI lets a hook decide on permissions.
func (v *Vendor) CanAsk() bool {
	return slices.ContainsFunc(v.Events, func(e agentcli.Since) bool { return e.Name == agentcli.PermissionRequest })
}

// SettingsPath is the file with the CLI's hooks: the user's, by their home directory and environment. For a project's
// directory it is the one there that is not shared with others, if the CLI has one.
func (v *Vendor) SettingsPath(home string, env func(name string) string, project string) string {
	if project != "" {
		return filepath.Join(project, v.place.Folder, cmp.Or(v.Local, v.File))
	}
	return filepath.Join(v.place.In(home, env), v.File)
}

// Entry is one hook of ours in a settings file.
type Entry struct {
	Event   string
	Command string
	Timeout time.Duration // the CLI's timeout for the hook
}

// EntryOptions are options of [Vendor.Entries].
type EntryOptions struct {
	// Command runs the hook, quoted for a shell; see [Vendor.HookCommand].
	Command string
	// AskFlags are appended to the command of PermissionRequest; "": nothing.
	AskFlags string
	// Wait is how long a permission request may wait. 0: [DefaultWait].
	Wait time.Duration
	// Any ignores the version.
	Any bool
}

// Entries returns the hooks for a version of the CLI, and the events that it is too old for.
func (v *Vendor) Entries(version Version, o EntryOptions) (entries []Entry, tooOld []string) {
	wait := cmp.Or(o.Wait, DefaultWait)
	for _, e := range v.Events {
		if !o.Any && version.Before(e.Version) {
			tooOld = append(tooOld, fmt.Sprintf("%s (since %s)", e.Name, e.Version))
			continue
		}
		entry := Entry{Event: e.Name, Command: o.Command, Timeout: quickTimeout}
		if e.Name == agentcli.PermissionRequest {
			entry.Timeout = wait + TimeoutMargin
			if o.AskFlags != "" {
				entry.Command += " " + o.AskFlags
			}
		}
		entries = append(entries, entry)
	}
	return entries, tooOld
}
