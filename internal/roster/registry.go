package roster

import (
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v4"

	"github.com/outlive-mcp/outlive/internal/heartbeat"
	"github.com/outlive-mcp/outlive/internal/problem"
)

// registry reads the whole document.
func (r *reader) registry(root *yaml.Node) {
	fields := r.fields(root)
	version := ""
	for _, f := range fields {
		if f.name == "version" {
			version = f.value.Value
		}
	}
	agents, projects := has(fields, "agents"), has(fields, "projects")
	if version == "1" || version == "" && !agents && projects {
		r.s4(fields)
		return
	}
	if agents && projects {
		r.wrong(root, "keep agents:", "both agents and projects are given, and they are the same")
	}
	r.roster.Version = 2
	if version == "" {
		r.odd(root, "write version: 2 at the top", "the registry has no version")
	}
	object(rootKeys(r)...).read(r, value{root, ""})
	r.checkTogether()
}

// rootKeys is the top of a registry. The defaults come before the agents, and the channels before whoever names them.
func rootKeys(r *reader) []key {
	var defaults Agent
	to := r.roster
	agents := agentsShape(r.home, &defaults)
	return []key{
		{name: "version", shape: version(), doc: "2"},
		{name: "updated", shape: when(&to.Updated), doc: "when a program has last written the file"},
		{name: "last_updated", shape: when(&to.Updated), doc: "S4's name for updated"},
		{name: "zone", shape: zone(&to.Zone), doc: "time zone of quiet hours and digest, such as Europe/Berlin; the machine's when left out"},
		{name: "channels", shape: channels(&to.Channels), doc: "ways to tell somebody: a name, and telegram, exec:COMMAND or a service's URL; ${NAME} is taken from the environment"},
		{name: "digest", shape: digest(&to.Digest), doc: "a summary once a day: an hour such as \"08:00\", or at and to"},
		{name: "deadman", shape: deadman(&to.Deadman), doc: "what is pinged so that somebody notices when the monitor itself is gone"},
		{name: "listen", shape: text(&to.Listen, `:[0-9]{1,5}$`, checkListen), doc: "host:port where pings are taken, such as 127.0.0.1:8377"},
		{name: "defaults", shape: object(agentKeys(&defaults, r.home)...), doc: "what every agent has that does not say otherwise"},
		{name: "agents", shape: agents, doc: "the agents by name"},
		{name: "projects", shape: agents, doc: "S4's name for agents"},
	}
}

func version() shape {
	return shape{schema: func() *jsonschema.Schema { return &jsonschema.Schema{Enum: []any{2}} }, read: func(r *reader, v value) {
		if v.Value != "2" {
			r.wrong(v.Node, "write version: 2", "%s is %s", v.label, is(v.Node))
		}
	}}
}

// when reads a time; one that makes no sense is not worth a mistake.
func when(to *time.Time) shape {
	return shape{schema: ignored().schema, group: true, read: func(r *reader, v value) {
		t, err := time.Parse(time.RFC3339Nano, v.Value)
		if err != nil {
			r.odd(v.Node, "write it like 2026-11-21T02:00:00Z", "%s is no time", v.label)
			return
		}
		*to = t
	}}
}

func zone(to **time.Location) shape {
	var name string
	s := text(&name, "", notEmpty)
	inner := s.read
	s.read = func(r *reader, v value) {
		if inner(r, v); name == "" {
			return
		}
		location, err := time.LoadLocation(name)
		if err != nil {
			r.wrong(v.Node, "write it like Europe/Berlin", "%s: %q is no time zone of this machine", v.label, problem.Shortened(name))
			return
		}
		*to = location
	}
	return s
}

func channels(to *[]Channel) shape {
	address := text(new(string), "^(telegram$|exec:|[a-z][a-z0-9+.-]*://|\\$\\{)", nil)
	return dict(func(r *reader, f field, label string) {
		if message, hint := checkChannel(f.name); message != "" {
			r.wrong(f.key, hint, "%s: %q %s", label, problem.Shortened(f.name), message)
			return
		}
		c := Channel{Name: f.name, Pos: r.at(f.key)}
		if f.value.Kind == yaml.ScalarNode { // the address is not quoted: it may hold a token
			if message, hint := checkAddress(f.value.Value); message != "" {
				r.problems = append(r.problems, problem.Problem{Pos: r.at(f.value), Message: label + " " + message, Hint: hint, Secret: true})
				return
			}
		}
		r.read(text(&c.Address, "", nil), f, label)
		*to = append(*to, c)
	}, patterned(channelPattern), address.schema)
}

func digest(to *Digest) shape {
	at := text(&to.At, hourPattern, checkHour)
	return shorthand(at, object(
		key{name: "at", shape: at, doc: `time of day, such as "08:00"`, required: true},
		key{name: "to", shape: channelNames(&to.To), doc: "names of channels; wherever escalations go when left out"},
	))
}

func deadman(to *Deadman) shape {
	address := text(&to.URL, `^https?://|\$\{`, nil)
	address.read = func(r *reader, v value) {
		url, ok := r.scalar(v, nil)
		if message, hint := checkURL(url); ok && message != "" {
			r.problems = append(r.problems, problem.Problem{Pos: r.at(v.Node), Message: v.label + " " + message, Hint: hint, Secret: true})
		}
		to.URL = url
	}
	return shorthand(address, object(
		key{name: "url", shape: address, doc: "a healthchecks ping URL, or anything that wants a GET; ${NAME} is filled in", required: true},
		key{name: "every", shape: duration(&to.Every), doc: "how often"},
	))
}

