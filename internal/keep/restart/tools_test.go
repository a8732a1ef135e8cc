package restart

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestToolsAreTheContracts(t *testing.T) {
	want := map[Tool]string{
		RestartServer: `{"type":"object","properties":{"reason":{"type":"string",
			"description":"Reason for restart (for audit logging)"}},"required":["reason"]}`,
		VerifyRestarted: `{"type":"object","properties":{"since_timestamp":{"type":"string",
			"description":"ISO 8601 timestamp - verify restart occurred after this time"}},"required":["since_timestamp"]}`,
		ServerStatus: `{"type":"object","properties":{},"additionalProperties":false}`,
	}
	hints := map[Tool]string{
		RestartServer:   `{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}`,
		VerifyRestarted: `{"readOnlyHint":true,"openWorldHint":false}`,
		ServerStatus:    `{"readOnlyHint":true,"openWorldHint":false}`,
	}
	decode := func(raw []byte) (v any) {
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		return v
	}
	if diff := cmp.Diff([]Tool{"restart_server", "verify_server_restarted", "server_status"}, Tools()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, tool := range Tools() {
		got := decode(ToolJSON(tool, `outlive_"`+string(tool))).(map[string]any)
		if got["name"] != `outlive_"`+string(tool) || got["description"] == "" {
			t.Errorf("%s: got %v", tool, got)
		}
		if diff := cmp.Diff(decode([]byte(want[tool])), got["inputSchema"]); diff != "" {
			t.Errorf("%s: schema (-want +got):\n%s", tool, diff)
		}
		if diff := cmp.Diff(decode([]byte(hints[tool])), got["annotations"]); diff != "" {
			t.Errorf("%s: annotations (-want +got):\n%s", tool, diff)
		}
	}
}

func TestScheduledText(t *testing.T) {
	const want = "Server restart scheduled (reason: Load new code). Server will exit with code 42 in 500ms, " +
		"supervisor will spawn new instance."
	if got := ScheduledText("Load new code"); got != want {
		t.Errorf("got %q", got)
	}
}

func TestVerifyText(t *testing.T) {
	since := time.Date(2026, 1, 13, 22, 30, 0, 0, time.UTC)
	marker := MarkerRecord{Timestamp: since.Add(5*time.Minute + 250*time.Millisecond), Reason: "new code", ExitCode: 42}
	other := marker
	other.ExitCode = 1
	same := marker
	same.Timestamp = since
	up := Proof{Ready: true, Detail: "not shown"}
	for name, c := range map[string]struct {
		marker  MarkerRecord
		err     error
		since   time.Time
		proof   Proof
		want    string
		isError bool
	}{
		"verified": {marker, nil, since, up,
			"✅ Server restart verified: occurred at 2026-01-13T22:35:00.250000+00:00 (reason: new code)", false},
		"absent": {MarkerRecord{}, fmt.Errorf("%w at p", ErrNoMarker), since, up,
			"❌ No restart marker found at /w/.mcp_restart_marker. No recent restarts detected.", true},
		"unreadable": {MarkerRecord{}, errors.New("permission denied"), since, up,
			"❌ Failed to read restart marker: permission denied", true},
		"schema": {MarkerRecord{}, fmt.Errorf("%w: x", ErrMarkerSchema), since, up,
			"❌ Invalid restart marker schema. Required fields: ['timestamp', 'reason', 'exit_code']", true},
		"older": {marker, nil, since.Add(time.Hour), up,
			"❌ No recent restart detected since 2026-01-13T23:30:00+00:00. Last restart: 2026-01-13T22:35:00.250000+00:00", true},
		"the same moment": {same, nil, since, up,
			"❌ No recent restart detected since 2026-01-13T22:30:00+00:00. Last restart: 2026-01-13T22:30:00+00:00", true},
		"the caller's zone": {same, nil, since.In(time.FixedZone("", 7200)), up,
			"❌ No recent restart detected since 2026-01-14T00:30:00+02:00. Last restart: 2026-01-13T22:30:00+00:00", true},
		"other code": {other, nil, since, up,
			"⚠️ Restart occurred but with unexpected exit code: 1 (expected 42)", false},
		"no answer yet": {marker, nil, since, Proof{Detail: "server is starting"},
			"❌ Server restart not complete: requested at 2026-01-13T22:35:00.250000+00:00 (reason: new code), " +
				"but the new server has not answered yet: server is starting", true},
		"no answer, nothing known": {other, nil, since, Proof{},
			"❌ Server restart not complete: requested at 2026-01-13T22:35:00.250000+00:00 (reason: new code), " +
				"but the new server has not answered yet.", true},
	} {
		t.Run(name, func(t *testing.T) {
			got, isError := VerifyText(c.marker, c.err, "/w/.mcp_restart_marker", c.since, c.proof)
			if diff := cmp.Diff(c.want, got); diff != "" || isError != c.isError {
				t.Errorf("error %v (-want +got):\n%s", isError, diff)
			}
		})
	}
}
