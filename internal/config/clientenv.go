package config

import (
	"fmt"
	"maps"
	"strings"

	"github.com/outlive-mcp/outlive/internal/problem"
)

// clientEnv takes what a process gets besides its arguments.
func (r *reader) clientEnv(s *Server, n *node, format Format) {
	if s.Transport != Stdio {
		return
	}
	env := map[string]string{}
	if v := n.good("envFile"); v != nil && !r.quiet {
		data, why := r.readSmall(r.absolute(v.value))
		if why != "" {
			r.problem(v.pos, fmt.Sprintf("cannot read the envFile %s", quoted(v)), why)
		}
		maps.Copy(env, parseDotenv(data))
	}
	for _, name := range passedOn(n.good("env_vars")) {
		if value, set := r.lookup(name); set {
			env[name] = value
		}
	}
	if own := n.good("env"); own != nil {
		maps.Copy(env, dict(own))
		for _, f := range own.fields {
			if f.value.kind == null {
				r.warn(f.pos, fmt.Sprintf("null would remove the variable %s", problem.Shortened(f.key)), "here the server gets it as outlive has it")
			}
		}
	}
	if len(env) > 0 {
		s.Env = env
	}
	switch cwd := n.textOf("cwd"); {
	case cwd != "":
		s.Dir = r.absolute(cwd)
	case format == VSCode:
		s.Dir = r.workspace
	}
}

// passedOn are the names in Codex' env_vars: texts, or objects with a name. Those of another machine are not ours.
func passedOn(n *node) []string {
	var names []string
	if n == nil {
		return nil
	}
	for _, item := range n.items {
		switch {
		case item.kind == text:
			names = append(names, item.raw)
		case item.kind == object && item.textOf("source") != "remote" && item.textOf("name") != "":
			names = append(names, item.textOf("name"))
		}
	}
	return names
}

// clientHeaders takes what a remote server is shown.
func (r *reader) clientHeaders(s *Server, n *node) {
	if s.Transport != HTTP {
		return
	}
	headers := map[string]string{}
	maps.Copy(headers, dict(n.good("headers")))
	maps.Copy(headers, dict(n.good("http_headers")))
	if from := n.good("env_http_headers"); from != nil {
		for _, f := range from.fields {
			value, set := r.lookup(f.value.value)
			if message, _ := oneLine.check(value); message != "" {
				r.problem(f.value.pos, fmt.Sprintf("the environment variable %s %s", f.value.raw, message), "a header is one line")
			} else if set {
				headers[f.key] = value
			} else if !r.quiet {
				r.warn(f.value.pos, fmt.Sprintf("the environment variable %s is not set", f.value.raw), "the header is left out")
			}
		}
	}
	if len(headers) > 0 {
		s.Headers = headers
	}
	if v := n.good("bearer_token_env_var"); v != nil && !r.quiet {
		token, set := r.lookup(v.value)
		if message, hint := tokenForm.check(token); set && message != "" {
			r.problem(v.pos, fmt.Sprintf("the value of %s %s", v.raw, message), hint)
		} else if set {
			s.Auth = &Credentials{Bearer: token}
			return
		} else {
			r.warn(v.pos, fmt.Sprintf("the environment variable %s is not set", v.raw), "no token is sent")
		}
	}
	r.clientOAuth(s, n)
}

func (r *reader) clientOAuth(s *Server, n *node) {
	o := OAuth{Scopes: texts(n.good("scopes")), Resource: n.textOf("oauth_resource")}
	for _, k := range []string{"oauth", "auth"} {
		v := n.good(k)
		if v == nil || v.kind != object {
			continue
		}
		r.check(v, oauthShape(), s.Name+"."+k)
		for _, name := range []string{"clientId", "client_id", "CLIENT_ID"} {
			o.ClientID += v.textOf(name)
		}
		for _, name := range []string{"clientSecret", "client_secret", "CLIENT_SECRET"} {
			o.ClientSecret += v.textOf(name)
		}
		for _, scope := range texts(v.good("scopes")) {
			o.Scopes = append(o.Scopes, strings.Fields(scope)...)
		}
		o.CallbackPort = v.countOf("callbackPort")
	}
	if o.ClientID != "" || len(o.Scopes) > 0 || o.Resource != "" || o.CallbackPort > 0 {
		s.Auth = &Credentials{OAuth: &o}
	}
}
