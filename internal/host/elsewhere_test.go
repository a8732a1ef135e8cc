package host

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/outlive-mcp/outlive/internal/backend"
	"github.com/outlive-mcp/outlive/internal/remote"
)

// far is an MCP server of the legacy era behind HTTP. It forgets its sessions when it is told to.
type far struct {
	age   atomic.Int32 // how often it has begun anew
	greet atomic.Int32 // handshakes it has had
	calls atomic.Int32
}

func (f *far) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m struct {
		ID     json.RawMessage
		Method string
	}
	_ = json.Unmarshal(body, &m)
	session := fmt.Sprint("life-", f.age.Load())
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case m.Method == "initialize":
		f.greet.Add(1)
		w.Header().Set("Mcp-Session-Id", session)
	case r.Header.Get("Mcp-Session-Id") != session:
		w.WriteHeader(http.StatusNotFound)
		return
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result := `{"tools":[{"name":"add","inputSchema":{"type":"object"}}]}`
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"far","version":"1"}}`
	case "tools/call":
		result = fmt.Sprintf(`{"content":[{"type":"text","text":"call %d"}]}`, f.calls.Add(1))
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// A server elsewhere that forgets its session is one that has crashed: it is greeted anew, and the client notices nothing.
func TestASessionThatIsLostIsBegunAnew(t *testing.T) {
	f := &far{}
	server := httptest.NewServer(f)
	defer server.Close()
	k := keep(t, Options{
		Remote:  &remote.Options{URL: server.URL},
		Backend: backend.Options{Name: "far", Command: []string{server.URL}, NoTools: true, Elsewhere: true},
	})
	k.greet(`"name":"far"`)
	k.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add"}}`, "call 1")
	for life := range int32(3) {
		f.age.Store(life + 1)
		k.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"add"}}`, 10+life), fmt.Sprint("call ", life+2))
	}
	if got := f.greet.Load(); got != 4 {
		t.Errorf("%d handshakes instead of 4", got)
	}
	k.end()
}
