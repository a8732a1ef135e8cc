package hooks

import (
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/pattern"
)

// Version is that of a CLI: major, minor, patch.
type Version [3]int

// String is the usual form.
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }

// Before reports whether v is older than w.
func (v Version) Before(w Version) bool {
	for i := range v {
		if v[i] != w[i] {
			return v[i] < w[i]
		}
	}
	return false
}

var versionText = pattern.New(`\b(\d{1,6})\.(\d{1,6})\.(\d{1,6})`)

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

// permissionRequest is the event at which Claude Code and Codex let a hook decide.
const permissionRequest = "PermissionRequest"

// quickTimeout is how long a CLI waits for a hook that only leaves an event: a hundred times what it takes.
const quickTimeout = 10 * time.Second

// TimeoutMargin is how much longer than our own wait the CLI's patience with the hook is: time to start, and to say that
// nobody has answered.
const TimeoutMargin = 30 * time.Second

// DefaultWait is how long a permission request waits for its answer: with [TimeoutMargin] the 600 s that Claude Code and
// Codex give a hook by default.
const DefaultWait = 570 * time.Second

// Vendor is an agent CLI with hooks.
type Vendor struct {
	// Name is what the command line calls it, Title what people do.
	Name, Title string
	// Program is its command.
	Program string
	// unit is what a timeout counts in its settings.
	unit time.Duration
	// off is the member of its settings that switches all hooks off, with the value that does.
	off      []string
	offValue string
	// folder and file name its settings; local is their name in a project, when that is another one.
	folder, file, local string
	// folderVariable moves the folder, homeVariable what it stands in. "": nothing does.
	folderVariable, homeVariable string
	events                       []eventSince
}

// eventSince is an event we want to hear of, and the first version that has it. A settings file that names an event the
// CLI does not know was ignored as a whole by Claude Code before 2.1.122.
type eventSince struct {
	name  string
	since Version
}

// The events are those that say what an agent waits for or how a turn ended. The ones at every tool call are left out:
// transcripts show the calls already, and each would cost a process.
var vendors = []*Vendor{
	{
		Name: "claude", Title: "Claude Code", Program: "claude", unit: time.Second,
		off: []string{"disableAllHooks"}, offValue: "true",
		folder: ".claude", file: "settings.json", local: "settings.local.json", folderVariable: "CLAUDE_CONFIG_DIR",
		events: []eventSince{
			{"SessionStart", Version{1, 0, 62}}, {"UserPromptSubmit", Version{1, 0, 54}}, {permissionRequest, Version{2, 0, 45}},
			{"Notification", Version{1, 0, 38}}, {"Stop", Version{1, 0, 38}}, {"StopFailure", Version{2, 1, 78}},
			{"SessionEnd", Version{1, 0, 85}},
		},
	},
	{
		// Hooks are on by default since 0.124.0.
		Name: "codex", Title: "Codex", Program: "codex", unit: time.Second,
		folder: ".codex", file: "hooks.json", folderVariable: "CODEX_HOME",
		events: []eventSince{
			{"SessionStart", Version{0, 124, 0}}, {"UserPromptSubmit", Version{0, 124, 0}},
			{permissionRequest, Version{0, 124, 0}}, {"Stop", Version{0, 124, 0}},
		},
	},
	{
		// Its notification tells of a permission and cannot grant it. Hooks are on by default since 0.26.0.
		Name: "gemini", Title: "Gemini CLI", Program: "gemini", unit: time.Millisecond,
		off: []string{"hooksConfig", "enabled"}, offValue: "false",
		folder: ".gemini", file: "settings.json", homeVariable: "GEMINI_CLI_HOME",
		events: []eventSince{
			{"SessionStart", Version{0, 26, 0}}, {"BeforeAgent", Version{0, 26, 0}}, {"Notification", Version{0, 26, 0}},
			{"AfterAgent", Version{0, 26, 0}}, {"SessionEnd", Version{0, 26, 0}},
		},
	},
}

// Vendors are the CLIs with hooks, in a fixed order.
func Vendors() []*Vendor { return vendors }

// VendorNamed returns the vendor of this name, nil when there is none.
func VendorNamed(name string) *Vendor {
	for _, v := range vendors {
		if v.Name == name {
			return v
		}
	}
	return nil
}

// CanAsk reports whether the CLI lets a hook decide on a permission.
func (v *Vendor) CanAsk() bool {
	for _, e := range v.events {
		if e.name == permissionRequest {
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
		if v.local != "" {
			return filepath.Join(project, v.folder, v.local)
		}
		return filepath.Join(project, v.folder, v.file)
	}
	if v.folderVariable != "" {
		if dir := sys.Env(v.folderVariable); dir != "" {
			return filepath.Join(dir, v.file)
		}
	}
	home := sys.Home
	if v.homeVariable != "" {
		if dir := sys.Env(v.homeVariable); dir != "" {
			home = dir
		}
	}
	return filepath.Join(home, v.folder, v.file)
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
	for _, e := range v.events {
		if !o.Any && version.Before(e.since) {
			tooOld = append(tooOld, fmt.Sprintf("%s (since %s)", e.name, e.since))
			continue
		}
		entry := Entry{Event: e.name, Command: o.Command, Timeout: quickTimeout}
		if e.name == permissionRequest {
			entry.Timeout = wait + TimeoutMargin
			if o.AskFlags != "" {
				entry.Command += " " + o.AskFlags
			}
		}
		entries = append(entries, entry)
	}
	return entries, tooOld
}
