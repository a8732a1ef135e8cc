package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/problem"
)

// readOutlive takes outlive.yaml apart.
func (r *reader) readOutlive(root *node) {
	r.strict = true
	r.refs = references{strict: true}
	if root.kind == null {
		root.kind = object
	}
	shape := rootShape(r.opts.Keys)
	r.readInputs(root.get("inputs"), shape.key("inputs").shape)
	servers := root.field("servers")
	for _, f := range root.fields {
		if f.key == "servers" || f.key == "inputs" {
			continue
		}
		if k := shape.key(f.key); k != nil {
			r.check(f.value, k.shape, f.key)
		} else {
			r.unknownKey(f, shape, "")
		}
	}
	r.readEndpoint(root)
	defaults := r.settings(root.good("defaults"))
	if servers == nil || servers.value.kind == null && !servers.value.bad {
		at := root.pos
		if servers != nil {
			at = servers.pos
		}
		r.problem(at, "the file names no servers", "write servers: and below it a name with a command or a url")
		return
	}
	r.readServers(servers.value, shape.key("servers").shape, defaults)
	r.checkServers()
}

// readInputs has to come first: everything else may refer to them.
func (r *reader) readInputs(n *node, s *shape) {
	if n == nil || n.bad {
		return
	}
	if n.kind == list {
		for i, item := range n.items {
			r.readInput(item, s.of, fmt.Sprintf("inputs[%d]", i))
		}
		for i := range r.file.Inputs { // only now: the slice grew
			in := &r.file.Inputs[i]
			r.inputs[in.ID] = in
		}
		return
	}
	r.check(n, s, "inputs")
}

// readInput leaves the default as it is until somebody needs it.
func (r *reader) readInput(n *node, s *shape, label string) {
	fallback := n.get("default")
	r.quiet = true
	r.check(n, s, label)
	r.quiet = false
	id := n.textOf("id")
	if n.bad || id == "" {
		return
	}
	if slices.ContainsFunc(r.file.Inputs, func(in Input) bool { return in.ID == id }) {
		r.problem(n.get("id").pos, fmt.Sprintf("there are two inputs %q", id), "ids are unique")
		return
	}
	in := Input{ID: id, Description: n.textOf("description"), Password: n.isTrue("password"), Options: texts(n.get("options")), Pos: n.get("id").pos}
	if kind := n.textOf("type"); kind == "pickString" && len(in.Options) == 0 {
		r.problem(n.pos, fmt.Sprintf("the input %q has nothing to pick from", id), "add options")
	} else if kind == "command" {
		in.command = true
	}
	if fallback != nil && fallback.kind != null && !fallback.bad {
		in.fallback, in.Default = fallback, fallback.value
		if len(in.Options) > 0 && !slices.Contains(in.Options, in.Default) && !strings.Contains(in.Default, "${") {
			r.problem(fallback.pos, fmt.Sprintf("the default of input %q is none of its options", id), "want "+problem.Alternatives(in.Options))
		}
	}
	r.file.Inputs = append(r.file.Inputs, in)
}

// readEndpoint takes what is about our own HTTP endpoint.
func (r *reader) readEndpoint(root *node) {
	f := r.file
	if names := root.textOf("names"); names != "" {
		f.Names = Names(names)
	}
	r.readAuth(root.good("auth"))
	if n := root.good("local_users"); n != nil {
		f.LocalUsers, f.LocalUsersPos = LocalUsers(n.value), n.pos
		if root.has("auth") {
			r.problem(n.pos, "local_users and auth contradict each other", "with auth only tokens count: remove one")
		}
	}
	if n := root.good("tls"); n != nil {
		f.TLS = &TLS{Cert: r.absolute(n.textOf("cert")), Key: r.absolute(n.textOf("key")), Pos: root.field("tls").pos}
	}
	for _, origin := range texts(root.get("origins")) {
		f.Origins = append(f.Origins, strings.ToLower(origin))
	}
	for _, host := range texts(root.get("hosts")) {
		f.Hosts = append(f.Hosts, strings.ToLower(host))
	}
	if n := root.good("limits"); n != nil {
		idle, _ := time.ParseDuration(n.textOf("session_idle")) // its form was checked
		release, _ := time.ParseDuration(n.textOf("session_release"))
		f.Limits = Limits{SessionRelease: release, Processes: n.countOf("processes"), Body: sizeOf(n.textOf("body")), Sessions: n.countOf("sessions"), SessionIdle: idle, Connections: n.countOf("connections")}
	}
	listen := root.good("listen")
	if listen == nil {
		return
	}
	f.Listen, f.ListenPos = listen.value, listen.pos
	if message, hint := openListen(f.Listen, root.has("auth")); message != "" {
		r.problem(listen.pos, fmt.Sprintf("listen %s %s", quoted(listen), message), hint)
	}
}

