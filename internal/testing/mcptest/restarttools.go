package mcptest

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// markerFile is the file in the current directory in which the restart tools leave their record.
const markerFile = ".mcp_restart_marker"

// restartTools are the two tools of RT-1 and RT-5, as implemented by a server that was written for a supervisor.
func restartTools() []tool {
	return []tool{
		{define("restart_server", "Restart MCP server to reload code changes.", nil), (*server).restartServer},
		{define("verify_server_restarted", "Verify server restart occurred after specified timestamp.", nil), (*server).verifyRestarted},
	}
}

type markerRecord struct {
	Timestamp string `json:"timestamp"`
	Reason    string `json:"reason"`
	ExitCode  int    `json:"exit_code"`
	Method    string `json:"method"`
}

// restartServer is RT-1: marker file, answer, then exit 42 after -restart-delay.
func (s *server) restartServer(c *call, a arguments) (any, error) {
	const code = 42
	record, err := json.MarshalIndent(markerRecord{
		Timestamp: time.Now().UTC().Format("2006-01-02T15:04:05.000000-07:00"),
		Reason:    a.Reason, ExitCode: code, Method: "sys.exit(42) → supervisor restart",
	}, "", "  ")
	if err == nil {
		err = os.WriteFile(markerFile, record, 0o600)
	}
	if err != nil {
		return toolError(err.Error()), nil
	}
	c.after = func() { time.AfterFunc(s.o.restartDelay, func() { s.exit(code) }) }
	return text(fmt.Sprintf("Server restart scheduled (reason: %s). Server will exit with code 42 in %dms, "+
		"supervisor will spawn new instance.", a.Reason, s.o.restartDelay.Milliseconds())), nil
}

// verifyRestarted is RT-5.
func (s *server) verifyRestarted(_ *call, a arguments) (any, error) {
	since, err := time.Parse(time.RFC3339Nano, a.Since)
	if err != nil {
		return toolError("❌ Invalid since_timestamp: " + err.Error()), nil
	}
	b, err := os.ReadFile(markerFile)
	if err != nil {
		return toolError("❌ No restart marker found at " + markerFile + ". No recent restarts detected."), nil
	}
	var m markerRecord
	if err := json.Unmarshal(b, &m); err != nil {
		return toolError("❌ Failed to read restart marker: " + err.Error()), nil
	}
	at, err := time.Parse(time.RFC3339Nano, m.Timestamp)
	if err != nil || at.Before(since) {
		return toolError("❌ No recent restart detected since " + a.Since), nil
	}
	return text(fmt.Sprintf("✅ Server restart verified: occurred at %s (reason: %s)", m.Timestamp, m.Reason)), nil
}
