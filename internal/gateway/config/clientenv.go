package config

import (
	"fmt"
	"maps"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/files/schema"
	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// clientEnv reads the environment and the working directory of a server's process.
func (r *reader) clientEnv(s *Server, n *tree.Node, format Format) {
	if s.Transport != Stdio {
		return
	}
	env := map[string]string{}
	if v := n.Good("envFile"); v != nil && !r.quiet {
		data, why := r.readSmall(r.absolute(v.Value))
		if why != "" {
			r.Problem(v.Pos, fmt.Sprintf("cannot read the envFile %s", schema.Quoted(v)), why)
		}
		maps.Copy(env, parseDotenv(data))
	}
	for _, name := range passedOn(n.Good("env_vars")) {
		if value, set := r.opts.Lookup(name); set {
			env[name] = value
		}
	}
	if own := n.Good("env"); own != nil {
		maps.Copy(env, own.Dict())
		for _, f := range own.Members() {
			if f.Kind == tree.Null {
				r.Warn(f.KeyPos, fmt.Sprintf("null would remove the variable %s", fileerror.Shortened(f.Key)), "here the server gets it as outlive has it")
			}
		}
	}
	if len(env) > 0 {
		s.Env = env
	}
	switch cwd := n.TextOf("cwd"); {
	case cwd != "":
		s.Dir = r.absolute(cwd)
	case format == VSCode:
		s.Dir = r.workspace
	}
}

// passedOn returns the names in Codex' env_vars, whose items are texts or objects with a name. Variables that come
// from another machine are left out.
func passedOn(n *tree.Node) []string {
	var names []string
	if n == nil {
		return nil
	}
	for _, item := range n.Items() {
		switch {
		case item.Kind == tree.Text:
			names = append(names, item.Raw)
		case item.Kind == tree.Object && item.TextOf("source") != "remote" && item.TextOf("name") != "":
			names = append(names, item.TextOf("name"))
		}
	}
	return names
}

// clientHeaders reads the HTTP headers for a remote server.
func (r *reader) clientHeaders(s *Server, n *tree.Node) {
	if s.Transport != HTTP {
		return
	}
	headers := map[string]string{}
	maps.Copy(headers, n.Good("headers").Dict())
	maps.Copy(headers, n.Good("http_headers").Dict())
	if from := n.Good("env_http_headers"); from != nil {
		for _, f := range from.Members() {
			value, set := r.opts.Lookup(f.Value)
			if message, _ := oneLine.Check(value); message != "" {
				r.Problem(f.Pos, fmt.Sprintf("the environment variable %s %s", f.Raw, message), "a header is one line")
			} else if set {
				headers[f.Key] = value
			} else if !r.quiet {
				r.Warn(f.Pos, fmt.Sprintf("the environment variable %s is not set", f.Raw), "the header is left out")
			}
		}
	}
	if len(headers) > 0 {
		s.Headers = headers
	}
	if v := n.Good("bearer_token_env_var"); v != nil && !r.quiet {
		token, set := r.opts.Lookup(v.Value)
		if message, hint := tokenForm.Check(token); set && message != "" {
			r.Problem(v.Pos, fmt.Sprintf("the value of %s %s", v.Raw, message), hint)
		} else if set {
			s.Auth = &Credentials{Bearer: token}
			return
		} else {
			r.Warn(v.Pos, fmt.Sprintf("the environment variable %s is not set", v.Raw), "no token is sent")
		}
	}
	r.clientOAuth(s, n)
}

func (r *reader) clientOAuth(s *Server, n *tree.Node) {
	o := OAuth{Scopes: n.Good("scopes").Texts(), Resource: n.TextOf("oauth_resource")}
	for _, k := range []string{"oauth", "auth"} {
		v := n.Good(k)
		if v == nil || v.Kind != tree.Object {
			continue
		}
		r.Check(v, oauthShape(), s.Name+"."+k)
		for _, name := range []string{"clientId", "client_id", "CLIENT_ID"} {
			o.ClientID += v.TextOf(name)
		}
		for _, name := range []string{"clientSecret", "client_secret", "CLIENT_SECRET"} {
			o.ClientSecret += v.TextOf(name)
		}
		for _, scope := range v.Good("scopes").Texts() {
			o.Scopes = append(o.Scopes, strings.Fields(scope)...)
		}
		o.CallbackPort = v.CountOf("callbackPort")
	}
	if o.ClientID != "" || len(o.Scopes) > 0 || o.Resource != "" || o.CallbackPort > 0 {
		s.Auth = &Credentials{OAuth: &o}
	}
}
