package registry

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
	"github.com/outlive-mcp/outlive/internal/files/schema"
)

// Registry is the content of a registry file.
type Registry struct {
	// Version is 2, 1 for a PIV registry, or 0 for an empty file.
	Version  int
	Updated  time.Time // written by the last program that changed the file; zero: not given
	Agents   []Agent   // in the order of the file
	Listed   bool      // there is a key for them
	Channels []Channel // in the order of the file
	Digest   Digest
	Deadman  Deadman
	// Listen is the address at which pings are accepted, host:port; "": nowhere.
	Listen string
	// Zone is the time zone of quiet hours and of the digest. Never nil; [time.Local] if not given.
	Zone *time.Location
	// Warnings are oddities that are no mistakes. [Registry.Render] formats them.
	Warnings []fileerror.Problem

	source *fileerror.Source
}

// Channel is a way to notify people.
type Channel struct {
	Name string
	// Address is "telegram", "exec:" and a command, or a service's URL. It still contains references such as
	// ${NTFY_TOKEN}: see [Expand].
	Address string
	Topic   int           // of a Telegram group with topics; 0: not given
	Pos     fileerror.Pos // position of its name
}

// Digest is a daily summary.
type Digest struct {
	At string   // "08:00"; "": no digest
	To []string // names of channels; nil: the channels of escalations
}

// Deadman is a URL that is pinged regularly, so that the monitor's own end is noticed.
type Deadman struct {
	URL   string        // may contain references, see [Expand]; "": none
	Every time.Duration // 0: not given
}

// Agent returns the agent with this name.
func (r *Registry) Agent(name string) (Agent, bool) {
	i := slices.IndexFunc(r.Agents, func(a Agent) bool { return a.Name == name })
	if i < 0 {
		return Agent{}, false
	}
	return r.Agents[i], true
}

// Channel returns the channel with this name.
func (r *Registry) Channel(name string) (Channel, bool) {
	i := slices.IndexFunc(r.Channels, func(c Channel) bool { return c.Name == name })
	if i < 0 {
		return Channel{}, false
	}
	return r.Channels[i], true
}

// Render formats a warning like a mistake: file:line:column: message, the line, and a caret.
func (r *Registry) Render(p fileerror.Problem) string { return r.source.Render(p) }

// Warned are the warnings, each in one line. nil is a registry without any.
func (r *Registry) Warned() (lines []string) {
	if r == nil {
		return nil
	}
	for _, w := range r.Warnings {
		line, _, _ := strings.Cut(r.Render(w), "\n")
		lines = append(lines, line)
	}
	return lines
}

// Options are what the file itself does not say.
type Options struct {
	// Home replaces ~/ in paths. "": such paths are a mistake.
	Home string
	// Accepted says that this text was valid before, perhaps to another release. A value that is a mistake now counts as not
	// given, with a warning.
	Accepted bool
}

// Parse parses a registry. name is the file's name in messages. All mistakes are returned together, as
// [*fileerror.Problems].
func Parse(name string, text []byte, o Options) (*Registry, error) {
	s := fileerror.NewSource(name, text)
	root, problems := treeOf(s)
	r := &reader{Walk: schema.Walk{Unquoted: true, Off: o.Accepted, Problems: problems}, home: o.Home, result: &Registry{Zone: time.Local, source: s}}
	if root != nil {
		r.registry(root)
	}
	if err := s.Problems(r.Problems); err != nil {
		return nil, err
	}
	r.result.Warnings = fileerror.InOrder(r.Warnings)
	return r.result, nil
}

// declaration matches a key of a version 2 registry in a text that is not valid YAML.
var declaration = lazyregexp.New(`(?m)^\s*["']?(version["']?:\s*["']?[2-9]|agents["']?:)`)

// Declares reports whether a text is a registry of version 2 or newer, or is meant to be one. A PIV registry is not, nor
// is an empty file.
func Declares(text []byte) bool {
	var top map[string]yaml.Node
	if yaml.Unmarshal(text, &top) != nil {
		return declaration.Match(text)
	}
	_, agents := top["agents"]
	version := top["version"]
	n, err := strconv.Atoi(version.Value)
	return agents || err == nil && n >= 2
}
