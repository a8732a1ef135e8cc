package backend

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/outlive-mcp/outlive/internal/keep/backoff"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// TestDialogues replays the conversations of testdata/dialogue. Each file is a txtar archive whose comment says what
// is shown and whose file "dialogue" has one step a line:
//
//	C> line      the client sends          S> line   the server sends
//	C>NAME line  the client of this name sends, one of many that share the server
//	C< line      the client has got next   S< line   the server has got next
//	C<~ text     … a line that contains    S<~ text  … a line that contains
//	S<* text     the server has got a subscriptions/listen that contains text; what outlive asks before and behind it on its
//	             own behalf is answered, with an empty list and with an empty DiscoverResult
//	N< line      a line of the server's stdout that was handed on to stderr
//	! word …     something happens: exit CODE, unread N, installs, installed, tick DURATION, restart, marker, eof, interrupt, stderr LINE,
//	             as GENERATION, busy WHY (there must be no upgrade now), upgrade
//	= acts       what was done to processes since the last such line
//	# comment
//
// STATE in a line of the client stands for the requestState that it was given last, OWN for the raw id of the question of outlive's
// own that the server got last.
//
// Whatever either side got must have been expected when the next thing happens, and at the end. After each step no message is left
// between the client and its bridge: the next event may be far off, and its own messages would come too late.
func TestDialogues(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/dialogue/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dialogues: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range archive.Files {
				d := dialogue{t: t, name: f.Name, principals: map[string]string{}}
				o := dialogueOptions(t, f.Name)
				o.Whose = func(id []byte) Whose { return Whose{Principal: d.principals[string(id)]} }
				d.w = newWorld(o)
				d.w.b.Open(d.w.now)
				for i, line := range strings.Split(string(f.Data), "\n") {
					d.line = i + 1
					d.step(strings.TrimRight(line, " "))
				}
				d.quiet()
			}
		})
	}
}

