package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/problem"
)

// readClient takes the file of a client apart. It was written for somebody else: what means nothing here is passed over,
// and what cannot be understood is told as a warning where the client itself would go on.
func (r *reader) readClient(format Format, where *field, root *node) {
	if filepath.Base(r.dir) == "User" { // VS Code's profile: no folder belongs to it
		r.workspace = ""
	} else {
		r.dir = r.workspace
	}
	r.refs = references{none: format == Zed || format == Codex}
	if format == MCPServers {
		r.refs.bare = true
		r.refs.dollar = r.isGemini(where.value)
	}
	inputs := root.get("inputs")
	if root.field("inputs") == nil {
		inputs = root.get("mcp").get("inputs")
	}
	if inputs != nil && inputs.kind == list {
		for _, in := range inputs.items {
			in.pickValues()
		}
		r.readInputs(inputs, &shape{kind: aList, of: vscodeInput()})
	}
	n := where.value
	if n.kind != object {
		if !n.bad {
			r.problem(n.pos, where.key+" is "+n.is(), "want names with a command or a url each")
		}
		return
	}
	if len(n.fields) == 0 {
		r.problem(n.pos, "the file names no servers", "add one to "+where.key)
	}
	for _, f := range n.fields {
		r.readClientServer(format, f, root)
	}
	r.checkServers()
}

// isGemini finds the keys that only Gemini CLI has. It fills in $NAME, which others pass on.
func (r *reader) isGemini(servers *node) bool {
	if slices.Contains(strings.Split(filepath.ToSlash(r.source.Name), "/"), ".gemini") {
		return true
	}
	return slices.ContainsFunc(servers.fields, func(f field) bool {
		return f.value.given("httpUrl", "includeTools", "excludeTools", "trust", "authProviderType")
	})
}

// pickValues makes VS Code's options, which may be pairs of label and value, plain values.
func (n *node) pickValues() {
	options := n.get("options")
	if options == nil {
		return
	}
	for i, o := range options.items {
		if v := o.get("value"); v != nil {
			options.items[i] = v
		}
	}
}

// clientShape is the table of one server's entry in a client's file.
func clientShape(format Format) *shape {
	switch format {
	case VSCode:
		return vscodeShape()
	case Zed:
		return zedShape()
	case Codex:
		return codexShape()
	}
	return mcpServersShape()
}

func (r *reader) readClientServer(format Format, f field, root *node) {
	n := f.value
	if format == Zed {
		n = n.lifted()
	}
	disabled := isOff(n) || format == MCPServers && switchedOff(root.get("mcp"), f.key)
	r.quiet, r.off = disabled, disabled
	defer func() { r.quiet, r.off = false, false }()
	before := len(r.problems)
	form := clientShape(format)
	r.check(n, form, problem.Shortened(f.key))
	if n.kind == null && !n.bad || n.kind != object {
		if n.kind == null {
			r.problem(f.pos, problem.Shortened(f.key)+" is empty", "add a command or a url")
		}
		return
	}
	if format == Zed && n.textOf("source") == "extension" || format == Zed && !n.given("command", "url") && n.has("settings") {
		r.warn(f.pos, fmt.Sprintf("%s comes from an extension of Zed", problem.Shortened(f.key)), "only Zed can start it; it is left out")
		return
	}
	s := Server{Name: r.freeName(f.key), Pos: f.pos, Disabled: disabled, Instances: 1}
	s.Prefix = r.freePrefix(prefixOf(s.Name))
	r.clientTarget(&s, f, n, form, len(r.problems) > before)
	r.clientEnv(&s, n, format)
	r.clientHeaders(&s, n)
	s.Allow, s.Deny = toolFilter(n)
	own := map[string]Setting{}
	r.clientPolicy(own, n)
	s.Policy = r.policy(nil, own)
	if n.isTrue("sandboxEnabled") {
		r.warn(n.field("sandboxEnabled").pos, fmt.Sprintf("%s runs in a sandbox in VS Code", s.Name), "here it runs without one")
	}
	if v := n.good("headersHelper"); v != nil {
		r.warn(v.pos, "headersHelper is not run here", "use headers, or auth in outlive.yaml")
	}
	r.file.Servers = append(r.file.Servers, s)
}

// lifted takes Zed's older form, "command": {"path", "args", "env"}, for the newer one.
func (n *node) lifted() *node {
	command := n.get("command")
	if command == nil || command.kind != object {
		return n
	}
	flat := node{kind: n.kind, pos: n.pos, bad: n.bad}
	for _, f := range n.fields {
		if f.key != "command" {
			flat.fields = append(flat.fields, f)
			continue
		}
		for _, inner := range command.fields {
			if inner.key == "path" {
				inner.key = "command"
			}
			if flat.field(inner.key) == nil && n.field(inner.key) == nil || inner.key == "command" {
				flat.fields = append(flat.fields, inner)
			}
		}
	}
	return &flat
}

