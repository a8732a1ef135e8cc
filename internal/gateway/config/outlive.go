package config

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/files/peer"
	"github.com/outlive-mcp/outlive/internal/files/schema"
	"github.com/outlive-mcp/outlive/internal/files/tree"
	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
)

// readOutlive reads outlive.yaml.
func (r *reader) readOutlive(root *tree.Node) {
	r.Manner = schema.Strict
	r.refs = references{strict: true}
	if root.Kind == tree.Null {
		root.Kind = tree.Object
	}
	shape := rootShape(r.opts.Keys)
	r.readInputs(root.Get("inputs"), shape.Key("inputs").Shape)
	servers := root.Get("servers")
	for _, f := range root.Members() {
		if f.Key == "servers" || f.Key == "inputs" {
			continue
		}
		if k := shape.Key(f.Key); k != nil {
			r.Check(f, k.Shape, f.Key)
		} else {
			r.Unknown(f, shape, "")
		}
	}
	r.readViews(root, servers)
	r.readEndpoint(root)
	defaults := r.settings(root.Good("defaults"))
	if servers == nil || servers.Kind == tree.Null && !servers.Bad {
		at := root.Pos
		if servers != nil {
			at = servers.KeyPos
		}
		r.Problem(at, "the file names no servers", "write servers: and below it a name with a command or a url")
		return
	}
	r.readServers(servers, shape.Key("servers").Shape, defaults)
	r.checkServers()
}

// readInputs reads the inputs. It has to be called first, because everything else may refer to them.
func (r *reader) readInputs(n *tree.Node, s *schema.Shape) {
	switch {
	case n == nil || n.Bad:
	case n.Kind == tree.List:
		for i, item := range n.Items() {
			r.readInput(item, s.Of, fmt.Sprintf("inputs[%d]", i))
		}
	default:
		r.Check(n, s, "inputs")
	}
}

// readInput reads one input. References in its default are replaced when the default is needed.
func (r *reader) readInput(n *tree.Node, s *schema.Shape, label string) {
	fallback := n.Get("default")
	r.quiet = true
	r.Check(n, s, label)
	r.quiet = false
	id := n.TextOf("id")
	if n.Bad || id == "" {
		return
	}
	if r.inputs[id] != nil {
		r.Problem(n.Get("id").Pos, fmt.Sprintf("there are two inputs %q", id), "ids are unique")
		return
	}
	in := &input{options: n.Get("options").Texts(), pos: n.Get("id").Pos}
	if kind := n.TextOf("type"); kind == "pickString" && len(in.options) == 0 {
		r.Problem(n.Pos, fmt.Sprintf("the input %q has nothing to pick from", id), "add options")
	} else if kind == "command" {
		in.command = true
	}
	if fallback != nil && fallback.Kind != tree.Null {
		in.fallback = fallback
		if !fallback.Bad && len(in.options) > 0 && !slices.Contains(in.options, fallback.Value) && !strings.Contains(fallback.Value, "${") {
			r.Wrong(fallback, fmt.Sprintf("the default of input %q is none of its options", id), "want "+fileerror.Alternatives(in.options))
		}
	}
	r.inputs[id] = in
}

// readEndpoint reads the settings of our own HTTP endpoint.
func (r *reader) readEndpoint(root *tree.Node) {
	f := r.file
	if names := root.TextOf("names"); names != "" {
		f.Names = catalog.Names(names)
	}
	r.readAuth(root.Good("auth"))
	if n := root.Good("local_users"); n != nil {
		f.LocalUsers, f.LocalUsersPos = LocalUsers(n.Value), n.Pos
		switch {
		case !root.Has("auth") && f.Auth != nil:
			r.Problem(n.Pos, "local_users and the views' bearer contradict each other", "with tokens only they count: remove one")
		case root.Has("auth"):
			r.Problem(n.Pos, "local_users and auth contradict each other", "with auth only tokens count: remove one")
		}
	}
	if n := root.Good("sessions"); n != nil {
		f.Sessions = Sessions(n.Value)
	}
	if n := root.Good("tls"); n != nil {
		f.TLS = &TLS{Cert: r.absolute(n.TextOf("cert")), Key: r.absolute(n.TextOf("key")), Pos: root.Get("tls").KeyPos}
	}
	for _, origin := range root.Get("origins").Texts() {
		f.Origins = append(f.Origins, strings.ToLower(origin))
	}
	for _, host := range root.Get("hosts").Texts() {
		f.Hosts = append(f.Hosts, strings.ToLower(host))
	}
	if n := root.Good("limits"); n != nil {
		idle, _ := time.ParseDuration(n.TextOf("session_idle")) // checked by its schema already
		release, _ := time.ParseDuration(n.TextOf("session_release"))
		f.Limits = Limits{SessionRelease: release, Processes: n.CountOf("processes"), Body: sizeOf(n.TextOf("body")), Sessions: n.CountOf("sessions"), SessionIdle: idle, Connections: n.CountOf("connections")}
	}
	listen := root.Good("listen")
	if listen == nil {
		return
	}
	f.Listen = listen.Value
	if message, hint := openListen(f.Listen, r.file.Auth != nil || root.Has("auth")); message != "" {
		r.Problem(listen.Pos, fmt.Sprintf("listen %s %s", schema.Quoted(listen), message), hint)
	}
}

