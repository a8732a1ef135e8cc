package registry

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // Windows and small containers have no zones of their own

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
	"github.com/outlive-mcp/outlive/internal/files/peer"
	"github.com/outlive-mcp/outlive/internal/files/schema"
	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// reader reads a document into a Registry.
type reader struct {
	schema.Walk
	home     string
	mentions []mention
	result   *Registry
}

// mention is a place that refers to a channel by its name.
type mention struct {
	*tree.Node
	label string
}

// registry reads the whole document.
func (r *reader) registry(root *tree.Node) {
	version := root.TextOf("version")
	agents, projects := root.Get("agents") != nil, root.Get("projects") != nil
	if version == "1" || version == "" && !agents && projects {
		r.version1(root)
		return
	}
	if agents && projects {
		r.Problem(root.Pos, "both agents and projects are given, and they are the same", "keep agents:")
	}
	r.result.Version, r.result.Listed = 2, agents || projects
	if version == "" {
		r.Warn(root.Pos, "the registry has no version", "write version: 2 at the top")
	}
	top := object(r.rootKeys()...)
	top.Ordered = true
	r.Check(root, top, "")
	r.checkTogether()
}

// rootKeys are the top-level keys. The defaults come before the agents, and the channels before the keys that refer
// to them.
func (r *reader) rootKeys() []schema.Key {
	var defaults Agent
	to := r.result
	agents := r.agents(&defaults)
	return []schema.Key{
		{Name: "version", Shape: version(), Doc: "2"},
		{Name: "updated", Shape: r.when(&to.Updated), Doc: "when a program has last written the file"},
		{Name: "last_updated", Shape: r.when(&to.Updated), Doc: "its name in a PIV registry; the same as updated"},
		{Name: "zone", Shape: zone(&to.Zone), Doc: "time zone of quiet hours and digest, such as Europe/Berlin; the machine's when left out"},
		{Name: "channels", Shape: r.channels(&to.Channels), Doc: "ways to send messages: a name, and telegram, exec:COMMAND or a service's URL, or address and topic; ${NAME} is taken from the environment"},
		{Name: "digest", Shape: r.digest(&to.Digest), Doc: "a summary once a day: an hour such as \"08:00\", or at and to"},
		{Name: "deadman", Shape: deadman(&to.Deadman), Doc: "URL pinged regularly, so that its service reports when the monitor itself is gone"},
		{Name: "listen", Shape: text(&to.Listen, listenForm), Doc: "host:port where pings are taken, such as 127.0.0.1:8377"},
		{Name: "defaults", Shape: object(r.agentKeys(&defaults)...), Doc: "what every agent has that does not say otherwise"},
		{Name: "agents", Shape: agents, Doc: "the agents by name"},
		{Name: "projects", Shape: agents, Doc: "its name in a PIV registry; the same as agents"},
	}
}

func version() *schema.Shape {
	two := &schema.Form{Judge: func(s string) (message, hint string) {
		switch n, err := strconv.Atoi(s); {
		case err != nil || n < 2:
			return "is not known", "write version: 2"
		case n > 2:
			return "is of a newer outlive; this one reads up to 2", "install that outlive, or a later one"
		}
		return "", ""
	}}
	return &schema.Shape{Kind: schema.Text, Form: two, Amend: func(s *jsonschema.Schema) { *s = jsonschema.Schema{Enum: []any{2}} }}
}

// when is a time; an invalid one is ignored.
func (r *reader) when(to *time.Time) *schema.Shape {
	return &schema.Shape{Kind: schema.Anything, Take: func(n *tree.Node, label string) {
		t, err := time.Parse(time.RFC3339Nano, n.Raw)
		if err == nil {
			*to = t
		} else if n.Kind != tree.Null {
			r.Warn(n.Pos, label+" is not a time", "write it like 2026-11-21T02:00:00Z")
		}
	}}
}

func zone(to **time.Location) *schema.Shape {
	form := &schema.Form{Judge: func(s string) (message, hint string) {
		if message, hint := notEmpty(s); message != "" {
			return message, hint
		}
		if _, err := time.LoadLocation(s); err != nil {
			return "is not a time zone of this machine", "write it like Europe/Berlin"
		}
		return "", ""
	}}
	return &schema.Shape{Kind: schema.Text, Form: form, Take: func(n *tree.Node, _ string) { *to, _ = time.LoadLocation(n.Raw) }}
}

