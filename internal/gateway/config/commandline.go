package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/schema"
	"github.com/outlive-mcp/outlive/internal/files/tree"
	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
)

// Given is the one server of a command line, for [OfCommandLine]: a command, or a URL. Empty members were not given.
type Given struct {
	Name    string
	Command []string // used as it is: the shell has already expanded variables

	URL          string
	Transport    string   // as the key of outlive.yaml
	Headers      []string // each "NAME: VALUE"
	ClientID     string
	ClientSecret string
	Issuer       string
	Resource     string
	Scopes       []string
	CallbackPort int
}

// OfCommandLine makes a configuration of one server, whose tools keep their names. The rules are those of
// outlive.yaml, except that ${NAME} means an environment variable, too, because nothing else can be meant.
func OfCommandLine(g Given, opts Options) (*File, error) {
	r := newReader("the command line", nil, opts)
	r.Manner, r.refs = schema.Strict, references{strict: true, bare: true}
	r.file.Format, r.file.Names = Outlive, catalog.Never
	root, command := g.tree()
	for _, n := range command {
		r.filled[n] = true
	}
	known := secretsOf(root)
	r.conceal(&known)
	form := serverShape(policyKeys(opts.Keys))
	r.Check(root, form, "")
	root.Key = g.Name
	r.readServer(root, form, nil)
	r.checkServers()
	return r.result()
}

// tree returns the server as a file would describe it. The nodes in command are those in which no references are
// replaced.
func (g Given) tree() (server *tree.Node, command []*tree.Node) {
	if len(g.Command) > 0 {
		args, program := texts(g.Command[1:]), text("command", g.Command[0])
		return object("", program, list("args", args)), append(slices.Clone(args), program)
	}
	var headers []*tree.Node
	for _, h := range g.Headers {
		name, value, _ := strings.Cut(h, ":")
		headers = append(headers, text(strings.TrimSpace(name), strings.TrimSpace(value)))
	}
	given := func(key, value string) *tree.Node {
		if value == "" {
			return nil
		}
		return text(key, value)
	}
	var port *tree.Node
	if g.CallbackPort != 0 {
		port = text("callback_port", strconv.Itoa(g.CallbackPort))
		port.Kind = tree.Number
	}
	oauth := object("oauth", given("client_id", g.ClientID), given("client_secret", g.ClientSecret), given("issuer", g.Issuer),
		given("resource", g.Resource), list("scopes", texts(g.Scopes)), port)
	return object("", text("url", g.URL), given("transport", g.Transport), object("headers", headers...), object("auth", oauth)), nil
}

// object is one of the members that are not nil; nil: all are.
func object(key string, members ...*tree.Node) *tree.Node {
	if members = slices.DeleteFunc(members, func(n *tree.Node) bool { return n == nil }); len(members) == 0 {
		return nil
	}
	return &tree.Node{Kind: tree.Object, Key: key, Kids: members}
}

// list is one of the entries; nil: there are none.
func list(key string, entries []*tree.Node) *tree.Node {
	if len(entries) == 0 {
		return nil
	}
	return &tree.Node{Kind: tree.List, Key: key, Kids: entries}
}

func text(key, s string) *tree.Node { return &tree.Node{Kind: tree.Text, Key: key, Raw: s, Value: s} }

func texts(all []string) (nodes []*tree.Node) {
	for _, s := range all {
		nodes = append(nodes, text("", s))
	}
	return nodes
}