func (r *reader) readAuth(n *tree.Node) {
	if n == nil {
		return
	}
	if !n.Given("bearer", "oauth") || n.Good("bearer") != nil && n.Get("bearer").Kind == tree.List && len(n.Get("bearer").Items()) == 0 {
		r.Problem(n.Pos, "auth allows no client", "add bearer: [${env:OUTLIVE_TOKEN}], or oauth with issuer and resource")
		return
	}
	r.file.Auth = &Auth{Bearer: n.Get("bearer").Texts()}
	if o := n.Good("oauth"); o != nil {
		r.file.Auth.OAuth = &Issuer{URL: o.TextOf("issuer"), Resource: o.TextOf("resource"), Scopes: o.Get("scopes").Texts()}
	}
}

// readServers reads the servers, in the order of the file.
func (r *reader) readServers(n *tree.Node, s *schema.Shape, defaults map[string]Setting) {
	if n.Bad {
		return
	}
	if n.Kind != tree.Object {
		r.Check(n, s, "servers")
		return
	}
	if len(n.Members()) == 0 {
		r.Problem(n.Pos, "the file names no servers", "write a name with a command or a url below servers")
	}
	for _, f := range n.Members() {
		label := "servers." + fileerror.Shortened(f.Key)
		if message, hint := s.Names.Check(f.Key); message != "" {
			r.Problem(f.KeyPos, fmt.Sprintf("%q cannot be a server's name", fileerror.Shortened(f.Key)), hint)
		}
		if f.Kind == tree.Null && !f.Bad {
			r.Problem(f.KeyPos, label+" is empty", "add a command or a url")
			continue
		}
		r.quiet = f.Get("disabled") != nil && f.Get("disabled").Value == "true"
		r.Check(f, s.Of, label)
		if f.Kind == tree.Object && !f.Bad {
			r.readServer(f, s.Of, defaults)
		}
		r.quiet = false
	}
}

func (r *reader) readServer(n *tree.Node, form *schema.Shape, defaults map[string]Setting) {
	s := Server{
		Name: n.Key, Pos: n.KeyPos, Disabled: n.IsTrue("disabled"),
		Env: n.Get("env").Dict(), Headers: n.Get("headers").Dict(), URL: n.TextOf("url"), OldSSE: n.TextOf("transport") == transportSSE,
		Prefix: cmp.Or(n.TextOf("prefix"), prefixOf(n.Key)), Rename: n.Get("rename").Dict(),
		Allow: n.Get("allow").Texts(), Deny: n.Get("deny").Texts(), Shared: n.IsTrue("shared"), Instances: max(1, n.CountOf("instances")),
	}
	if command := n.TextOf("command"); command != "" {
		s.Command = append([]string{command}, n.Get("args").Texts()...)
	}
	if cwd := n.TextOf("cwd"); cwd != "" {
		s.Dir = r.absolute(cwd)
	}
	if c := n.Good("auth"); c != nil {
		s.Auth = r.credentials(c)
	}
	s.Policy = r.policy(defaults, r.settings(n))
	r.target(&s, n, form)
	r.checkHeaders(&s, n)
	r.checkRename(n)
	at := n.KeyPos
	if v := n.Good("instances"); v != nil {
		at = v.Pos
	}
	r.checkPolicy(&s, at)
	r.file.Servers = append(r.file.Servers, s)
}

func (r *reader) credentials(n *tree.Node) *Credentials {
	switch {
	case !n.Given("bearer", "oauth"):
		r.Problem(n.Pos, "auth says nothing", "add a bearer token, or oauth")
	case n.Has("bearer") && n.Has("oauth"):
		r.Problem(n.Pos, "bearer and oauth contradict each other", "remove one")
	}
	c := &Credentials{Bearer: n.TextOf("bearer")}
	if o := n.Good("oauth"); o != nil {
		c.OAuth = &OAuth{
			ClientID: o.TextOf("client_id"), ClientSecret: o.TextOf("client_secret"), Scopes: o.Get("scopes").Texts(),
			Resource: o.TextOf("resource"), Issuer: o.TextOf("issuer"), CallbackPort: o.CountOf("callback_port"),
		}
		if secret := o.Get("client_secret"); o.Has("client_secret") && !o.Has("issuer") {
			r.Problem(secret.KeyPos, "client_secret without issuer would be sent to any authorization server that the MCP server names",
				"add issuer: the URL of the authorization server that gave the secret out")
		}
	}
	return c
}

// prefixOf makes a prefix of a server's name.
func prefixOf(name string) string {
	out := catalog.Clean(name)
	return out[:min(len(out), catalog.MaxName)]
}