// channels reads the channels. Their addresses are not shown in messages, because they may contain a token.
func (r *reader) channels(to *[]Channel) *schema.Shape {
	address := &schema.Shape{Kind: schema.Text, Form: addressForm, Secret: true}
	channel := object(
		schema.Key{Name: "address", Shape: address, Doc: "telegram, exec:COMMAND or a service's URL", Required: true},
		schema.Key{Name: "topic", Shape: &schema.Shape{Kind: schema.Count, Least: 1}, Doc: "of a Telegram group with topics: the number of that in which messages are shown"},
	)
	channel.Alone, channel.Null = address, true
	return dict(channelForm, channel, func(f *tree.Node, label string) {
		c := Channel{Name: f.Key, Address: f.Raw, Pos: f.KeyPos}
		switch address, topic := f.Get("address"), f.Get("topic"); {
		case f.Kind == tree.Null:
			r.Problem(f.Pos, label+" has no value", "write one, or remove the key")
			return
		case address != nil:
			if c.Address = address.Raw; topic != nil {
				c.Topic, _ = strconv.Atoi(topic.Raw)
			}
			if c.Topic != 0 && !strings.HasPrefix(c.Address, "telegram") && !strings.HasPrefix(c.Address, "${") {
				r.Problem(topic.Pos, label+".topic: only Telegram has topics", "remove it")
			}
		}
		*to = append(*to, c)
	})
}

func (r *reader) digest(to *Digest) *schema.Shape {
	at := text(&to.At, hourForm)
	return shorthand(at, object(
		schema.Key{Name: "at", Shape: at, Doc: `time of day, such as "08:00"`, Required: true},
		schema.Key{Name: "to", Shape: r.channelNames(&to.To), Doc: "names of channels; wherever escalations go when left out"},
	))
}

func deadman(to *Deadman) *schema.Shape {
	address := text(&to.URL, urlForm)
	address.Secret = true
	return shorthand(address, object(
		schema.Key{Name: "url", Shape: address, Doc: "a healthchecks ping URL, or anything that wants a GET; ${NAME} is filled in", Required: true},
		schema.Key{Name: "every", Shape: duration(&to.Every), Doc: "how often"},
	))
}

