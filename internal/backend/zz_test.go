package backend
import ("testing";"strings";"time")
func TestZ(t *testing.T){
 b,w:=readyBackend(); _=b
 w.client(`{"jsonrpc":"2.0","id":5,"method":"x"}`)
 s:=time.Now()
 w.server("{"); w.server(`"jsonrpc":"2.0","id":5,"result":{"a":[`)
 for i:=0;i<20000;i++ { w.server(`{"k":1,"text":"`+strings.Repeat("a",20)+`"`); w.server(`},`) }
 w.server(`0]}`); w.server(`}`)
 t.Log(time.Since(s), b.calls.inFlight)
}
func TestProbeLost(t *testing.T){
 w:=newWorld(Options{})
 w.failNext=errNoFile
 w.b.Open(w.now)
 w.client(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`)
 w.tick(5*time.Second)
 t.Log(w.takeServer(), w.takeClient(), w.b.probe)
 w.tick(20*time.Second)
 t.Log(w.takeServer(), w.takeClient(), w.b.probe)
}
