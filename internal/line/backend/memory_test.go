package backend

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// remembering is a world for one era, whose server is at one version.
type remembering struct {
	*fakeWorld
	t       *testing.T
	era     mcp.Era
	version string
}

func newRemembering(t *testing.T, era mcp.Era, version string, known Knowledge) *remembering {
	r := &remembering{newWorld(Options{Known: known, NoTools: true}), t, era, version}
	r.b.Open(r.now)
	return r
}

// begins has the client call a tool as soon as it can.
func (r *remembering) begins(tool string) {
	r.t.Helper()
	r.greets()
	r.calls(tool)
}

// calls has the client call a tool. The server has the call afterwards, and has shown no tools.
func (r *remembering) calls(tool string) {
	r.t.Helper()
	r.answersHandshake()
	if r.era == mcp.Legacy {
		r.client(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	r.client(`{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"` + tool + `",` + modernMeta + `}}`)
	r.answersHandshake()
	if !slices.ContainsFunc(r.takeServer(), func(line string) bool { return strings.Contains(line, `"id":"call"`) }) {
		r.t.Fatal("the server has not got the call")
	}
}

// greets has the client begin.
func (r *remembering) greets() {
	if r.era == mcp.Legacy {
		r.client(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	} else {
		r.client(`{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{` + modernMeta + `}}`)
	}
}

// lists has the client begin and read the tools, and reports whether it gets them from memory.
func (r *remembering) lists() bool {
	r.greets()
	r.takeClient()
	r.client(`{"jsonrpc":"2.0","id":"list","method":"tools/list","params":{` + modernMeta + `}}`)
	return strings.Contains(strings.Join(r.takeClient(), "\n"), `"echo"`)
}

// answersHandshake answers the server's handshake, if it was asked for one.
func (r *remembering) answersHandshake() {
	at := slices.IndexFunc(r.toServer, func(line string) bool {
		return strings.Contains(line, `"initialize"`) || strings.Contains(line, `"server/discover"`)
	})
	if at < 0 {
		return
	}
	_, id, _ := strings.Cut(r.toServer[at], `"id":`)
	id, _, _ = strings.Cut(id, ",")
	r.toServer = slices.Delete(r.toServer, at, at+1)
	result := `"protocolVersion":"2025-11-25"`
	if r.era == mcp.Modern {
		result = `"resultType":"complete","supportedVersions":["` + mcp.ModernVersion + `"]`
	}
	r.server(`{"jsonrpc":"2.0","id":` + id + `,"result":{` + result + `,"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"` + r.version + `"}}}`)
}

// learns has the server show its one tool with a hint, and returns what is known of it then.
func (r *remembering) learns(hint string) Knowledge {
	r.t.Helper()
	r.server(`{"jsonrpc":"2.0","id":"call","result":{"content":[]}}`)
	r.client(`{"jsonrpc":"2.0","id":"list","method":"tools/list","params":{` + modernMeta + `}}`)
	r.server(fmt.Sprintf(`{"jsonrpc":"2.0","id":"list","result":{"tools":[{"name":"echo","annotations":{%q:true}}]}}`, hint))
	if len(r.learned) == 0 {
		r.t.Fatal("nothing was learned")
	}
	return r.learned[len(r.learned)-1]
}

// repeats reports whether the call is sent again when the server dies.
func (r *remembering) repeats() bool {
	r.t.Helper()
	r.takeClient()
	r.exit(137)
	lost := slices.ContainsFunc(r.takeClient(), func(line string) bool { return strings.Contains(line, "was NOT repeated") })
	if lost == (r.b.calls.find([]byte(`"call"`)) != nil) {
		r.t.Fatalf("answered: %v, and still open: %v", lost, !lost)
	}
	return !lost
}

// The first server of a process of outlive may die before it has been asked for its tools: what earlier processes have learned
// of them holds then, too, if it is the same server by its handshake.
func TestRememberedHints(t *testing.T) {
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		t.Run(era.String(), func(t *testing.T) {
			first := newRemembering(t, era, "1", Knowledge{})
			first.begins("echo")
			known := first.learns("readOnlyHint")

			unknown := newRemembering(t, era, "1", Knowledge{})
			unknown.begins("echo")
			if unknown.repeats() {
				t.Error("a tool of which nothing is known is called twice")
			}
			same := newRemembering(t, era, "1", known)
			same.begins("echo")
			if !same.repeats() {
				t.Error("a read-only tool is not called again, though the server is as it was")
			}
			read := newRemembering(t, era, "1", known)
			if !read.lists() {
				t.Fatal("the list does not come from memory")
			}
			read.calls("echo")
			if !read.repeats() {
				t.Error("a tool is not called again of which its client has read in memory that it is read-only")
			}
			other := newRemembering(t, era, "1", known)
			other.begins("write")
			if other.repeats() {
				t.Error("a tool that was not shown is called twice")
			}
			newer := newRemembering(t, era, "2", known)
			newer.begins("echo")
			if newer.repeats() {
				t.Error("what another version has shown counts")
			}

			// A newer version that dies before it shows its tools leaves the older one's list, which is not its own.
			again := newRemembering(t, era, "2", newer.b.memory.known)
			again.begins("echo")
			if again.repeats() {
				t.Error("the list of an earlier version counts as the newer one's")
			}

			changed := newRemembering(t, era, "1", known)
			changed.begins("echo")
			now := changed.learns("destructiveHint")
			changed.client(`{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"echo",` + modernMeta + `}}`)
			if changed.repeats() {
				t.Error("what was remembered counts although the server shows something else")
			}
			writes := newRemembering(t, era, "1", now)
			writes.begins("echo")
			if writes.repeats() {
				t.Error("an older list is remembered than the one shown last")
			}

			// What the handshake says may depend on the client, so that the same server has several results.
			second := newRemembering(t, era, "1 for another client", known)
			second.begins("echo")
			both := second.learns("readOnlyHint")
			for _, version := range []string{"1", "1 for another client"} {
				s := newRemembering(t, era, version, both)
				s.begins("echo")
				if !s.repeats() {
					t.Errorf("version %s: a read-only tool is not called again, though this server has shown it", version)
				}
			}
			kept := both
			for n := range 2 * listedByMost {
				s := newRemembering(t, era, fmt.Sprint("1 for client ", n), kept)
				s.begins("echo")
				kept = s.learns("readOnlyHint")
			}
			for key, by := range kept.ListedBy {
				if len(by) != listedByMost {
					t.Errorf("%s: %d handshake results are remembered", key, len(by))
				}
			}
		})
	}
}

// A server is as the one before it, not as the one that its client began with: what a version in between has shown does not count.
func TestHintsOfAVersionInBetween(t *testing.T) {
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		t.Run(era.String(), func(t *testing.T) {
			r := newRemembering(t, era, "1", Knowledge{})
			r.begins("echo")
			r.learns("destructiveHint")
			r.exit(137)
			r.tick(time.Second)
			r.version = "2"
			r.calls("echo")
			r.learns("readOnlyHint")
			r.exit(137)
			r.tick(time.Second)
			r.version = "1"
			r.calls("echo")
			if r.repeats() {
				t.Error("a call of version 1 is repeated because version 2 has called its tool read-only")
			}
		})
	}
}

// A server is translated only if it certainly does not speak the client's era.
func TestTheOnlyEraOfAServer(t *testing.T) {
	for _, tc := range []struct {
		known Knowledge
		want  mcp.Era
	}{
		{Knowledge{}, mcp.EraUnknown},
		{Knowledge{Initialize: []byte("{}")}, mcp.EraUnknown},
		{Knowledge{Era: mcp.Legacy}, mcp.Legacy},
		{Knowledge{Era: mcp.Legacy, Initialize: []byte("{}")}, mcp.Legacy},
		{Knowledge{Era: mcp.Legacy, NoInitialize: true}, mcp.EraUnknown},
		{Knowledge{Era: mcp.Modern}, mcp.EraUnknown},
		{Knowledge{Era: mcp.Modern, Initialize: []byte("{}")}, mcp.EraUnknown},
		{Knowledge{Era: mcp.Modern, NoInitialize: true}, mcp.Modern},
		{Knowledge{NoInitialize: true}, mcp.EraUnknown},
	} {
		if got := tc.known.only(); got != tc.want {
			t.Errorf("only %v of %+v, want %v", got, tc.known, tc.want)
		}
	}
}

// What one process has learned is added to what others of the same command have stored since.
func TestKnowledgeOfSeveralProcesses(t *testing.T) {
	list := func(text string, by ...string) Knowledge {
		return Knowledge{Lists: map[string][]byte{"legacy tools": []byte(text)}, ListedBy: map[string][]string{"legacy tools": by}}
	}
	began := Knowledge{Asked: "a", Initialize: []byte("1")}
	for name, c := range map[string]struct{ stored, was, now, want Knowledge }{
		"the first":        {now: began, want: began},
		"another matter":   {stored: began, now: Knowledge{Era: mcp.Modern}, want: Knowledge{Era: mcp.Modern, Asked: "a", Initialize: []byte("1")}},
		"the same matter":  {stored: began, now: Knowledge{Asked: "b", Initialize: []byte("2")}, want: Knowledge{Asked: "b", Initialize: []byte("2")}},
		"taken back":       {stored: Knowledge{NoInitialize: true, Asked: "a"}, was: Knowledge{NoInitialize: true}, want: Knowledge{Asked: "a"}},
		"the same list":    {stored: list("l", "x"), now: list("l", "y"), want: list("l", "y", "x")},
		"another list":     {stored: list("l", "x"), now: list("m", "y"), want: list("m", "y")},
		"a list is gone":   {stored: list("l", "x"), was: list("l", "x"), want: Knowledge{Lists: map[string][]byte{}, ListedBy: map[string][]string{}}},
		"nothing of lists": {stored: list("l", "x"), was: list("m", "y"), now: list("m", "y"), want: list("l", "x")},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.stored.After(c.was, c.now)); diff != "" {
				t.Errorf("stored is (-want +got):\n%s", diff)
			}
		})
	}
}

// What a modern server says of itself is what the clients of later runs are told, not what it has said in its first run.
func TestAServerSaysSomethingElseOfItself(t *testing.T) {
	first := newRemembering(t, mcp.Modern, "1", Knowledge{})
	first.begins("echo")
	known := first.learns("readOnlyHint")
	second := newRemembering(t, mcp.Modern, "2", known)
	second.begins("echo")
	if len(second.learned) == 0 {
		t.Fatal("nothing was learned")
	}
	third := newRemembering(t, mcp.Modern, "2", second.learned[len(second.learned)-1])
	third.greets()
	if got := strings.Join(third.takeClient(), "\n"); !strings.Contains(got, `"version":"2"`) {
		t.Errorf("the client of the third run is told %s", got)
	}
	known = second.learned[len(second.learned)-1]
	slow := &remembering{newWorld(Options{Known: known, NoTools: true, NoFastStart: true}), t, mcp.Modern, "2"}
	slow.b.Open(slow.now)
	slow.greets()
	if got := slow.takeClient(); len(got) > 0 {
		t.Errorf("with --no-fast-start the client is told %q from memory", got)
	}
}