// agentName is the form of agents' names, which are also file names.
var agentName = &schema.Form{Pattern: lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`), Judge: func(name string) (message, hint string) {
	if err := heartbeat.ValidName(name); err != nil {
		return strings.TrimPrefix(err.Error(), fmt.Sprintf("%.70q ", name)), ""
	}
	return "", ""
}}

// agents reads the agents, each of which starts from the defaults.
func (r *reader) agents(defaults *Agent) *schema.Shape {
	anything := &schema.Shape{Kind: schema.Anything, Amend: func(s *jsonschema.Schema) { s.Ref = "#/$defs/agent" }}
	return dict(agentName, anything, func(f *tree.Node, label string) {
		if f.Kind == tree.Null {
			r.Problem(f.Pos, label+" is empty", "write its keys below it")
			return
		}
		a := defaults.clone()
		a.Name, a.Pos = f.Key, f.KeyPos
		if r.Check(f, object(r.keysOfAgent(&a)...), label); f.Bad {
			return
		}
		r.checkAgent(f, label, a)
		r.result.Agents = append(r.result.Agents, a)
	})
}

func (r *reader) checkAgent(f *tree.Node, label string, a Agent) {
	switch { // a given but invalid value is reported already
	case a.Kind == "" && f.Get("kind") == nil:
		r.Problem(f.KeyPos, label+" has no kind", "write one of "+KindNames(", "))
	case a.Path == "" && a.Kind != Command && f.Get("path") == nil:
		r.Problem(f.KeyPos, label+" has no path", "write its directory")
	case a.Expect.Beat > 0 && a.Expect.Stale > 0 && a.Expect.Stale <= a.Expect.Beat:
		r.Problem(f.KeyPos, fmt.Sprintf("%s: every heartbeat would be late, since stale (%s) is not longer than beat (%s)",
			label, recovery.FormatDuration(a.Expect.Stale), recovery.FormatDuration(a.Expect.Beat)), "let stale be three times beat")
	}
	r.warnOfCommands(f, label, a)
}

// warnOfCommands warns of commands that the monitor would run in vain. Some can be run only once, the sessions of others
// are not seen.
func (r *reader) warnOfCommands(f *tree.Node, label string, a Agent) {
	for key, command := range map[string][]string{"cmd": a.Start.Cmd, "resume": a.Start.Resume} {
		pos, name := f.KeyPos, label+".start."+key
		if n := f.At("start", key); n != nil { // else it is of the defaults
			pos = n.Pos
		}
		if option := agentcli.Once(command); option != "" {
			r.Warn(pos, fmt.Sprintf("%s has %s, with which it can be started only once", name, option),
				"leave it out; {session} in start.resume is the session that was seen")
		}
		if agentcli.Unseen(command) {
			r.Warn(pos, name+" starts no session that is seen",
				"start the CLI with a prompt, or for a terminal: sessions of its daemon, and its other commands, are not watched")
		}
	}
}

// checkTogether checks what concerns the whole file.
func (r *reader) checkTogether() {
	known := []string{}
	for _, c := range r.result.Channels {
		known = append(known, c.Name)
	}
	for _, m := range r.mentions {
		if !slices.Contains(known, m.Raw) {
			hint := fileerror.DidYouMean(m.Raw, known, nil)
			if len(known) == 0 {
				hint = "declare it below channels:"
			}
			r.Problem(m.Pos, fmt.Sprintf("%s: there is no channel %q", m.label, fileerror.Shortened(m.Raw)), hint)
		}
	}
	names, owners := map[string]string{}, map[owner]string{}
	for _, a := range r.result.Agents {
		if other, taken := names[strings.ToLower(a.Name)]; taken {
			r.Problem(a.Pos, "agent "+a.Name+" is called like "+other, "names are file names, and some systems ignore upper and lower case")
		}
		names[strings.ToLower(a.Name)] = a.Name
		r.warnOfTwins(a, owners)
	}
	if host, _, _ := net.SplitHostPort(r.result.Listen); r.result.Listen != "" && !peer.IsLoopback(host) {
		r.Warn(fileerror.Pos{}, "listen: others on the network reach "+r.result.Listen, "anybody who knows a ping URL can ping; listen on 127.0.0.1 unless that is meant")
	}
}

// owner is what distinguishes one agent's processes from another's.
type owner struct {
	path             string
	kind             Kind
	session, pidFile string
}

// warnOfTwins warns of two agents whose processes cannot be distinguished.
func (r *reader) warnOfTwins(a Agent, owners map[owner]string) {
	if a.Path == "" {
		return
	}
	key := owner{a.Path, a.Kind, a.Match.Session, a.Match.PIDFile}
	if other, taken := owners[key]; taken {
		r.Warn(a.Pos, "agents "+other+" and "+a.Name+" have the same path and kind", "give each a match.session or match.pidfile of its own")
	}
	owners[key] = a.Name
}

// version1 reads a PIV registry. It reports no mistakes, because PIV is responsible for the file.
func (r *reader) version1(root *tree.Node) {
	r.result.Version = 1
	r.result.Updated, _ = time.Parse(time.RFC3339Nano, root.TextOf("lastUpdated"))
	projects := root.Good("projects")
	if projects != nil && projects.Kind != tree.Object {
		r.Problem(projects.Pos, "projects is "+projects.Is(), "")
		return
	}
	if projects == nil {
		return
	}
	for _, p := range projects.Members() {
		a := Agent{Name: p.Key, Kind: PIV, Path: p.TextOf("path"), Pos: p.KeyPos}
		if a.Path == "" {
			r.Warn(p.KeyPos, fmt.Sprintf("project %q has no path, and is left out", fileerror.Shortened(p.Key)), "")
			continue
		}
		r.result.Agents = append(r.result.Agents, a)
	}
}
