package cli

import (
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/monitor"
)

// The incident of a server is acknowledged by the name that is shown for it; the error says that ids work.
func TestAckTakesTheNameOfAServer(t *testing.T) {
	view := monitor.View{Incidents: []incident.Incident{
		{ID: "ab12", Key: incident.Key{Agent: "server:broken/nocmd:", Class: "server_failed"}},
		{ID: "cd34", Key: incident.Key{Agent: "server:crashing:shop", Class: "server_paused"}},
	}}
	for name, want := range map[string]string{"broken/nocmd": "ab12", "server:broken/nocmd:": "ab12", "crashing": "cd34", "cd": "cd34"} {
		if got, err := incidentsMeant(monitor.Options{}, view, name); err != nil || len(got) != 1 || got[0].ID != want {
			t.Errorf("%s: got %+v, %v, want %s", name, got, err, want)
		}
	}
	if _, err := incidentsMeant(monitor.Options{}, view, "nocmd2"); err == nil || !strings.Contains(err.Error(), "give an id, or a name") {
		t.Errorf("an unknown name: %v", err)
	}
}
