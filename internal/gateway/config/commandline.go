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
	server = &tree.Node{Kind: tree.Object}
	if len(g.Command) > 0 {
		args := textsNode(g.Command[1:])
		program := textNode(g.Command[0])
		add(server, "command", program)
		add(server, "args", args)
		return server, append(slices.Clone(args.Items()), program)
	}
	add(server, "url", textNode(g.URL))
	if g.Transport != "" {
		add(server, "transport", textNode(g.Transport))
	}
	if len(g.Headers) > 0 {
		headers := &tree.Node{Kind: tree.Object}
		for _, h := range g.Headers {
			name, value, _ := strings.Cut(h, ":")
			add(headers, strings.TrimSpace(name), textNode(strings.TrimSpace(value)))
		}
		add(server, "headers", headers)
	}
	oauth := &tree.Node{Kind: tree.Object}
	for _, one := range []struct{ key, value string }{
		{"client_id", g.ClientID}, {"client_secret", g.ClientSecret}, {"issuer", g.Issuer}, {"resource", g.Resource},
	} {
		if one.value != "" {
			add(oauth, one.key, textNode(one.value))
		}
	}
	if len(g.Scopes) > 0 {
		add(oauth, "scopes", textsNode(g.Scopes))
	}
	if g.CallbackPort != 0 {
		port := strconv.Itoa(g.CallbackPort)
		add(oauth, "callback_port", &tree.Node{Kind: tree.Number, Raw: port, Value: port})
	}
	if len(oauth.Members()) > 0 {
		auth := &tree.Node{Kind: tree.Object}
		add(auth, "oauth", oauth)
		add(server, "auth", auth)
	}
	return server, nil
}

func add(to *tree.Node, key string, value *tree.Node) {
	value.Key = key
	to.Kids = append(to.Kids, value)
}

func textNode(s string) *tree.Node { return &tree.Node{Kind: tree.Text, Raw: s, Value: s} }

func textsNode(texts []string) *tree.Node {
	n := &tree.Node{Kind: tree.List}
	for _, s := range texts {
		n.Kids = append(n.Kids, textNode(s))
	}
	return n
}
