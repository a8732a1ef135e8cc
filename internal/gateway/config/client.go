package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
	"github.com/outlive-mcp/outlive/internal/files/schema"
	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// readClient reads the configuration file of an AI client. Keys that outlive has no use for are ignored. What it does
// not understand is a warning, not an error, where the client itself would accept it.
func (r *reader) readClient(format Format, where, root *tree.Node) {
	if filepath.Base(r.dir) == "User" { // the folder of VS Code's user profile, which is no project folder
		r.workspace = ""
	} else {
		r.dir = r.workspace
	}
	r.refs = references{none: format == Zed || format == Codex}
	if format == MCPServers {
		r.refs.bare = true
		r.refs.dollar = r.isGemini(where)
	}
	inputs := cmp.Or(root.Get("inputs"), root.Get("mcp").Get("inputs"))
	if inputs != nil && inputs.Kind == tree.List {
		for _, in := range inputs.Items() {
			pickValues(in)
		}
		r.readInputs(inputs, &schema.Shape{Kind: schema.List, Of: vscodeInput()})
	}
	if where.Kind != tree.Object {
		if !where.Bad {
			r.Problem(where.Pos, where.Key+" is "+where.Is(), "want names with a command or a url each")
		}
		return
	}
	if len(where.Members()) == 0 {
		r.Problem(where.Pos, "the file names no servers", "add one to "+where.Key)
	}
	for _, f := range where.Members() {
		r.readClientServer(format, f, root)
	}
	r.checkServers()
}

// isGemini reports whether the file is Gemini CLI's, by its folder or by keys that only Gemini CLI has. Gemini CLI
// replaces $NAME by the variable's value; other clients leave it as it is.
func (r *reader) isGemini(servers *tree.Node) bool {
	if slices.Contains(strings.Split(filepath.ToSlash(r.source.Name), "/"), ".gemini") {
		return true
	}
	return slices.ContainsFunc(servers.Members(), func(f *tree.Node) bool {
		return f.Given("httpUrl", "includeTools", "excludeTools", "trust", "authProviderType")
	})
}

// pickValues replaces VS Code's options of the form {label, value} by the value alone.
func pickValues(n *tree.Node) {
	options := n.Get("options")
	if options == nil {
		return
	}
	for i, o := range options.Items() {
		if v := o.Get("value"); v != nil {
			options.Kids[i] = v
		}
	}
}

func (r *reader) readClientServer(format Format, n, root *tree.Node) {
	if format == Zed {
		n = lifted(n)
	}
	off, on := n.Get("disabled"), n.Get("enabled")
	disabled := off != nil && off.Value == "true" || on != nil && on.Value == "false" ||
		format == MCPServers && switchedOff(root.Get("mcp"), n.Key)
	r.quiet, r.Off = disabled, disabled
	defer func() { r.quiet, r.Off = false, false }()
	before := len(r.Problems)
	form := clientShape(format)
	r.Check(n, form, fileerror.Shortened(n.Key))
	if n.Kind == tree.Null && !n.Bad || n.Kind != tree.Object {
		if n.Kind == tree.Null {
			r.Problem(n.KeyPos, fileerror.Shortened(n.Key)+" is empty", "add a command or a url")
		}
		return
	}
	if format == Zed && n.TextOf("source") == "extension" || format == Zed && !n.Given("command", "url") && n.Has("settings") {
		r.Warn(n.KeyPos, fmt.Sprintf("%s comes from an extension of Zed", fileerror.Shortened(n.Key)), "only Zed can start it; it is left out")
		return
	}
	s := Server{Name: r.freeName(n.Key), Pos: n.KeyPos, Disabled: disabled, Instances: 1}
	s.Prefix = r.free(prefixOf(s.Name), func(s Server, candidate string) bool { return s.Prefix == candidate })
	r.clientTarget(&s, n, form, len(r.Problems) > before)
	r.clientEnv(&s, n, format)
	r.clientHeaders(&s, n)
	s.Allow, s.Deny = toolFilter(n)
	own := map[string]Setting{}
	r.clientPolicy(own, n)
	s.Policy = r.policy(nil, own)
	if n.IsTrue("sandboxEnabled") {
		r.Warn(n.Get("sandboxEnabled").KeyPos, fmt.Sprintf("%s runs in a sandbox in VS Code", s.Name), "here it runs without one")
	}
	if v := n.Good("headersHelper"); v != nil {
		r.Warn(v.Pos, "headersHelper is not run here", "use headers, or auth in outlive.yaml")
	}
	r.file.Servers = append(r.file.Servers, s)
}

// lifted converts Zed's older form, "command": {"path", "args", "env"}, to the newer one.
func lifted(n *tree.Node) *tree.Node {
	command := n.Get("command")
	if command == nil || command.Kind != tree.Object {
		return n
	}
	flat := *n
	flat.Kids = nil
	for _, f := range n.Members() {
		if f.Key != "command" {
			flat.Kids = append(flat.Kids, f)
			continue
		}
		for _, inner := range command.Members() {
			one := *inner
			if one.Key == "path" {
				one.Key = "command"
			}
			if flat.Get(one.Key) == nil && (n.Get(one.Key) == nil || one.Key == "command") {
				flat.Kids = append(flat.Kids, &one)
			}
		}
	}
	return &flat
}

