package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

// audit reads the session's audit log; a line that is not a JSON object fails the test. What is written just now may be there in part.
func (w *workspace) audit(t *testing.T) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(w.path("audit.log"))
	if err != nil {
		t.Fatalf("audit log: %v", err)
	}
	var events []map[string]any
	for line := range bytes.Lines(data[:bytes.LastIndexByte(data, '\n')+1]) {
		var e map[string]any
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("audit line %q: %v", line, err)
		}
		events = append(events, e)
	}
	return events
}
