package clients

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// GatewayName is the gateway's name in a client's file.
const GatewayName = "outlive"

// RecordVersion is the version of [Record]. It must change whenever an older outlive could not undo what is described.
const RecordVersion = 1

// Record describes what [Client.Gather] did to a file, so that [Client.Scatter] can undo it.
type Record struct {
	// Version is [RecordVersion]. A record without a version is of version 1.
	Version int `json:"version"`

	Client string        `json:"client"`
	Path   string        `json:"path"`  // the client's file
	After  string        `json:"after"` // SHA-256 of the file after the edit
	Undo   []tree.Splice `json:"undo"`  // turns that file into the one before
	Groups []Group       `json:"groups"`
}

// Group is one object of servers that was moved behind one gateway.
type Group struct {
	Scope  []string `json:"scope"`
	Config string   `json:"config"`  // the outlive.yaml made for it
	Digest string   `json:"digest"`  // SHA-256 of its original content
	Moved  []Moving `json:"entries"` // in order
}

// Moving is one moved entry, as it was in the client's file.
type Moving struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Gathered is the result of [Client.Gather].
type Gathered struct {
	Text     []byte            // the client's file; unchanged when nothing was moved
	Configs  map[string][]byte // the files outlive.yaml by path
	Record   *Record           // nil when nothing was moved
	Outcomes []Outcome
}

// Gather moves the stdio servers in a file of the client, whose path is path, behind one gateway for each object that
// holds servers. A server that only the client can start is not moved: one reached over the network (the client has
// the login), disabled, dependent on something that only the client knows, or with a relative command or directory,
// because the outlive.yaml is in another directory. A wrapped server is moved without outlive run: the gateway has
// the same function.
func (c *Client) Gather(text []byte, path string, o Options) (*Gathered, error) {
	doc, err := c.parse(text)
	if err != nil {
		return nil, fmt.Errorf("gather servers of %s: %w", c.Title, err)
	}
	g := &Gathered{Text: text, Configs: map[string][]byte{}}
	record := &Record{Version: RecordVersion, Client: c.Name, Path: path}
	for _, group := range byObject(doc.entries) {
		moving, outcomes := c.movable(doc, group, o.Only)
		g.Outcomes = append(g.Outcomes, outcomes...)
		if len(moving) > 0 {
			splices, err := c.gather(doc, group, moving, o, g, record)
			if err != nil {
				return nil, fmt.Errorf("gather servers of %s: %w", c.Title, err)
			}
			record.Undo = append(record.Undo, splices...)
		}
	}
	if len(record.Groups) == 0 {
		return g, nil
	}
	edited, err := tree.Apply(text, record.Undo)
	if err != nil {
		return nil, fmt.Errorf("gather servers of %s: %w", c.Title, err)
	}
	if _, err := c.parse(edited); err != nil {
		return nil, fmt.Errorf("gather servers of %s: %w: %w", c.Title, ErrUnsafe, err)
	}
	record.After, record.Undo = digest(edited), tree.Reversed(record.Undo)
	if undone, err := tree.Apply(edited, record.Undo); err != nil || !bytes.Equal(undone, text) {
		return nil, fmt.Errorf("gather servers of %s: %w", c.Title, ErrUnsafe)
	}
	g.Text, g.Record = edited, record
	return g, nil
}

// movable returns which entries of an object are moved behind its gateway, and the outcome of each that only selects.
func (c *Client) movable(doc *document, group []entry, only func(Server) bool) (moving []int, outcomes []Outcome) {
	taken := slices.ContainsFunc(group, func(e entry) bool { return e.Name == GatewayName })
	for i, e := range group {
		if only != nil && !only(e.Server) {
			continue
		}
		out := Outcome{Server: e.Server}
		switch out.Why = c.immovable(e); {
		case e.Gateway():
			out.Action, out.Why = Already, ""
		case out.Why != "":
		case taken:
			out.Why = "there is an entry " + GatewayName + " already: outlive unwrap first"
		case len(moving) > 0 && doc.isTable(group[moving[0]]) != doc.isTable(e):
			out.Why = "it is written in another way than " + group[moving[0]].Name
		default:
			out.Action = Moved
			moving = append(moving, i)
		}
		outcomes = append(outcomes, out)
	}
	return moving, outcomes
}

// byObject returns the entries of each object that holds servers.
func byObject(entries []entry) [][]entry {
	var groups [][]entry
	for _, e := range entries {
		last := len(groups) - 1
		if last < 0 || groups[last][0].node.Up() != e.node.Up() {
			groups = append(groups, nil)
			last++
		}
		groups[last] = append(groups[last], e)
	}
	return groups
}

// immovable says why only the client can start a server; "" if the gateway can.
func (c *Client) immovable(e entry) string {
	if why := e.obstacle(); why != "" {
		return why
	}
	argv, ok := e.Inner()
	switch {
	case !e.node.Whole():
		return "it is written with dotted keys"
	case e.Disabled:
		return "disabled"
	case len(e.Needs) > 0:
		return "only " + c.Title + " follows its " + strings.Join(e.Needs, " and ")
	case !ok:
		return `there is no "--" before the server's command`
	case relative(argv[0]):
		return "its command is a relative path: " + argv[0]
	case e.Dir != "" && relativeDir(e.Dir):
		return "its working directory is a relative path: " + e.Dir
	}
	values := slices.Concat(argv, []string{e.Dir}, slices.Collect(maps.Values(e.Env)))
	slices.Sort(values)
	for _, value := range values {
		if _, ok := c.syntax.portable(value); !ok {
			return "only " + c.Title + " knows what is meant by " + braced.FindString(value)
		}
	}
	return ""
}

