package clients

import (
	"cmp"
	"fmt"

	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// document is a parsed file with its servers.
type document struct {
	*tree.Doc
	entries []entry
	listed  bool // commands are lists, see [Client]
}

// entry is a server and its positions in the text.
type entry struct {
	Server
	node    *tree.Node // the whole entry
	holder  *tree.Node // the object that contains the command
	command *tree.Node // with its arguments, where it is a list
	args    *tree.Node // nil: there are none
}

// parse reads a file of the client.
func (c *Client) parse(text []byte) (*document, error) {
	d, err := tree.Open(c.format, "configuration", text)
	if err != nil {
		return nil, err
	}
	doc := &document{Doc: d, listed: c.listed}
	for _, path := range c.objects {
		doc.walk(d.Root, nil, path)
	}
	return doc, nil
}

// walk follows rest from n, which is at path done, and reads the servers there.
func (d *document) walk(n *tree.Node, done, rest []string) {
	if n == nil || n.Kind != tree.Object {
		return
	}
	for _, k := range n.Kids {
		switch last := n.Get(k.Key) == k; {
		case len(rest) == 0:
			e := entry{Server: Server{Scope: done, Name: k.Key}, node: k}
			if e.Odd = "the name stands there again further down"; last {
				e.Odd = d.read(&e)
			}
			d.entries = append(d.entries, e)
		case last && (rest[0] == "*" || rest[0] == k.Key):
			d.walk(k, append(done[:len(done):len(done)], k.Key), rest[1:])
		}
	}
}

// read fills in the entry's values, and says why it cannot be read as a server.
func (d *document) read(e *entry) (odd string) {
	n := e.node
	if n.Kind != tree.Object {
		return "must be an object"
	}
	is := func(key, value string) bool {
		v := n.Get(key)
		return v != nil && v.Kind == tree.Bool && v.Value == value
	}
	e.Env, e.Dir = environment(n), n.Text("cwd")
	e.URL = cmp.Or(n.Text("url"), n.Text("httpUrl"), n.Text("serverUrl"))
	e.Disabled = is("disabled", "true") || is("enabled", "false") || is("isActive", "false")
	for _, key := range []string{"envFile", "env_vars"} {
		if v := n.Get(key); v != nil && (v.Value != "" || len(v.Kids) > 0) {
			e.Needs = append(e.Needs, key)
		}
	}
	key := "command"
	e.holder, e.command = n, n.Get(key)
	if inner := e.command; inner != nil && inner.Kind == tree.Object { // Zed before 2026 wrote {"path": …, "args": …}
		if e.Env == nil {
			e.Env = environment(inner)
		}
		key = "path"
		e.holder, e.command = inner, inner.Get(key)
	}
	switch {
	case e.command == nil && e.URL != "":
		return ""
	case e.command == nil && (n.Text("source") == "extension" || n.Get("settings") != nil): // Zed's
		e.Extension = true
		return ""
	case e.command == nil:
		return "neither command nor url"
	case d.listed:
		return d.readList(e)
	case e.command.Kind != tree.Text || e.command.Value == "":
		return key + " must be a string"
	}
	e.Command, e.args = e.command.Value, e.holder.Get("args")
	if d.Editable(e.command) != nil || e.args != nil && d.Editable(e.args) != nil {
		return "it is written in a way that cannot be edited"
	}
	return e.readArgs()
}

// readList fills in a command that is a list, and says why it cannot be read.
func (d *document) readList(e *entry) (odd string) {
	if e.command.Kind != tree.List || len(e.command.Kids) == 0 || e.command.Kids[0].Value == "" {
		return "command must be a list: the program and its arguments"
	}
	if d.Editable(e.command) != nil {
		return "it is written in a way that cannot be edited"
	}
	for _, word := range e.command.Kids {
		if word.Kind != tree.Text {
			return "command must hold strings only"
		}
		e.Args = append(e.Args, word.Value)
	}
	e.Command, e.Args = e.Args[0], e.Args[1:]
	return ""
}

// readArgs fills in the arguments, and says why they cannot be read.
func (e *entry) readArgs() (odd string) {
	if e.args == nil {
		return ""
	}
	if e.args.Kind != tree.List {
		return "args must be an array"
	}
	for _, a := range e.args.Kids {
		if a.Kind != tree.Text {
			return "args must hold strings only"
		}
		e.Args = append(e.Args, a.Value)
	}
	return ""
}

func environment(n *tree.Node) map[string]string {
	v := cmp.Or(n.Get("env"), n.Get("environment"))
	if v == nil || v.Kind != tree.Object {
		return nil
	}
	env := map[string]string{}
	for _, m := range v.Kids {
		if m.Kind != tree.Null { // in VS Code, null removes a variable
			env[m.Key] = m.Value
		}
	}
	return env
}

// Servers returns the servers in a file of the client, in order. Entries that are not servers have Odd set.
func (c *Client) Servers(text []byte) ([]Server, error) {
	doc, err := c.parse(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", c.Title, err)
	}
	servers := make([]Server, len(doc.entries))
	for i, e := range doc.entries {
		servers[i] = e.Server
	}
	return servers, nil
}