func isOff(n *node) bool {
	disabled, enabled := n.get("disabled"), n.get("enabled")
	return disabled != nil && disabled.value == "true" || enabled != nil && enabled.value == "false"
}

// switchedOff looks at the lists that Gemini CLI has in "mcp".
func switchedOff(mcp *node, name string) bool {
	if excluded := mcp.good("excluded"); excluded != nil && slices.Contains(texts(excluded), name) {
		return true
	}
	allowed := mcp.good("allowed")
	return allowed != nil && allowed.kind == list && len(allowed.items) > 0 && !slices.Contains(texts(allowed), name)
}

// freeName makes a name that can be used here of one that can be anything in a client.
func (r *reader) freeName(name string) string {
	clean := strings.TrimLeft(strings.Map(func(c rune) rune {
		if strings.ContainsRune("-_.", c) || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			return c
		}
		return '-'
	}, name), "-_.")
	if clean == "" {
		clean = "server"
	}
	return free(clean, func(s Server, candidate string) bool { return strings.EqualFold(s.Name, candidate) }, r.file.Servers)
}

func (r *reader) freePrefix(prefix string) string {
	return free(prefix, func(s Server, candidate string) bool { return s.Prefix == candidate }, r.file.Servers)
}

// free adds a number to a name that is taken.
func free(name string, taken func(Server, string) bool, servers []Server) string {
	name = name[:min(len(name), 60)]
	for candidate, i := name, 2; ; i++ {
		if !slices.ContainsFunc(servers, func(s Server) bool { return taken(s, candidate) }) {
			return candidate
		}
		candidate = fmt.Sprintf("%s-%d", name, i)
	}
}

// clientTarget settles how a server is reached.
func (r *reader) clientTarget(s *Server, f field, n *node, form *shape, told bool) {
	var url *node
	for _, k := range []string{"httpUrl", "url", "serverUrl"} {
		if url == nil && n.has(k) {
			url = n.get(k)
		}
	}
	command := n.get("command")
	switch {
	case n.has("command") && url != nil:
		r.problem(f.pos, fmt.Sprintf("%s has a command and a url", s.Name), "one server is either started or reached: remove one")
	case n.has("command"):
		s.Transport, s.TargetPos = Stdio, command.pos
		if !command.bad {
			s.Command = append([]string{command.value}, texts(n.get("args"))...)
		}
		if strings.ContainsAny(command.value, " \t") && !strings.ContainsAny(command.value, `/\`) && !n.has("args") {
			r.warn(command.pos, fmt.Sprintf("the whole of %s is taken for the program's name", quoted(command)), "put its arguments into args")
		}
		r.clientMisplaced(n, []string{"headers", "http_headers", "env_http_headers", "bearer_token_env_var"}, "with a url")
	case url != nil:
		s.Transport, s.TargetPos = HTTP, url.pos
		if !url.bad {
			s.URL = url.value
		}
		r.clientMisplaced(n, []string{"args", "cwd", "envFile"}, "with a command")
	case misspeltTarget(n, form) != nil:
		wrong := misspeltTarget(n, form)
		r.problem(wrong.pos, fmt.Sprintf("unknown key %q, and neither a command nor a url", problem.Shortened(wrong.key)), didYouMean(wrong.key, form.keyNames()))
	case !told:
		r.problem(f.pos, fmt.Sprintf("%s has neither a command nor a url", s.Name), "add one")
	}
	r.clientTransport(s, n)
}

func (r *reader) clientMisplaced(n *node, keys []string, belongs string) {
	for _, k := range keys {
		if f := n.field(k); f != nil && f.value.kind != null && len(f.value.items)+len(f.value.fields)+len(f.value.raw) > 0 {
			r.warn(f.pos, k+" is only for servers "+belongs, "it has no effect")
		}
	}
}

// clientTransport looks at what a client was told of the transport, under one of three names.
func (r *reader) clientTransport(s *Server, n *node) {
	for _, k := range []string{"type", "transport", "transportType"} {
		v := n.good(k)
		if v == nil {
			continue
		}
		switch problem.Folded(v.value) {
		case "stdio", "local":
			if s.Transport == HTTP {
				r.problem(v.pos, fmt.Sprintf("%s is %s and has a url", s.Name, quoted(v)), `use "http", or a command`)
			}
		case "http", "streamablehttp", "remote":
			if s.Transport == Stdio {
				r.problem(v.pos, fmt.Sprintf("%s is %s and has a command", s.Name, quoted(v)), `use "stdio", or a url`)
			}
		case "sse":
			r.warn(v.pos, "the transport SSE was replaced by Streamable HTTP in 2025", "Streamable HTTP is tried at this URL first")
		default:
			r.problem(v.pos, fmt.Sprintf("the transport %s is not spoken here", quoted(v)), "want stdio or http")
		}
	}
}
