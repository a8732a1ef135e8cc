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