// shorthand is a group whose most important value may stand alone.
func shorthand(alone, whole shape) shape {
	return shape{
		read: func(r *reader, v value) {
			if v.Kind == yaml.ScalarNode {
				alone.read(r, v)
				return
			}
			whole.read(r, v)
		},
		schema: func() *jsonschema.Schema {
			return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{alone.schema(), whole.schema()}}
		},
	}
}

// agentsShape reads agents that begin with the defaults.
func agentsShape(home string, defaults *Agent) shape {
	return dict(func(r *reader, f field, label string) {
		if err := heartbeat.ValidName(f.name); err != nil {
			r.wrong(f.key, "", "%s", err)
			return
		}
		a := defaults.clone()
		a.Name, a.Pos = f.name, r.at(f.key)
		keys := append(ownKeys(&a, home), agentKeys(&a, home)...)
		object(keys...).read(r, value{f.value, label})
		r.checkAgent(f, label, a)
		r.roster.Agents = append(r.roster.Agents, a)
	}, patterned(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`), func() *jsonschema.Schema { return &jsonschema.Schema{Ref: "#/$defs/agent"} })
}

func (r *reader) checkAgent(f field, label string, a Agent) {
	if f.value.Kind != yaml.MappingNode {
		return // told already
	}
	fields := r.fields(f.value)
	switch { // what is given and wrong is told already
	case a.Kind == "" && !has(fields, "kind"):
		r.wrong(f.key, "write one of claude, codex, gemini, opencode, copilot, aider, acp, piv, command", "%s has no kind", label)
	case a.Path == "" && a.Kind != Command && !has(fields, "path"):
		r.wrong(f.key, "write its directory", "%s has no path", label)
	case a.Expect.Beat > 0 && a.Expect.Stale > 0 && a.Expect.Stale <= a.Expect.Beat:
		r.wrong(f.key, "let stale be three times beat", "%s: every heartbeat would be late, since stale (%s) is not longer than beat (%s)",
			label, FormatDuration(a.Expect.Stale), FormatDuration(a.Expect.Beat))
	}
}

// checkTogether looks at what only the whole file shows.
func (r *reader) checkTogether() {
	known := []string{}
	for _, c := range r.roster.Channels {
		known = append(known, c.Name)
	}
	for _, m := range r.mentions {
		if !slices.Contains(known, m.Value) {
			hint := problem.DidYouMean(m.Value, known, nil)
			if len(known) == 0 {
				hint = "declare it below channels:"
			}
			r.wrong(m.Node, hint, "%s: there is no channel %q", m.label, problem.Shortened(m.Value))
		}
	}
	names, owners := map[string]string{}, map[owner]string{}
	for _, a := range r.roster.Agents {
		if other, taken := names[strings.ToLower(a.Name)]; taken {
			r.problems = append(r.problems, problem.Problem{Pos: a.Pos, Message: "agent " + a.Name + " is called like " + other, Hint: "a name is a file's, and some systems take big and small letters for the same"})
		}
		names[strings.ToLower(a.Name)] = a.Name
		r.warnOfTwins(a, owners)
	}
	if l := r.roster.Listen; l != "" && !isLoopback(l) {
		r.warnings = append(r.warnings, problem.Problem{Message: "listen: others on the network reach " + l, Hint: "whoever knows a ping URL can ping; listen on 127.0.0.1 unless that is meant"})
	}
}

// owner is what tells one agent's processes from another's.
type owner struct {
	path             string
	kind             Kind
	session, pidFile string
}

// warnOfTwins tells of two agents whose processes nobody could tell apart.
func (r *reader) warnOfTwins(a Agent, owners map[owner]string) {
	if a.Path == "" {
		return
	}
	key := owner{a.Path, a.Kind, a.Match.Session, a.Match.PIDFile}
	if other, taken := owners[key]; taken {
		r.warnings = append(r.warnings, problem.Problem{Pos: a.Pos, Message: "agents " + other + " and " + a.Name + " have the same path and kind", Hint: "give each a match.session or match.pidfile of its own"})
	}
	owners[key] = a.Name
}

// s4 reads S4's own registry. What is odd in it is S4's business: nothing is a mistake.
func (r *reader) s4(fields []field) {
	r.roster.Version = 1
	for _, f := range fields {
		switch {
		case f.name == "lastUpdated":
			r.roster.Updated, _ = time.Parse(time.RFC3339Nano, f.value.Value)
		case f.name != "projects" || isNull(f.value):
		case f.value.Kind != yaml.MappingNode:
			r.wrong(f.value, "", "projects is %s", is(f.value))
		default:
			for _, p := range r.fields(f.value) {
				r.s4Project(p)
			}
		}
	}
}

func (r *reader) s4Project(p field) {
	a := Agent{Name: p.name, Kind: PIV, Pos: r.at(p.key)}
	if p.value.Kind == yaml.MappingNode {
		for _, f := range r.fields(p.value) {
			if f.name == "path" && f.value.Kind == yaml.ScalarNode && !isNull(f.value) {
				a.Path = f.value.Value
			}
		}
	}
	if a.Path == "" {
		r.odd(p.key, "", "project %q has no path, and is left out", problem.Shortened(p.name))
		return
	}
	r.roster.Agents = append(r.roster.Agents, a)
}
