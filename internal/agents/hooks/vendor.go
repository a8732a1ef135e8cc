package hooks

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// Version is that of a CLI: major, minor, patch.
type Version = agentcli.Version

var versionText = lazyregexp.New(`\b(\d{1,6})\.(\d{1,6})\.(\d{1,6})`)

// ParseVersion finds the version in what a CLI prints for --version: "2.1.330 (Claude Code)", "codex-cli 0.169.0".
func ParseVersion(text string) (v Version, ok bool) {
	m := versionText.FindStringSubmatch(text)
	if m == nil {
		return v, false
	}
	for i := range v {
		v[i], _ = strconv.Atoi(m[i+1]) // six digits always fit
	}
	return v, true
}

// quickTimeout is how long a CLI waits for a hook that only leaves an event: a hundred times what it takes.
const quickTimeout = 10 * time.Second

// TimeoutMargin is how much longer than our own wait the CLI's patience with the hook is: time to start, and to say that
// nobody has answered.
const TimeoutMargin = 30 * time.Second

// DefaultWait is how long a permission request waits for its answer: with [TimeoutMargin] the 600 s that Claude Code and
// Codex give a hook by default.
const DefaultWait = 570 * time.Second

// Vendor is an agent CLI with hooks. Its name is what the command line calls it, and its command.
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

// VendorNamed returns the vendor of this name, nil when there is none.
func VendorNamed(name string) *Vendor {
	for _, v := range Vendors() {
		if v.Name == name {
			return v
		}
	}
	return nil
}

// CanAsk reports whether the CLI lets a hook decide on a permission.
func (v *Vendor) CanAsk() bool {
	for _, e := range v.Events {
		if e.Name == agentcli.PermissionRequest {
			return true
		}
	}
	return false
}

// System is where settings are looked for.
type System struct {
	Home string                   // the user's home directory
	Env  func(name string) string // the environment
}

// SettingsPath is the file that has the CLI's hooks: the user's, or with a project's directory the one there that is not
// shared with others, where the CLI has such a one.
func (v *Vendor) SettingsPath(sys System, project string) string {
	if project != "" {
		return filepath.Join(project, v.place.Folder, cmp.Or(v.Local, v.File))
	}
	return filepath.Join(v.place.In(sys.Home, sys.Env), v.File)
}

// Entry is one hook of ours in a settings file.
type Entry struct {
	Event   string
	Command string
	Timeout time.Duration // until the CLI gives up on the hook
}

// EntryOptions say what [Vendor.Entries] is to make.
type EntryOptions struct {
	// Command runs the hook, as a shell takes it; see [Vendor.HookCommand].
	Command string
	// AskFlags are appended to the command of PermissionRequest; "": nothing.
	AskFlags string
	// Wait is how long a permission request may wait. 0: [DefaultWait].
	Wait time.Duration
	// Any leaves the version out of account.
	Any bool
}

// Entries are the hooks for a version of the CLI, and the events that it is too old for.
func (v *Vendor) Entries(version Version, o EntryOptions) (entries []Entry, tooOld []string) {
	wait := o.Wait
	if wait == 0 {
		wait = DefaultWait
	}
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
