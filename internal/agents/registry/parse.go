package registry

import (
	"slices"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
	"github.com/outlive-mcp/outlive/internal/files/schema"
)

// Registry is a registry that was read.
type Registry struct {
	// Version is 2, 1 for a PIV registry, or 0 for an empty file.
	Version  int
	Updated  time.Time // as the last program that wrote the file has it; zero: it does not say
	Agents   []Agent   // in the order of the file
	Channels []Channel // in the order of the file
	Digest   Digest
	Deadman  Deadman
	// Listen is where pings are taken, host:port; "": nowhere.
	Listen string
	// Zone is where quiet hours and the digest's hour are meant. Never nil; [time.Local] when the file has none.
	Zone *time.Location
	// Warnings are what is odd but no mistake: unknown keys above all. [Roster.Render] shows them.
	Warnings []fileerror.Problem

	source *fileerror.Source
}

// Channel is a way to tell somebody.
type Channel struct {
	Name string
	// Address is "telegram", "exec:" and a command, or a service's URL. References such as ${NTFY_TOKEN} are still in it: see [Expand].
	Address string
	Pos     fileerror.Pos // of the name
}

// Digest is a summary once a day.
type Digest struct {
	At string   // "08:00"; "": no digest
	To []string // names of channels; nil: wherever escalations go
}

// Deadman is what we ping, so that somebody notices when we are gone.
type Deadman struct {
	URL   string        // may hold references, see [Expand]; "": nobody
	Every time.Duration // 0: not said
}

// Agent finds an agent by its name.
func (r *Registry) Agent(name string) (Agent, bool) {
	i := slices.IndexFunc(r.Agents, func(a Agent) bool { return a.Name == name })
	if i < 0 {
		return Agent{}, false
	}
	return r.Agents[i], true
}

// Channel finds a channel by its name.
func (r *Registry) Channel(name string) (Channel, bool) {
	i := slices.IndexFunc(r.Channels, func(c Channel) bool { return c.Name == name })
	if i < 0 {
		return Channel{}, false
	}
	return r.Channels[i], true
}

// Render shows a warning as mistakes are shown: file:line:column: message, the line, and a caret.
func (r *Registry) Render(p fileerror.Problem) string { return r.source.Render(p) }

// Options are what the file itself cannot say.
type Options struct {
	// Home is what ~/ stands for in paths. "": such paths are a mistake.
	Home string
}

// Parse reads a registry. name is what mistakes call the file; they are all told at once, as [*fileerror.Problems].
func Parse(name string, text []byte, o Options) (*Registry, error) {
	s := fileerror.NewSource(name, text)
	root, problems := treeOf(s)
	r := &reader{Walk: schema.Walk{Manner: schema.Lenient, Unquoted: true, Problems: problems}, home: o.Home, result: &Registry{Zone: time.Local, source: s}}
	if root != nil {
		r.registry(root)
	}
	if err := s.Problems(r.Problems); err != nil {
		return nil, err
	}
	r.result.Warnings = fileerror.InOrder(r.Warnings)
	return r.result, nil
}

// declaration is how a registry of declared agents begins where it is not YAML that can be read whole.
var declaration = lazyregexp.New(`(?m)^\s*["']?(version["']?:\s*["']?2\b|agents["']?:)`)

// Declares reports whether a text is a registry of version 2, or was meant to be one. A PIV registry is none, and neither is an
// empty file.
func Declares(text []byte) bool {
	var top map[string]yaml.Node
	if yaml.Unmarshal(text, &top) != nil {
		return declaration.Match(text)
	}
	_, agents := top["agents"]
	version := top["version"]
	return agents || version.Value == "2"
}