// target reads how a server is reached, and reports keys that belong to the other transport.
func (r *reader) target(server *Server, n *tree.Node, s *schema.Shape) {
	command, url := n.Get("command"), n.Get("url")
	switch {
	case n.Has("command") && n.Has("url"):
		r.Problem(url.KeyPos, fmt.Sprintf("%s has a command and a url", server.Name), "one server is either started or reached: remove one")
	case n.Has("command"):
		server.Transport, server.TargetPos = Stdio, command.Pos
		r.misplaced(n, []string{"headers", "auth", "transport"}, "with a url")
	case n.Has("url"):
		server.Transport, server.TargetPos = HTTP, url.Pos
		r.misplaced(n, []string{"args", "env", "cwd"}, "with a command")
	case command == nil && url == nil && misspeltTarget(n, s) == nil:
		r.Problem(n.KeyPos, fmt.Sprintf("%s has neither a command nor a url", server.Name), "add one")
	}
}

// misspeltTarget finds an unknown key that was probably meant as command or url.
func misspeltTarget(n *tree.Node, s *schema.Shape) *tree.Node {
	targets := []string{"command", "url", "httpUrl", "serverUrl"}
	for _, f := range n.Members() {
		if s.Key(f.Key) == nil && slices.Contains(targets, suggest(f.Key, s.KeyNames())) {
			return f
		}
	}
	return nil
}

// misplaced reports keys of the other transport. A client ignores them in its own file, where they are no mistakes.
func (r *reader) misplaced(n *tree.Node, keys []string, belongs string) {
	for _, k := range keys {
		switch f := n.Get(k); {
		case f == nil || f.Kind == tree.Null:
		case r.Manner == schema.Strict:
			r.Problem(f.KeyPos, k+" is only for servers "+belongs, "remove it")
		case len(f.Kids)+len(f.Raw) > 0:
			r.Warn(f.KeyPos, k+" is only for servers "+belongs, "it has no effect")
		}
	}
}

// checkHeaders finds headers that are given twice: HTTP header names are case-insensitive.
func (r *reader) checkHeaders(s *Server, n *tree.Node) {
	headers := n.Good("headers")
	if headers == nil {
		return
	}
	seen := map[string]bool{}
	for _, h := range headers.Members() {
		name := strings.ToLower(h.Key)
		if seen[name] {
			r.Problem(h.KeyPos, fmt.Sprintf("the header %s is given twice", h.Key), "upper and lower case make no difference")
		}
		if name == "authorization" && s.Auth != nil {
			r.Problem(h.KeyPos, "the header Authorization and auth contradict each other", "remove one")
		}
		seen[name] = true
	}
}

// checkRename finds tools that are renamed to the same name.
func (r *reader) checkRename(n *tree.Node) {
	renames := n.Good("rename")
	if renames == nil {
		return
	}
	shown := map[string]string{}
	for _, f := range renames.Members() {
		if f.Bad {
			continue
		}
		to := f.Value
		if other, taken := shown[to]; taken {
			r.Problem(f.Pos, fmt.Sprintf("%s and %s are both renamed to %s", other, f.Key, schema.Quoted(f)), "give them different names")
			continue
		}
		shown[to] = f.Key
		if slices.Contains(n.Get("allow").Texts(), to) && renames.Get(to) == nil {
			r.Problem(f.Pos, fmt.Sprintf("%s is renamed to %s, and allow has a tool of that name", f.Key, schema.Quoted(f)), "give it another name")
		}
	}
}

// checkEncrypted warns of credentials that are sent unencrypted. It is not an error, because some networks are
// trusted.
func (r *reader) checkEncrypted(s *Server) {
	u, err := url.Parse(s.URL)
	if s.Transport != HTTP || err != nil || u.Scheme != "http" || peer.IsLoopback(u.Hostname()) {
		return
	}
	shown := s.Auth != nil && s.Auth.Bearer != ""
	for name := range s.Headers {
		shown = shown || strings.EqualFold(name, "authorization")
	}
	if shown {
		r.Warn(s.TargetPos, fmt.Sprintf("the credentials of %s are sent to %s without encryption", s.Name, u.Host),
			"any host on the way can read them: use https")
	}
}

// checkServers checks what concerns several servers.
func (r *reader) checkServers() {
	names, prefixes, enabled := map[string]bool{}, map[string]string{}, 0
	for i := range r.file.Servers {
		s := &r.file.Servers[i]
		folded := strings.ToLower(s.Name) // names become file names, and some file systems are case-insensitive
		if names[folded] {
			r.Problem(s.Pos, fmt.Sprintf("there are two servers %q", s.Name), "give them names that differ in more than upper and lower case")
		}
		names[folded] = true
		if s.Disabled {
			continue
		}
		enabled++
		r.checkEncrypted(s)
		if other, taken := prefixes[s.Prefix]; taken {
			r.Problem(s.Pos, fmt.Sprintf("%s and %s have the same prefix %q", other, s.Name, s.Prefix), "set prefix on one of them")
		}
		prefixes[s.Prefix] = s.Name
	}
	if enabled == 0 && len(r.file.Servers) > 0 {
		r.Warn(r.file.Servers[0].Pos, "all servers are disabled", "nothing will be shown to clients")
	}
}
