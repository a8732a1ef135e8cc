package cli

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// What a gateway's connections of a legacy and of a modern client learn of one command at the same time is all known to the next run.
func TestConnectionsKeepWhatOthersHaveLearned(t *testing.T) {
	path := filepath.Join(t.TempDir(), "known", "one.json")
	keep := keepKnowledge(path, func(err error) { t.Error(err) })
	lists := func(era mcp.Era, n int) backend.Knowledge {
		k := backend.Knowledge{Lists: map[string][]byte{}, ListedBy: map[string][]string{}}
		for l := range n {
			key := fmt.Sprint(era, " ", mcp.List(l))
			k.Lists[key], k.ListedBy[key] = []byte("{}"), []string{era.String()}
		}
		return k
	}
	var both sync.WaitGroup
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		both.Go(func() {
			for n := range int(mcp.Lists) {
				keep(lists(era, n), lists(era, n+1))
			}
		})
	}
	both.Wait()
	known := loadKnowledge(path)
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		for l := range mcp.Lists {
			if key := fmt.Sprint(era, " ", l); string(known.Lists[key]) != "{}" || len(known.ListedBy[key]) != 1 {
				t.Errorf("%s are not known: %s %q", key, known.Lists[key], known.ListedBy[key])
			}
		}
	}
}

// Two servers that are configured with one command or URL, and different variables or headers, may have different tools: what one has
// shown is not answered for the other. A token that is renewed makes no other server.
func TestKnowledgeIsOfWhatIsConfigured(t *testing.T) {
	file := func(given map[string]string) string {
		return knowledgeFile([]string{"https://mcp.example/mcp"}, "", "/", given)
	}
	all, some := file(map[string]string{"X-MCP-Toolsets": "all"}), file(map[string]string{"X-MCP-Toolsets": "repos"})
	if all == some || all == file(nil) {
		t.Error("servers with different headers share what they have shown")
	}
	if file(nil) != file(map[string]string{"Authorization": "Bearer a"}) {
		t.Error("a token makes another server")
	}
}
