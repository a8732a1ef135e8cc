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
		if value, ok := headerOf(arguments, p); ok {
			h.Set("Mcp-Param-"+p.Header, headerValue(value))
		}
	}
}

// headerValue encodes a value for a header: as it is, or in Base64 between marks. An empty header is none to many servers.
func headerValue(s string) string {
	const mark, end = "=?base64?", "?="
	plain := s != "" && s == strings.Trim(s, " \t") && !(strings.HasPrefix(s, mark) && strings.HasSuffix(s, end))
	if plain && !strings.ContainsFunc(s, func(r rune) bool { return (r < ' ' || r > '~') && r != '\t' }) {
		return s
	}
	return mark + base64.StdEncoding.EncodeToString([]byte(s)) + end
}

// toolHeaders has, for each tool, the arguments that are repeated in headers.
type toolHeaders map[string][]mcp.ParamHeader

// headerOf is the text of an argument in its header; false: the header is left out.
func headerOf(arguments []byte, p mcp.ParamHeader) (string, bool) {
	raw := jsonrpc.FindPath(arguments, p.Path...).Of(arguments)
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

// learn reads a raw tools/list result. It returns the result without the tools whose marks break the rules, and the
// reasons, as the protocol demands.
func (t *toolHeaders) learn(result []byte) (kept []byte, dropped []string) {
	if *t == nil {
		*t = toolHeaders{}
	}
	marked := bytes.Contains(result, []byte(mcp.HeaderMark)) || bytes.Contains(result, []byte(`\u`)) // or written with escapes
	if !marked && len(*t) == 0 {
		return result, nil
	}
	list := jsonrpc.Find(result, "tools")
	tools := list.Of(result)
	left := []byte{'['}
	for span := range jsonrpc.Elements(tools) {
		tool := span.Of(tools)
		name, _ := jsonrpc.Unquote(jsonrpc.Find(tool, "name").Of(tool))
		headers, err := mcp.ParamHeaders(jsonrpc.Find(tool, "inputSchema").Of(tool))
		delete(*t, name)
		if err != nil {
			dropped = append(dropped, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		if len(headers) > 0 {
			(*t)[name] = headers
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
