package diagnose

import (
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
)

// What an agent waits for at a kept server decides what is wrong with it: the server's own word, the call's progress, and what the
// server's processes do. A long call that goes on, or keeps the server busy, is none of it.
func TestCallsOfServers(t *testing.T) {
	busy := Session{Kind: "claude", Status: agentcli.Busy, Open: agentcli.Tool, Tool: "mcp__shop__pay", OpenAge: 2 * hour, LastAge: 2 * hour}
	stuck := ServerCall{Server: "shop", Tool: "pay", Age: 2 * hour, Still: 2 * hour, WorkKnown: true, Idle: 2 * hour}
	with := func(change func(*ServerCall)) ServerCall { c := stuck; change(&c); return c }
	login := with(func(c *ServerCall) { c.Trouble, c.Why = ServerLogin, "the server wants a login" })
	for name, tc := range map[string]struct {
		calls  []ServerCall
		change func(*Evidence)
		want   Class
		kill   bool
	}{
		"it does nothing":                       {[]ServerCall{stuck}, nil, ServerHung, true},
		"at the limit":                          {[]ServerCall{with(func(c *ServerCall) { c.Still = 30 * minute })}, nil, AtWork, false},
		"it reports progress":                   {[]ServerCall{with(func(c *ServerCall) { c.Still = minute })}, nil, AtWork, false},
		"it works":                              {[]ServerCall{with(func(c *ServerCall) { c.Idle = minute })}, nil, AtWork, false},
		"nobody knows whether it works":         {[]ServerCall{with(func(c *ServerCall) { c.WorkKnown, c.Idle = false, 0 })}, nil, ServerHung, false},
		"it is elsewhere":                       {[]ServerCall{with(func(c *ServerCall) { c.WorkKnown, c.Idle, c.Remote = false, 0, true })}, nil, ServerHung, true},
		"it says itself that it hangs":          {[]ServerCall{with(func(c *ServerCall) { c.Trouble, c.Still, c.Age = ServerHangs, minute, minute })}, nil, ServerHung, true},
		"it wants a login":                      {[]ServerCall{login}, nil, WaitingServer, false},
		"one wants a login, another hangs":      {[]ServerCall{stuck, login}, nil, WaitingServer, false},
		"the agent has announced a silence":     {[]ServerCall{stuck}, func(e *Evidence) { e.Beat = Beat{Has: true, Age: minute, Next: hour} }, Healthy, false},
		"the machine slept":                     {[]ServerCall{stuck, login}, func(e *Evidence) { e.Grace = "slept" }, Grace, false},
		"something of the agent cannot be read": {[]ServerCall{stuck}, func(e *Evidence) { e.Missing = []Source{FromBeat} }, ServerHung, false},
		"nothing else is known of the agent":    {[]ServerCall{stuck}, func(e *Evidence) { e.Sessions, e.CPU = nil, CPU{} }, ServerHung, true},
		"no call at all":                        {nil, nil, ToolHung, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := and(living, session(busy), func(e *Evidence) { e.CPU = CPU{Known: true} })
			e.Servers = tc.calls
			if tc.change != nil {
				tc.change(&e)
			}
			v := Classify(e, Policy{})
			if v.Class != tc.want || v.MayKill() != tc.kill {
				t.Errorf("%s (%s, %s), a reason to act: %v; want %s, %v", v.Class, v.Details, v.Doubt, v.MayKill(), tc.want, tc.kill)
			}
			if named := strings.Contains(v.Details, "MCP server shop"); (v.Class == ServerHung || v.Class == WaitingServer) && !named {
				t.Errorf("the server is not named: %s", v.Details)
			}
			if at := e.StalledCall(Policy{}); v.Class == ServerHung && (at < 0 || e.Servers[at] != tc.calls[at]) {
				t.Errorf("the stalled call is %d", at)
			}
		})
	}
}
