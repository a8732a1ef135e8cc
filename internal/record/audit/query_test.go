package audit

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/itchyny/gojq"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

// The programs are those that people run on the proxy's log (TP-10), unchanged.
func TestQueriesOfTheProxy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp_audit.log")
	l := open(t, path, func(err error) { t.Error(err) })
	n := 0
	emit := func(typ event.Type, attrs ...slog.Attr) {
		n++
		l.Emit(event.Event{Type: typ, Time: at, Message: string(typ), ServerPID: 1000 + n, Attrs: attrs})
	}
	emit(event.ProxyStarted)
	emit(event.ServerSpawned)
	emit(event.ServerReady, slog.Int(event.KeyStartupMS, 850))
	emit(event.RestartMarkerDetected)
	emit(event.RestartCompleted, slog.Int(event.KeyRestartMS, 200))
	emit(event.ValidationBlocked, slog.String(event.KeyRawLine, `{"id":1,"x":"\ud83d"}`))
	emit(event.RestartCompleted, slog.Int(event.KeyRestartMS, 100))
	emit(event.ProxyStopped, slog.Int(event.KeyExitCode, 0))
	closed(t, l)

	var lines []any
	for _, m := range readLines(t, path) {
		lines = append(lines, m)
	}
	types := func(results []any) []any {
		var all []any
		for _, r := range results {
			all = append(all, r.(map[string]any)["event_type"])
		}
		return all
	}
	tests := []struct {
		program string
		slurp   bool // jq -s
		pick    func([]any) []any
		want    []any
	}{
		{`select(.event_type == "restart_completed")`, false, types, []any{"restart_completed", "restart_completed"}},
		{`map(select(.event_type == "restart_completed").restart_duration_ms) | add / length`, true, nil, []any{150.0}},
		{`select(.event_type == "validation_blocked")`, false, types, []any{"validation_blocked"}},
		{`select(.event_type == "restart_marker_detected")`, false, types, []any{"restart_marker_detected"}},
		{`select(.event_type == "restart_completed") | .restart_duration_ms`, false, nil, []any{200.0, 100.0}},
		{`select(.event_type == "validation_blocked") | .raw_line`, false, nil, []any{`{"id":1,"x":"\ud83d"}`}},
		{`.`, false, func(r []any) []any { return []any{len(r)} }, []any{8}},
		{`map(select(.event_type == "restart_completed")) | length`, true, nil, []any{2}},
	}
	for _, tt := range tests {
		t.Run(tt.program, func(t *testing.T) {
			got := jq(t, tt.program, tt.slurp, lines)
			if tt.pick != nil {
				got = tt.pick(got)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func jq(t *testing.T, program string, slurp bool, lines []any) []any {
	t.Helper()
	query, err := gojq.Parse(program)
	if err != nil {
		t.Fatal(err)
	}
	inputs := lines
	if slurp {
		inputs = []any{lines}
	}
	var all []any
	for _, in := range inputs {
		for it := query.Run(in); ; {
			v, ok := it.Next()
			if !ok {
				break
			}
			if err, bad := v.(error); bad {
				t.Fatal(err)
			}
			all = append(all, v)
		}
	}
	return all
}