func (r *reader) readAuth(n *node) {
	if n == nil {
		return
	}
	if !n.given("bearer", "oauth") || n.good("bearer") != nil && n.get("bearer").kind == list && len(n.get("bearer").items) == 0 {
		r.problem(n.pos, "auth lets nobody in", "add bearer: [${env:OUTLIVE_TOKEN}], or oauth with issuer and resource")
		return
	}
	r.file.Auth = &Auth{Bearer: texts(n.get("bearer"))}
	if o := n.good("oauth"); o != nil {
		r.file.Auth.OAuth = &Issuer{URL: o.textOf("issuer"), Resource: o.textOf("resource"), Scopes: texts(o.get("scopes"))}
	}
}

// readServers takes the servers in the order of the file.
func (r *reader) readServers(n *node, s *shape, defaults map[string]Setting) {
	if n.bad {
		return
	}
	if n.kind != object {
		r.check(n, s, "servers")
		return
	}
	if len(n.fields) == 0 {
		r.problem(n.pos, "the file names no servers", "write a name with a command or a url below servers")
	}
	for _, f := range n.fields {
		label := "servers." + problem.Shortened(f.key)
		if message, hint := s.names.check(f.key); message != "" {
			r.problem(f.pos, fmt.Sprintf("%q cannot be a server's name", problem.Shortened(f.key)), hint)
		}
		if f.value.kind == null && !f.value.bad {
			r.problem(f.pos, label+" is empty", "add a command or a url")
			continue
		}
		r.quiet = f.value.get("disabled") != nil && f.value.get("disabled").value == "true"
		r.check(f.value, s.of, label)
		if f.value.kind == object && !f.value.bad {
			r.readServer(f, s.of, defaults)
		}
		r.quiet = false
	}
}

func (r *reader) readServer(f field, form *shape, defaults map[string]Setting) {
	n := f.value
	s := Server{
		Name: f.key, Pos: f.pos, Disabled: n.isTrue("disabled"),
		Env: dict(n.get("env")), Headers: dict(n.get("headers")), URL: n.textOf("url"),
		Prefix: n.textOf("prefix"), Allow: texts(n.get("allow")), Deny: texts(n.get("deny")), Rename: dict(n.get("rename")),
		Shared: n.isTrue("shared"), Instances: max(1, n.countOf("instances")),
	}
	if s.Prefix == "" {
		s.Prefix = prefixOf(f.key)
	}
	if command := n.textOf("command"); command != "" {
		s.Command = append([]string{command}, texts(n.get("args"))...)
	}
	if cwd := n.textOf("cwd"); cwd != "" {
		s.Dir = r.absolute(cwd)
	}
	if c := n.good("auth"); c != nil {
		s.Auth = r.credentials(c)
	}
	s.Policy = r.policy(defaults, r.settings(n))
	r.target(&s, f, form)
	r.checkHeaders(&s, n)
	r.checkRename(n)
	at := f.pos
	if v := n.good("instances"); v != nil {
		at = v.pos
	}
	r.checkPolicy(&s, at)
	r.file.Servers = append(r.file.Servers, s)
}

func (r *reader) credentials(n *node) *Credentials {
	switch {
	case !n.given("bearer", "oauth"):
		r.problem(n.pos, "auth says nothing", "add a bearer token, or oauth")
	case n.has("bearer") && n.has("oauth"):
		r.problem(n.pos, "bearer and oauth contradict each other", "remove one")
	}
	c := &Credentials{Bearer: n.textOf("bearer")}
	if o := n.good("oauth"); o != nil {
		c.OAuth = &OAuth{
			ClientID: o.textOf("client_id"), ClientSecret: o.textOf("client_secret"), Scopes: texts(o.get("scopes")),
			Resource: o.textOf("resource"), Issuer: o.textOf("issuer"), CallbackPort: o.countOf("callback_port"),
		}
		if secret := o.field("client_secret"); o.has("client_secret") && !o.has("issuer") {
			r.problem(secret.pos, "client_secret without issuer would be sent to whichever authorization server the MCP server names",
				"add issuer: the URL of the authorization server that gave the secret out")
		}
	}
	return c
}

// prefixOf makes a prefix of a server's name: models' names of tools have no dots.
func prefixOf(name string) string {
	out := strings.Map(func(c rune) rune {
		if c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			return c
		}
		return '_'
	}, name)
	return out[:min(len(out), 64)]
}