// switchedOff reports whether Gemini CLI's allowed and excluded lists, in "mcp", disable the server.
func switchedOff(mcp *tree.Node, name string) bool {
	if excluded := mcp.Good("excluded"); excluded != nil && slices.Contains(excluded.Texts(), name) {
		return true
	}
	allowed := mcp.Good("allowed")
	return allowed != nil && allowed.Kind == tree.List && len(allowed.Items()) > 0 && !slices.Contains(allowed.Texts(), name)
}

// notInNames is what the name of a server has not, see serverName.
var notInNames = lazyregexp.New(`[^A-Za-z0-9._-]`)

// freeName converts a server's name in a client's file, where any text is allowed, to a valid name that is not taken.
func (r *reader) freeName(name string) string {
	clean := strings.TrimLeft(notInNames.ReplaceAllString(name, "-"), "-_.")
	return r.free(cmp.Or(clean, "server"), func(s Server, candidate string) bool { return strings.EqualFold(s.Name, candidate) })
}

// free adds a number to a name that is taken.
func (r *reader) free(name string, taken func(Server, string) bool) string {
	name = name[:min(len(name), 60)]
	for candidate, i := name, 2; ; i++ {
		if !slices.ContainsFunc(r.file.Servers, func(s Server) bool { return taken(s, candidate) }) {
			return candidate
		}
		candidate = fmt.Sprintf("%s-%d", name, i)
	}
}

// firstOf is the value of the first key that has one, valid or not; nil: none has.
func firstOf(n *tree.Node, keys ...string) *tree.Node {
	if i := slices.IndexFunc(keys, n.Has); i >= 0 {
		return n.Get(keys[i])
	}
	return nil
}

// clientTarget reads how a server is reached: its command or its URL.
func (r *reader) clientTarget(s *Server, n *tree.Node, form *schema.Shape, told bool) {
	command, url := n.Get("command"), firstOf(n, "httpUrl", "url", "serverUrl")
	wrong := misspeltTarget(n, form)
	switch {
	case n.Has("command") && url != nil:
		r.Problem(n.KeyPos, fmt.Sprintf("%s has a command and a url", s.Name), "one server is either started or reached: remove one")
	case n.Has("command"):
		s.Transport, s.TargetPos = Stdio, command.Pos
		if !command.Bad {
			s.Command = append([]string{command.Value}, n.Get("args").Texts()...)
		}
		if strings.ContainsAny(command.Value, " \t") && !strings.ContainsAny(command.Value, `/\`) && !n.Has("args") {
			r.Warn(command.Pos, fmt.Sprintf("the whole of %s is taken for the program's name", schema.Quoted(command)), "put its arguments into args")
		}
		r.misplaced(n, []string{"headers", "http_headers", "env_http_headers", "bearer_token_env_var"}, "with a url")
	case url != nil:
		s.Transport, s.TargetPos = HTTP, url.Pos
		if !url.Bad {
			s.URL = url.Value
		}
		r.misplaced(n, []string{"args", "cwd", "envFile"}, "with a command")
	case wrong != nil:
		r.Problem(wrong.KeyPos, fmt.Sprintf("unknown key %q, and neither a command nor a url", fileerror.Shortened(wrong.Key)),
			fileerror.DidYouMean(wrong.Key, form.KeyNames(), habits))
	case !told:
		r.Problem(n.KeyPos, fmt.Sprintf("%s has neither a command nor a url", s.Name), "add one")
	}
	r.clientTransport(s, n)
}

// clientTransport reads the transport, which clients give under one of three keys.
func (r *reader) clientTransport(s *Server, n *tree.Node) {
	for _, k := range []string{"type", "transport", "transportType"} {
		v := n.Good(k)
		if v == nil {
			continue
		}
		switch fileerror.Folded(v.Value) {
		case "stdio", "local":
			if s.Transport == HTTP {
				r.Problem(v.Pos, fmt.Sprintf("%s is %s and has a url", s.Name, schema.Quoted(v)), `use "http", or a command`)
			}
		case "http", "streamablehttp", "remote":
			if s.Transport == Stdio {
				r.Problem(v.Pos, fmt.Sprintf("%s is %s and has a command", s.Name, schema.Quoted(v)), `use "stdio", or a url`)
			}
		case "sse":
			if s.OldSSE = s.Transport == HTTP; !s.OldSSE {
				r.Warn(v.Pos, fmt.Sprintf("%s is %s and has a command", s.Name, schema.Quoted(v)), "the command is started, and speaks stdio")
			}
		default:
			r.Problem(v.Pos, fmt.Sprintf("the transport %s is not spoken here", schema.Quoted(v)), "want stdio or http")
		}
	}
}
