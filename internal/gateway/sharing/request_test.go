package sharing

import (
	"slices"
	"strings"
	"testing"
)

// Which runs get the same server: what differs between two terminals of one user makes no difference, everything else does.
func TestKey(t *testing.T) {
	base := Request{Name: "a", PID: 1, Command: []string{"npx", "-y", "x"}, Dir: "/src", Env: []string{"HOME=/home/u", "TOKEN=one", "TERM=xterm"},
		Settings: []Setting{{"standby", []string{"1"}}}}
	with := func(change func(*Request)) Request {
		r := base
		r.Env, r.Command = slices.Clone(base.Env), slices.Clone(base.Command)
		change(&r)
		return r
	}
	env := func(kv ...string) Request {
		return with(func(r *Request) { r.Env = append(r.Env[:len(r.Env):len(r.Env)], kv...) })
	}
	for _, c := range []struct {
		name string
		r    Request
		same bool
		by   string
	}{
		{"another terminal", env("TERM=screen", "PWD=/src", "OLDPWD=/", "SHLVL=3", "TMUX_PANE=%1", "SSH_CONNECTION=x", "WINDOWID=7"), true, ""},
		{"another name and process", with(func(r *Request) { r.Name, r.PID = "b", 2 }), true, ""},
		{"another order", with(func(r *Request) { slices.Reverse(r.Env) }), true, ""},
		{"another token", env("TOKEN=two"), false, "$TOKEN"},
		{"a variable more", env("DEBUG="), false, "$DEBUG"},
		{"another agent with keys", env("SSH_AUTH_SOCK=/tmp/1"), false, "$SSH_AUTH_SOCK"},
		{"another directory", with(func(r *Request) { r.Dir = "/other" }), false, "directory"},
		{"another flag", with(func(r *Request) { r.Settings = nil }), false, "--standby"},
		{"other arguments", with(func(r *Request) { r.Command[2] = "y" }), false, ""},
	} {
		if same := c.r.Key() == base.Key(); same != c.same {
			t.Errorf("%s: shared %v, want %v", c.name, same, c.same)
		}
		by := strings.Join(base.Differences(c.r), ", ")
		if by != c.by {
			t.Errorf("%s: they differ in %q, want %q", c.name, by, c.by)
		}
	}
}