// target settles how a server is reached, and tells keys that belong to the other way.
func (r *reader) target(server *Server, f field, s *shape) {
	n := f.value
	command, url := n.field("command"), n.field("url")
	switch {
	case n.has("command") && n.has("url"):
		r.problem(url.pos, fmt.Sprintf("%s has a command and a url", server.Name), "one server is either started or reached: remove one")
	case n.has("command"):
		server.Transport, server.TargetPos = Stdio, command.value.pos
		r.misplaced(n, []string{"headers", "auth"}, "with a url")
	case n.has("url"):
		server.Transport, server.TargetPos = HTTP, url.value.pos
		r.misplaced(n, []string{"args", "env", "cwd"}, "with a command")
	case command == nil && url == nil && misspeltTarget(n, s) == nil:
		r.problem(f.pos, fmt.Sprintf("%s has neither a command nor a url", server.Name), "add one")
	}
}

// misspeltTarget finds a key that was meant to say how a server is reached, and is told as unknown.
func misspeltTarget(n *node, s *shape) *field {
	for i, f := range n.fields {
		if s.key(f.key) != nil {
			continue
		}
		switch suggest(f.key, s.keyNames()) {
		case "command", "url", "httpUrl", "serverUrl":
			return &n.fields[i]
		}
	}
	return nil
}

func (r *reader) misplaced(n *node, keys []string, belongs string) {
	for _, k := range keys {
		if f := n.field(k); f != nil && f.value.kind != null {
			r.problem(f.pos, k+" is only for servers "+belongs, "remove it")
		}
	}
}

// checkHeaders finds headers that are given twice: HTTP does not tell upper from lower case.
func (r *reader) checkHeaders(s *Server, n *node) {
	headers := n.good("headers")
	if headers == nil {
		return
	}
	seen := map[string]bool{}
	for _, h := range headers.fields {
		name := strings.ToLower(h.key)
		if seen[name] {
			r.problem(h.pos, fmt.Sprintf("the header %s is given twice", h.key), "upper and lower case make no difference")
		}
		if name == "authorization" && s.Auth != nil {
			r.problem(h.pos, "the header Authorization and auth contradict each other", "remove one")
		}
		seen[name] = true
	}
}

// checkRename finds tools that would get the same name.
func (r *reader) checkRename(n *node) {
	renames := n.good("rename")
	if renames == nil {
		return
	}
	shown := map[string]string{}
	for _, f := range renames.fields {
		if f.value.bad {
			continue
		}
		to := f.value.value
		if other, taken := shown[to]; taken {
			r.problem(f.value.pos, fmt.Sprintf("%s and %s are both renamed to %s", other, f.key, quoted(f.value)), "give them different names")
			continue
		}
		shown[to] = f.key
		if slices.Contains(texts(n.get("allow")), to) && renames.field(to) == nil {
			r.problem(f.value.pos, fmt.Sprintf("%s is renamed to %s, and allow has a tool of that name", f.key, quoted(f.value)), "give it another name")
		}
	}
}

// checkEncrypted warns of credentials that everybody on the way can read. It is no mistake: some networks are trusted.
func (r *reader) checkEncrypted(s *Server) {
	u, err := url.Parse(s.URL)
	if s.Transport != HTTP || err != nil || u.Scheme != "http" || isLoopback(u.Hostname()) {
		return
	}
	shown := s.Auth != nil && s.Auth.Bearer != ""
	for name := range s.Headers {
		shown = shown || strings.EqualFold(name, "authorization")
	}
	if shown {
		r.warn(s.TargetPos, fmt.Sprintf("the credentials of %s are sent to %s without encryption", s.Name, u.Host),
			"everybody on the way can read them: use https")
	}
}

// checkServers looks at all servers together.
func (r *reader) checkServers() {
	names, prefixes, enabled := map[string]bool{}, map[string]string{}, 0
	for i := range r.file.Servers {
		s := &r.file.Servers[i]
		folded := strings.ToLower(s.Name) // names become files, and some systems do not tell the cases apart
		if names[folded] {
			r.problem(s.Pos, fmt.Sprintf("there are two servers %q", s.Name), "give them names that differ in more than upper and lower case")
		}
		names[folded] = true
		if s.Disabled {
			continue
		}
		enabled++
		r.checkEncrypted(s)
		if other, taken := prefixes[s.Prefix]; taken {
			r.problem(s.Pos, fmt.Sprintf("%s and %s have the same prefix %q", other, s.Name, s.Prefix), "set prefix on one of them")
		}
		prefixes[s.Prefix] = s.Name
	}
	if enabled == 0 && len(r.file.Servers) > 0 {
		r.warn(r.file.Servers[0].Pos, "all servers are disabled", "nothing will be shown to clients")
	}
}
