package restart

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Tool is one of the tools that outlive offers beside the server's own, by its usual name.
type Tool string

// The injected tools.
const (
	RestartServer   Tool = "restart_server"          // RT-1
	VerifyRestarted Tool = "verify_server_restarted" // RT-5
	ServerStatus    Tool = "server_status"
)

// Tools returns the tools in the order in which they are listed.
func Tools() []Tool { return []Tool{RestartServer, VerifyRestarted, ServerStatus} }

// The rest of each tool after its name: the descriptions and input schemas.
var toolBodies = map[Tool]string{
	RestartServer: `"description":"Restart MCP server to reload code changes.\n\n` +
		`Exits current server process (code 42) and supervisor spawns new instance.\n` +
		`VS Code connection remains stable (no re-initialization needed).\n\n` +
		`Use after modifying server code to load changes in autonomous TDD workflow.",` +
		`"inputSchema":{"type":"object","properties":{"reason":{"type":"string",` +
		`"description":"Reason for restart (for audit logging)"}},"required":["reason"]},` +
		`"annotations":{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}`,
	VerifyRestarted: `"description":"Verify server restart occurred after specified timestamp.\n\n` +
		`Checks restart marker written by restart_server tool. Returns success if\n` +
		`restart occurred after given timestamp, error otherwise.\n\n` +
		`Use after restart_server + wait period to confirm restart completed.",` +
		`"inputSchema":{"type":"object","properties":{"since_timestamp":{"type":"string",` +
		`"description":"ISO 8601 timestamp - verify restart occurred after this time"}},"required":["since_timestamp"]},` +
		`"annotations":{"readOnlyHint":true,"openWorldHint":false}}`,
	ServerStatus: `"description":"Show how the MCP server behind this connection is doing.\n\n` +
		`Tells whether it is running, starting or down, its process id, how often and why it was\n` +
		`restarted, how it last ended and what it last wrote to stderr. Works while it is down.\n\n` +
		`Use when calls fail, before deciding to call restart_server.",` +
		`"inputSchema":{"type":"object","properties":{},"additionalProperties":false},` +
		`"annotations":{"readOnlyHint":true,"openWorldHint":false}}`,
}

// ToolJSON returns the tool as an element of a tools/list result, under the name given: its own, or another one when
// the server has a tool of that name.
func ToolJSON(tool Tool, name string) []byte {
	quoted, _ := json.Marshal(name) // every string can be marshalled
	out := append([]byte(`{"name":`), quoted...)
	return append(append(out, ','), toolBodies[tool]...)
}

// ScheduledText is the answer to restart_server (RT-1).
func ScheduledText(reason string) string {
	return "Server restart scheduled (reason: " + reason + "). Server will exit with code 42 in 500ms, " +
		"supervisor will spawn new instance."
}

// Proof is what is known about the process that the marker promises.
type Proof struct {
	Ready  bool   // a process started after the marker was written has answered its handshake
	Detail string // if not: how things stand, for people
}

// VerifyText is the answer to verify_server_restarted (RT-5): marker and markerErr are what [ReadMarker] returned
// for path, since is what the caller asked about. Beyond RT-5, a marker alone proves nothing: without proof that the new
// process answered, the restart is not verified.
func VerifyText(marker MarkerRecord, markerErr error, path string, since time.Time, proof Proof) (answer string, isError bool) {
	switch {
	case errors.Is(markerErr, ErrNoMarker):
		return "❌ No restart marker found at " + path + ". No recent restarts detected.", true
	case errors.Is(markerErr, ErrMarkerSchema):
		return "❌ Invalid restart marker schema. Required fields: " + pythonList(requiredFields[:]), true
	case markerErr != nil:
		return "❌ Failed to read restart marker: " + markerErr.Error(), true
	case !marker.Timestamp.After(since):
		return "❌ No recent restart detected since " + isoFormat(since) + ". Last restart: " + isoFormat(marker.Timestamp), true
	case !proof.Ready:
		return notComplete(marker, proof.Detail), true
	case marker.ExitCode != RestartExitCode:
		return fmt.Sprintf("⚠️ Restart occurred but with unexpected exit code: %d (expected %d)", marker.ExitCode, RestartExitCode), false
	}
	return "✅ Server restart verified: occurred at " + isoFormat(marker.Timestamp) + " (reason: " + marker.Reason + ")", false
}

func notComplete(marker MarkerRecord, detail string) string {
	text := "❌ Server restart not complete: requested at " + isoFormat(marker.Timestamp) + " (reason: " + marker.Reason +
		"), but the new server has not answered yet"
	if detail == "" {
		return text + "."
	}
	return text + ": " + detail
}

// pythonList is Python's repr of a list of plain names.
func pythonList(names []string) string { return "['" + strings.Join(names, "', '") + "']" }
