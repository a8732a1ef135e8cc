package mcptest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"
)

// tool is one entry of tools/list, with what a call does. The arguments passed to run are valid JSON, but not checked
// otherwise.
type tool struct {
	definition object
	run        func(*server, *call, arguments) (any, error)
}

func (t tool) name() string {
	name, _ := t.definition["name"].(string)
	return name
}

// arguments of a tools/call. The last four work with every tool that answers at once.
type arguments struct {
	raw    json.RawMessage
	Text   string  `json:"text"`
	A      float64 `json:"a"`
	B      float64 `json:"b"`
	Path   string  `json:"path"`
	Line   string  `json:"line"`
	Steps  int     `json:"steps"`
	Code   int     `json:"code"`
	Silent bool    `json:"silent"`
	Kind   string  `json:"kind"`
	N      int     `json:"n"`
	URI    string  `json:"uri"`
	Name   string  `json:"name"`
	Level  string  `json:"level"`
	Reason string  `json:"reason"`
	Since  string  `json:"since_timestamp"`

	// MS delays the answer by milliseconds, after the work is done.
	MS int `json:"ms"`
	// Die kills the process "before" or "after" the work is done; the call is never answered.
	Die string `json:"die"`
	// DieOnce limits Die (default "after") to the first process that can create this path.
	DieOnce string `json:"die_once"`
	// Fail makes the answer a tool error.
	Fail bool `json:"fail"`
}

const anyArguments = `{"type":"object"}`

func define(name, description string, annotations object) object {
	d := object{"name": name, "description": description, "inputSchema": json.RawMessage(anyArguments)}
	if annotations != nil {
		d["annotations"] = annotations
	}
	return d
}

func text(s string) object {
	return object{"content": []any{object{"type": "text", "text": s}}}
}

func toolError(s string) object {
	r := text(s)
	r["isError"] = true
	return r
}

// builtin returns the tools of every server.
func builtin() []tool {
	readOnly := object{"readOnlyHint": true}
	return []tool{
		{define("echo", "Answers with the argument text, or with all its arguments as JSON", readOnly), (*server).echo},
		{define("add", "Answers with a + b", readOnly), (*server).add},
		{define("bump", "Appends the argument line to the file path: one line for each execution", nil), (*server).bump},
		{define("idem", "As bump, declared idempotent", object{"idempotentHint": true}), (*server).bump},
		{define("read", "Answers with pid and generation; declared read-only; appends line to path if given", readOnly), (*server).read},
		{define("pid", "Answers with pid and generation", nil), (*server).read},
		{define("slow", "Takes ms milliseconds in steps, with progress when asked for", nil), (*server).slow},
		{define("exit", "Ends with status code after answering, without answering if silent", nil), (*server).exitTool},
		{define("crash", "Kills the server at once", nil), (*server).crashTool},
		{define("marker", "Prints the restart marker on stderr, then answers", nil), (*server).marker},
		{define("ask", "Asks the client (kind sampling, elicitation, roots or ping) and answers with its answer", nil), (*server).ask},
		{define("big", "Answers with n bytes of text", readOnly), (*server).big},
		{define("env", "Answers with the environment variable name", readOnly), (*server).env},
		{define("touch", "Changes the resource uri and tells its subscribers", nil), (*server).touch},
		{define("log", "Sends a log message of level and text if the client wants that level", nil), (*server).logTool},
		{define("state", "Answers with what the client told this process", readOnly), (*server).state},
		{define("add_tool", "Adds the tool name and tells the client", nil), (*server).addTool},
		{define("end_listens", "Ends every open subscriptions/listen stream", nil), (*server).endListensTool},
	}
}

// loadTools returns the built-in tools, or those that -tools-file lists, which may be others, too.
func (s *server) loadTools() ([]tool, error) {
	known := builtin()
	if s.o.restartTools {
		known = append(known, restartTools()...)
	}
	if s.o.toolsFile == "" {
		return known, nil
	}
	b, err := os.ReadFile(s.o.toolsFile)
	if err != nil {
		return nil, fmt.Errorf("read tool list: %w", err)
	}
	var entries []json.RawMessage
	if err := json.Unmarshal(b, &entries); err != nil {
		return nil, fmt.Errorf("read tool list %s: %w", s.o.toolsFile, err)
	}
	var tools []tool
	for _, e := range entries {
		t, err := fileTool(known, e)
		if err != nil {
			return nil, fmt.Errorf("read tool list %s: %w", s.o.toolsFile, err)
		}
		tools = append(tools, t)
	}
	return tools, nil
}

