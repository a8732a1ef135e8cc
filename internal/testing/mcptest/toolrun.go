package mcptest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// RestartMarker on stderr asks a supervisor for a restart (TP-1).
const RestartMarker = "__MCP_RESTART_REQUEST__"

// Identity is the answer of the tools read and pid, as JSON text.
type Identity struct {
	// PID of the server process.
	PID int `json:"pid"`
	// Generation is the process's OUTLIVE_GENERATION; empty without outlive.
	Generation string `json:"generation"`
}

func (s *server) echo(_ *call, a arguments) (any, error) {
	if a.Text == "" && len(a.raw) > 0 {
		return text(string(a.raw)), nil
	}
	return text(a.Text), nil
}

func (s *server) add(_ *call, a arguments) (any, error) {
	return text(strconv.FormatFloat(a.A+a.B, 'f', -1, 64)), nil
}

func (s *server) bump(_ *call, a arguments) (any, error) {
	if a.Path == "" {
		return nil, rpcError(codeInvalidParams, "bump: path is missing")
	}
	if err := appendFile(a.Path, []byte(a.Line+"\n")); err != nil {
		return toolError(err.Error()), nil
	}
	return text("bumped " + a.Line), nil
}

func (s *server) read(c *call, a arguments) (any, error) {
	if a.Path != "" {
		if r, err := s.bump(c, a); err != nil {
			return r, err
		}
	}
	return text(string(encode(Identity{PID: os.Getpid(), Generation: os.Getenv("OUTLIVE_GENERATION")}))), nil
}

func (s *server) slow(c *call, a arguments) (any, error) {
	steps := max(a.Steps, 1)
	var p struct {
		Meta struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if err := param(c.Params, &p); err != nil {
		return nil, err
	}
	c.later = func(ctx context.Context) (any, error) {
		for i := 1; i <= steps; i++ {
			if err := wait(ctx, nil, time.Duration(a.MS)*time.Millisecond/time.Duration(steps)); err != nil {
				return nil, err
			}
			if p.Meta.Token != nil {
				s.out.notify("notifications/progress", object{"progressToken": p.Meta.Token, "progress": i, "total": steps})
			}
		}
		return text(fmt.Sprintf("done after %d ms", a.MS)), nil
	}
	return nil, nil
}

func (s *server) exitTool(c *call, a arguments) (any, error) {
	if a.Silent {
		s.exit(a.Code)
		return nil, errDrop
	}
	c.after = func() { s.exit(a.Code) }
	return text(fmt.Sprintf("exiting with %d", a.Code)), nil
}

func (s *server) crashTool(c *call, _ arguments) (any, error) {
	s.crash(c)
	return nil, errDrop
}

func (s *server) marker(_ *call, _ arguments) (any, error) {
	fmt.Fprintln(s.stderr, RestartMarker)
	return text("marker printed"), nil
}

func (s *server) big(_ *call, a arguments) (any, error) {
	const digits = "0123456789"
	n := max(a.N, 0)
	return text(strings.Repeat(digits, n/len(digits)+1)[:n]), nil
}

func (s *server) env(_ *call, a arguments) (any, error) {
	return text(os.Getenv(a.Name)), nil
}

func (s *server) logTool(c *call, a arguments) (any, error) {
	if s.logMessage(c, a.Level, a.Text) {
		return text("logged"), nil
	}
	return text("not wanted"), nil
}

// State is the answer of the tool state, as JSON text: what the client has sent to this process.
type State struct {
	Identity
	// Era is "", "legacy" or "modern", decided by the first request.
	Era string `json:"era"`
	// ProtocolVersion is the negotiated one, or that of the last modern request.
	ProtocolVersion string `json:"protocolVersion"`
	// Initialized says that notifications/initialized was received.
	Initialized bool `json:"initialized"`
	// Level is the last logging/setLevel; empty without one.
	Level string `json:"level"`
	// Subscriptions are the URIs subscribed to, in order.
	Subscriptions []string `json:"subscriptions"`
	// Listens are the raw ids of the open subscriptions/listen streams, in order.
	Listens []string `json:"listens"`
	// Client is the raw clientInfo.
	Client json.RawMessage `json:"clientInfo"`
	// Capabilities are the raw client capabilities.
	Capabilities json.RawMessage `json:"clientCapabilities"`
	// Requests this process received, this one included.
	Requests int `json:"requests"`
}

func (s *server) state(_ *call, _ arguments) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := State{
		Identity: Identity{PID: os.Getpid(), Generation: os.Getenv("OUTLIVE_GENERATION")},
		Era:      s.session.Era, ProtocolVersion: s.session.Protocol, Initialized: s.session.Initialized,
		Level: s.session.Level, Subscriptions: slices.Clone(s.session.Subscriptions),
		Client: s.session.Client, Capabilities: s.session.Capabilities, Requests: s.requests,
	}
	for _, l := range s.listens {
		st.Listens = append(st.Listens, string(l.id))
	}
	return text(string(encode(st))), nil
}

func (s *server) addTool(_ *call, a arguments) (any, error) {
	t, err := fileTool(builtin(), encode(a.Name))
	if err != nil {
		return nil, rpcError(codeInvalidParams, "%v", err)
	}
	s.mu.Lock()
	s.tools = append(s.tools, t)
	s.mu.Unlock()
	s.changed("notifications/tools/list_changed", object{}, true, func(f filter) bool { return f.Tools })
	return text("added " + a.Name), nil
}

func (s *server) endListensTool(_ *call, _ arguments) (any, error) {
	return text(fmt.Sprintf("ended %d", s.endListens())), nil
}