// dialogueOptions reads the settings out of a file's name: "dialogue", "dialogue no-tools", …
func dialogueOptions(t *testing.T, name string) Options {
	t.Helper()
	o := Options{CallPatience: tenMinutes}
	for _, word := range strings.Fields(name)[1:] {
		switch word {
		case "no-tools":
			o.NoTools = true
		case "replace-surrogates":
			o.Surrogates = ReplaceSurrogates
		case "pass-surrogates":
			o.Surrogates = PassSurrogates
		case "replace":
			o.Reload = ReplaceReload
		case "remembers":
			o.Known = Knowledge{Era: mcp.Legacy, Asked: AskedDigest([]byte(`{"protocolVersion":"2025-11-25"}`)),
				Initialize: []byte(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}`),
				Lists:      map[string][]byte{"legacy tools": []byte(`{"tools":[{"name":"a"}]}`)}}
		case "repeats":
			o.Replays = []Replay{{Tool: "login"}, {Tool: "open", Arguments: []byte(`{"profile":"x"}`)}}
		case "idle":
			o.IdleFor, o.Health.Off = time.Minute, true
		case "call-timeout":
			o.Health.CallTimeout = 30 * time.Second
		case "health-off":
			o.Health.Off = true
		case "call-patience":
			o.CallPatience = 45 * time.Second
		case "impatient":
			o.CallPatience = 0
		case "lazy":
			o.Lazy = true
		case "standby":
			o.Supervise.Standby = 1
		case "standbys":
			o.Supervise.Standby = 2
		case "lost-as-error":
			o.LostAsError = true
		case "shared":
			o.Shared = true
		case "npx":
			o.Name, o.Command = "srv", []string{"npx", "-y", "srv"}
		case "start-timeout":
			o.Supervise.StartTimeout = 2 * time.Second
		case "slow-backoff":
			o.Supervise.Backoff = backoff.Policy{Tiers: []backoff.Tier{{Delay: 30 * time.Second}}}
		case "bridge-off":
			o.NoBridge = true
		case "known-modern-only":
			o.Known = Knowledge{Era: mcp.Modern, NoInitialize: true,
				Discover: []byte(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)}
		case "known-no-listen":
			o.Known = Knowledge{Era: mcp.Modern, Listen: ListenSilent,
				Discover: []byte(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)}
		case "remote":
			o.Remote, o.Elsewhere = true, true
		case "known-legacy":
			o.Known = Knowledge{Era: mcp.Legacy}
		case "known-modern":
			o.Known = Knowledge{Era: mcp.Modern,
				Discover: []byte(`{"resultType":"complete","ttlMs":5000,"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)}
		default:
			t.Fatalf("unknown setting %q", word)
		}
	}
	return o
}

type dialogue struct {
	own   string // raw id of the last question of outlive's own that the server got
	state string // the requestState that the client was given last
	t     *testing.T
	name  string
	line  int
	w     *fakeWorld

	principals map[string]string // of the clients' requests, by raw id
}

func (d *dialogue) step(line string) {
	d.t.Helper()
	mark, rest, _ := strings.Cut(line, " ")
	if name, named := strings.CutPrefix(mark, "C>"); named {
		mark = "C>"
		d.principals[string(jsonrpc.Find([]byte(rest), "id").Of([]byte(rest)))] = name
	}
	switch mark {
	case "", "#":
	case "C>":
		d.w.client(strings.ReplaceAll(unescape(rest), "STATE", d.state))
	case "S>":
		d.w.server(strings.ReplaceAll(unescape(rest), "OWN", d.own))
	case "C<", "C<~":
		d.expect("client", &d.w.toClient, rest, mark == "C<~")
	case "S<", "S<~":
		d.expect("server", &d.w.toServer, rest, mark == "S<~")
	case "S<*":
		d.opensStream(rest)
	case "N<":
		d.expect("stderr", &d.w.noise, rest, false)
	case "!":
		d.quiet()
		d.happen(strings.Fields(rest))
	case "=":
		if got := d.w.takeActs(); got != rest {
			d.fail("acts: got %q, want %q", got, rest)
		}
	default:
		d.fail("unknown step %q", line)
	}
	if left := d.w.leftover(); left != "" && slices.Contains([]string{"C>", "S>", "!"}, mark) {
		d.fail("left for the next event: %s", left)
	}
}

// ownID is the id of a line if it is one of outlive's, else "".
func ownID(line string) string {
	message := []byte(line[max(0, strings.IndexByte(line, '{')):]) // behind whose it is
	if id := jsonrpc.Find(message, "id").Of(message); ours(id) {
		return string(id)
	}
	return ""
}

// opensStream expects a stream to be asked for, and answers outlive's own questions around it.
func (d *dialogue) opensStream(want string) {
	d.t.Helper()
	answer := func(method, result string) bool {
		i := slices.IndexFunc(d.w.toServer, func(line string) bool {
			return ownID(line) != "" && strings.Contains(line, method)
		})
		if i < 0 {
			return false
		}
		id := ownID(d.w.toServer[i])
		d.w.toServer = slices.Delete(d.w.toServer, i, i+1)
		d.w.server(`{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`)
		return true
	}
	asked := func() bool { return strings.Contains(strings.Join(d.w.toServer, "\n"), `"subscriptions/listen"`) }
	const offer = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
	for !asked() && (answer("server/discover", offer) || answer("/list", `{"resultType":"complete","tools":[]}`)) {
	}
	i := slices.IndexFunc(d.w.toServer, func(line string) bool { return strings.Contains(line, `"subscriptions/listen"`) })
	if i < 0 || !strings.Contains(d.w.toServer[i], want) {
		d.fail("server got %q, want a stream with %s", d.w.toServer, want)
		return
	}
	d.w.toServer = slices.Delete(d.w.toServer, i, i+1)
	answer("server/discover", offer)
}

// unescape lets a dialogue write raw bytes as \xNN, which JSON itself does not know.
func unescape(s string) string {
	for {
		i := strings.Index(s, `\x`)
		if i < 0 || i+4 > len(s) {
			return s
		}
		n, err := strconv.ParseUint(s[i+2:i+4], 16, 8)
		if err != nil {
			return s
		}
		s = s[:i] + string([]byte{byte(n)}) + s[i+4:]
	}
}

func (d *dialogue) happen(words []string) {
	d.t.Helper()
	number := func() int {
		n, err := strconv.Atoi(words[1])
		if err != nil {
			d.fail("%v", err)
		}
		return n
	}
	switch words[0] {
	case "exit":
		d.w.exit(number())
	case "unread":
		d.w.unread = number()
	case "installs", "installed":
		d.w.installs = words[0] == "installs"
	case "backlog":
		d.w.backlog = number()
	case "tick":
		dur, err := time.ParseDuration(words[1])
		if err != nil {
			d.fail("%v", err)
		}
		d.w.tick(dur)
	case "restart":
		d.w.b.Restart(d.w.now, supervise.SourceControl, "asked")
	case "busy":
		if why := d.w.b.Busy(); !strings.Contains(why, words[1]) || why == "" {
			d.fail("busy: %q", why)
		}
	case "upgrade":
		d.w.upgrade(d.t)
	case "marker":
		d.w.b.MarkerSeen(d.w.now, d.w.gen)
	case "eof":
		d.w.b.ClientClosed(d.w.now)
	case "interrupt":
		d.w.b.Interrupted(d.w.now)
	case "drained":
		d.w.backlog = 0
		d.w.b.Drained(d.w.now, d.w.gen)
	case "as": // lines and happenings are about another process from here on
		d.w.gen = number()
	case "stderr":
		d.w.stderr = append(d.w.stderr, strings.Join(words[1:], " "))
	case "spawn-fails":
		d.w.failNext = errNoFile
	case "oversize":
		d.w.b.ServerOversize(d.w.now, d.w.gen, []byte(strings.Join(words[2:], " ")), []byte(strings.Join(words[2:], " ")), int64(number()))
	case "client-oversize":
		d.w.b.ClientOversize(d.w.now, []byte(strings.Join(words[2:], " ")), []byte(strings.Join(words[2:], " ")), int64(number()))
	default:
		d.fail("unknown happening %q", words[0])
	}
}

func (d *dialogue) expect(who string, got *[]string, want string, contains bool) {
	d.t.Helper()
	if len(*got) == 0 {
		d.fail("%s got nothing, want %s", who, want)
		return
	}
	first := (*got)[0]
	if _, after, found := strings.Cut(first, `"requestState":"`); found && who == "client" {
		d.state, _, _ = strings.Cut(after, `"`)
	}
	*got = (*got)[1:]
	whole := first
	if own := ownID(first); own != "" && who == "server" {
		if d.own = own; strings.Contains(want, `"id":OWN`) {
			first = strings.Replace(first, d.own, "OWN", 1)
		}
	}
	if first == want || contains && strings.Contains(first, want) {
		return
	}
	d.fail("%s got\n  %s\nwant\n  %s", who, whole, want)
}

// quiet fails if anybody got something that no step expected.
func (d *dialogue) quiet() {
	d.t.Helper()
	if got := d.w.takeClient(); len(got) > 0 {
		d.fail("client got unexpectedly:\n  %s", strings.Join(got, "\n  "))
	}
	if got := d.w.takeServer(); len(got) > 0 {
		d.fail("server got unexpectedly:\n  %s", strings.Join(got, "\n  "))
	}
}

func (d *dialogue) fail(format string, args ...any) {
	d.t.Helper()
	d.t.Fatalf("%s line %d: %s", d.name, d.line, fmt.Sprintf(format, args...))
}
