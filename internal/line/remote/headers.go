package remote

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// describe sets the headers that mirror a stateless message (2026-07-28, "Request Metadata").
func (c *Connection) describe(h http.Header, m *message) {
	if m.version == "" {
		if m.method == mcp.Initialize { // a new session, whatever the era before
			h.Del(headerVersion)
			h.Del(headerSession)
		}
		return
	}
	h.Set(headerVersion, m.version)
	h.Del(headerSession)
	h.Set("Mcp-Method", m.name)
	switch m.method {
	case mcp.ToolsCall, mcp.PromptsGet, mcp.ResourcesRead:
		h.Set("Mcp-Name", headerValue(m.subject))
	}
	if m.method != mcp.ToolsCall {
		return
	}
	c.mu.Lock()
	params := c.session.tools[m.subject]
	c.mu.Unlock()
	arguments := jsonrpc.FindPath(m.line, "params", "arguments").Of(m.line)
	for _, p := range params {
		if value, ok := p.value(arguments); ok {
			h.Set("Mcp-Param-"+p.name, headerValue(value))
		}
	}
}

// headerValue encodes a value for a header: as it is, or in Base64 between marks.
func headerValue(s string) string {
	const mark, end = "=?base64?", "?="
	plain := s == strings.Trim(s, " \t") && !(strings.HasPrefix(s, mark) && strings.HasSuffix(s, end))
	for i := 0; plain && i < len(s); i++ {
		plain = s[i] >= ' ' && s[i] <= '~' || s[i] == '\t'
	}
	if plain {
		return s
	}
	return mark + base64.StdEncoding.EncodeToString([]byte(s)) + end
}

// toolHeaders has, for each tool, the arguments that are repeated in headers.
type toolHeaders map[string][]paramHeader

// paramHeader is one argument marked with x-mcp-header.
type paramHeader struct {
	name string   // of the header, without Mcp-Param-
	path []string // to the argument
}

// value is the header's value; false: the header is left out.
func (p paramHeader) value(arguments []byte) (string, bool) {
	raw := jsonrpc.FindPath(arguments, p.path...).Of(arguments)
	switch {
	case raw == nil, jsonrpc.IsNull(raw), jsonrpc.IsObject(raw), jsonrpc.IsArray(raw):
		return "", false
	case jsonrpc.IsString(raw):
		return jsonrpc.Unquote(raw)
	}
	if f, err := strconv.ParseFloat(string(raw), 64); err == nil && bytes.ContainsAny(raw, ".eE") && f == float64(int64(f)) {
		return strconv.FormatInt(int64(f), 10), true
	}
	return string(raw), true
}

// markKey is the schema member that marks an argument for a header.
const markKey = "x-mcp-header"

// learn reads a raw tools/list result. It returns the result without the tools whose marks break the rules, and the
// reasons, as the protocol demands.
func (t *toolHeaders) learn(result []byte) (kept []byte, dropped []string) {
	if *t == nil {
		*t = toolHeaders{}
	}
	marked := bytes.Contains(result, []byte(markKey)) || bytes.Contains(result, []byte(`\u`)) // or written with escapes
	if !marked && len(*t) == 0 {
		return result, nil
	}
	list := jsonrpc.Find(result, "tools")
	tools := list.Of(result)
	left := []byte{'['}
	for span := range jsonrpc.Elements(tools) {
		tool := span.Of(tools)
		name, _ := jsonrpc.Unquote(jsonrpc.Find(tool, "name").Of(tool))
		var w markWalk
		w.schema(jsonrpc.Find(tool, "inputSchema").Of(tool), nil, true)
		if w.fault != "" {
			delete(*t, name)
			dropped = append(dropped, fmt.Sprintf("%s: %s", name, w.fault))
			continue
		}
		if delete(*t, name); len(w.found) > 0 {
			(*t)[name] = w.found
		}
		if len(left) > 1 {
			left = append(left, ',')
		}
		left = append(left, tool...)
	}
	if len(dropped) == 0 {
		return result, nil
	}
	return jsonrpc.Replace(nil, result, list, append(left, ']')), dropped
}