// fileTool parses one entry: a built-in's name, or a definition that runs as the built-in of its name or as echo.
func fileTool(known []tool, entry json.RawMessage) (tool, error) {
	var name string
	definition := object{}
	if json.Unmarshal(entry, &name) != nil {
		if err := json.Unmarshal(entry, &definition); err != nil {
			return tool{}, fmt.Errorf("entry %.80s: %w", entry, err)
		}
		name, _ = definition["name"].(string)
	}
	if name == "" {
		return tool{}, fmt.Errorf("entry %.80s has no name", entry)
	}
	t := tool{define(name, "From the tool list file", nil), (*server).echo}
	if i := slices.IndexFunc(known, func(k tool) bool { return k.name() == name }); i >= 0 {
		t = known[i]
	}
	for k, v := range definition {
		t.definition[k] = v
	}
	return t, nil
}

// listTools answers tools/list; the cursor is the index of the next page's first tool.
func (s *server) listTools(params json.RawMessage) (any, error) {
	if s.o.noTools {
		return nil, rpcError(codeNoMethod, "Method not found: tools/list")
	}
	var p struct {
		Cursor string `json:"cursor"`
	}
	if err := param(params, &p); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	first := 0
	if p.Cursor != "" {
		n, err := strconv.Atoi(p.Cursor)
		if err != nil || n < 0 || n > len(s.tools) {
			return nil, rpcError(codeInvalidParams, "Invalid cursor %q", p.Cursor)
		}
		first = n
	}
	last := len(s.tools)
	if s.o.page > 0 {
		last = min(last, first+s.o.page)
	}
	definitions := []object{}
	for _, t := range s.tools[first:last] {
		definitions = append(definitions, t.definition)
	}
	result := s.cacheable(object{"tools": definitions})
	if last < len(s.tools) {
		result["nextCursor"] = strconv.Itoa(last)
	}
	return result, nil
}

// cacheable adds the members of lists in the modern era; it requires mu.
func (s *server) cacheable(result object) object {
	if s.session.Era == "modern" {
		result["ttlMs"], result["cacheScope"] = 0, "private"
	}
	return result
}

func (s *server) callTool(c *call) (any, error) {
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := param(c.Params, &p); err != nil {
		return nil, err
	}
	s.mu.Lock()
	i := slices.IndexFunc(s.tools, func(t tool) bool { return t.name() == p.Name })
	var t tool
	if i >= 0 {
		t = s.tools[i]
	}
	s.mu.Unlock()
	if i < 0 || s.o.noTools {
		return nil, rpcError(codeInvalidParams, "Unknown tool: %s", p.Name)
	}
	args := arguments{raw: p.Arguments}
	if err := param(p.Arguments, &args); err != nil {
		return nil, err
	}
	dies := args.Die != "" || args.DieOnce != ""
	if dies && args.DieOnce != "" {
		dies = createdFile(args.DieOnce)
	}
	if dies && args.Die == "before" {
		s.crash(c)
	}
	result, err := t.run(s, c, args)
	if dies {
		s.crash(c)
	}
	return delayed(c, args, result, err)
}

// delayed delays the answer of a finished call, and turns it into a tool error if the arguments say so.
func delayed(c *call, args arguments, result any, err error) (any, error) {
	if args.Fail && err == nil {
		result = toolError("failed as asked")
	}
	if args.MS <= 0 || c.later != nil {
		return result, err
	}
	c.later = func(ctx context.Context) (any, error) {
		return result, wait(ctx, err, time.Duration(args.MS)*time.Millisecond)
	}
	return nil, nil
}

// wait returns err after d, or earlier the context's error.
func wait(ctx context.Context, err error, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