// isTable reports whether a TOML entry is a table of its own and not a line of a larger one.
func (d *document) isTable(e entry) bool {
	return !e.node.Listed() && strings.HasPrefix(strings.TrimLeft(d.Part(d.Parts(e.node)[0]), " \t"), "[")
}

// relative reports whether a command is a path that depends on the working directory.
func relative(command string) bool {
	return strings.ContainsAny(command, `/\`) && relativeDir(command)
}

// relativeDir accepts paths of any system; those that begin with a variable count as absolute.
func relativeDir(dir string) bool {
	drive := len(dir) > 2 && dir[1] == ':' && (dir[2] == '\\' || dir[2] == '/')
	return !strings.HasPrefix(dir, "/") && !strings.HasPrefix(dir, `\\`) && !strings.HasPrefix(dir, "$") && !drive
}

// gather makes the edits and the outlive.yaml for one object.
func (c *Client) gather(doc *document, group []entry, moving []int, o Options, g *Gathered, record *Record) ([]tree.Splice, error) {
	config := o.Config(group[0].Scope)
	made := Group{Scope: group[0].Scope, Config: config}
	var splices []tree.Splice
	var gone []*tree.Node
	for n, i := range moving {
		e := group[i]
		var text strings.Builder
		for p, at := range doc.Parts(e.node) {
			was := doc.Part(at)
			text.WriteString(was)
			switch {
			case n == 0 && p == 0:
				splices = append(splices, tree.Splice{At: at.Start, Was: was, Now: doc.gateway(e, cmp.Or(o.Outlive, "outlive"), config)})
			case e.node.Listed():
				gone = append(gone, e.node)
			default:
				splices = append(splices, tree.Splice{At: at.Start, Was: was})
			}
		}
		made.Moved = append(made.Moved, Moving{Name: e.Name, Text: text.String()})
	}
	yaml := c.yaml(group, moving, record.Path, o.Label)
	made.Digest = digest(yaml)
	g.Configs[config] = yaml
	record.Groups = append(record.Groups, made)
	before := len(doc.Splices())
	err := doc.Remove(group[0].node.Up(), func(k *tree.Node) bool { return slices.Contains(gone, k) })
	return append(splices, doc.Splices()[before:]...), err
}

// gateway formats the gateway's entry in the style of the entry that it replaces.
func (d *document) gateway(like entry, outlive, config string) string {
	args := []string{"gateway", "-c", config}
	if d.listed {
		return d.Like(like.node, GatewayName, tree.Map{{Key: "type", Value: "local"}, {Key: "command", Value: append([]string{outlive}, args...)}})
	}
	if !d.isTable(like) {
		return d.Like(like.node, GatewayName, tree.Map{{Key: "command", Value: outlive}, {Key: "args", Value: args}})
	}
	header := "[" + strings.Join(append(slices.Clone(like.Scope), GatewayName), ".") + "]"
	lines := header + "\ncommand = " + tree.Quote(outlive) + "\nargs = [" + tree.Quote(args[0]) + ", " + tree.Quote(args[1]) + ", " + tree.Quote(args[2]) + "]\n"
	return strings.ReplaceAll(lines, "\n", d.Newline())
}

// yaml formats the outlive.yaml for the moved servers.
func (c *Client) yaml(group []entry, moving []int, path string, label func(string) string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# Made by outlive wrap --gateway from %s (%s).\n", filepath.Base(path), c.Title)
	b.WriteString("# outlive unwrap puts these servers back to where they were.\nservers:\n")
	portable := func(text string) string {
		text, _ = c.syntax.portable(text)
		return tree.Quote(text) // is also valid in YAML
	}
	taken := map[string]bool{}
	for _, i := range moving {
		e := group[i]
		name := e.Name
		if label != nil {
			name = distinct(label(name), taken)
		}
		argv, _ := e.Inner()
		fmt.Fprintf(&b, "  %s:\n    command: %s\n", tree.Quote(name), portable(argv[0]))
		if len(argv) > 1 {
			var args []string
			for _, arg := range argv[1:] {
				args = append(args, portable(arg))
			}
			fmt.Fprintf(&b, "    args: [%s]\n", strings.Join(args, ", "))
		}
		if e.Dir != "" {
			fmt.Fprintf(&b, "    cwd: %s\n", portable(e.Dir))
		}
		if len(e.Env) > 0 {
			b.WriteString("    env:\n")
			for _, key := range slices.Sorted(maps.Keys(e.Env)) {
				fmt.Fprintf(&b, "      %s: %s\n", tree.Quote(key), portable(e.Env[key]))
			}
		}
	}
	return []byte(b.String())
}

// distinct adds a number to a label that is taken. In outlive.yaml names differ in more than case, and so do the prefixes of tools made
// of them, which have "_" for a dot.
func distinct(label string, taken map[string]bool) string {
	form := func(name string) string { return strings.ReplaceAll(strings.ToLower(name), ".", "_") }
	free := label
	for n := 2; taken[form(free)]; n++ {
		free = fmt.Sprintf("%s-%d", label, n)
	}
	taken[form(free)] = true
	return free
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Made reports whether a group's outlive.yaml is unchanged.
func (g Group) Made(config []byte) bool { return digest(config) == g.Digest }