// markWalk looks for marks in a schema.
type markWalk struct {
	found []paramHeader
	fault string // the first broken rule
	depth int
}

// deepest is the depth to which marks are looked for; no real argument is that deep.
const deepest = 64

// schema examines one schema. path leads to its argument; reachable says that only "properties" led to it.
func (w *markWalk) schema(schema []byte, path []string, reachable bool) {
	if w.depth++; w.depth <= deepest && w.fault == "" {
		for k, v := range jsonrpc.Members(schema) {
			key, _ := jsonrpc.Unquote(k.Of(schema))
			value := v.Of(schema)
			switch key {
			case markKey:
				w.mark(schema, value, path, reachable)
			case "properties":
				for name, sub := range jsonrpc.Members(value) {
					property, _ := jsonrpc.Unquote(name.Of(value))
					w.schema(sub.Of(value), append(path[:len(path):len(path)], property), reachable)
				}
			case "default", "const", "enum", "examples": // data, not schemas
			default:
				w.elsewhere(value)
			}
		}
	}
	w.depth--
}

// elsewhere examines what is not a property: a mark there breaks the rules.
func (w *markWalk) elsewhere(value []byte) {
	switch {
	case jsonrpc.IsObject(value):
		w.schema(value, nil, false)
	case jsonrpc.IsArray(value):
		for sub := range jsonrpc.Elements(value) {
			if jsonrpc.IsObject(sub.Of(value)) {
				w.schema(sub.Of(value), nil, false)
			}
		}
	}
}

// mark records one mark.
func (w *markWalk) mark(schema, raw []byte, path []string, reachable bool) {
	name, ok := jsonrpc.Unquote(raw)
	kind, _ := jsonrpc.Unquote(jsonrpc.Find(schema, "type").Of(schema))
	switch {
	case !reachable || len(path) == 0:
		w.fault = markKey + " is not at a property that is reached through properties alone"
	case !ok || !isToken(name):
		w.fault = fmt.Sprintf("%s %s is not a header name", markKey, excerpt(raw))
	case kind != "string" && kind != "integer" && kind != "boolean":
		w.fault = fmt.Sprintf("%s %q is at a property that is not a string, integer or boolean", markKey, name)
	}
	for _, other := range w.found {
		if strings.EqualFold(other.name, name) {
			w.fault = fmt.Sprintf("%s %q stands there twice", markKey, name)
		}
	}
	w.found = append(w.found, paramHeader{name: name, path: path})
}

// isToken reports whether s is a field name (RFC 9110, 5.1).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if !(c >= 'a' && c <= 'z' && s[i] >= 'A' || s[i] >= '0' && s[i] <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", s[i]) >= 0) {
			return false
		}
	}
	return s != ""
}

// maxPages is how many pages of a tools list are read to learn a tool's headers.
const maxPages = 50

// relist reads the tools again for a call whose headers were refused, and reports whether another try is useful.
func (c *Connection) relist(m *message) bool {
	m.relisted = true
	meta := jsonrpc.FindPath(m.line, "params", "_meta").Of(m.line)
	var cursor []byte
	seen := map[string]bool{}
	for range maxPages {
		id := c.owned.next()
		var answer []byte
		own := newMessage(m.ctx, mcp.ListLine(id, mcp.Tools, cursor, meta))
		own.quiet = func(line []byte) { answer = line }
		o := c.post(own)
		c.release(own)
		if !o.answered {
			return false
		}
		cursor = mcp.NextCursor(jsonrpc.Find(answer, "result").Of(answer))
		if cursor == nil || seen[string(cursor)] {
			return true
		}
		seen[string(cursor)] = true
	}
	return true
}
