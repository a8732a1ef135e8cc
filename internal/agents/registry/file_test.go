package registry

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/testing/hostpath"
	_ "github.com/outlive-mcp/outlive/internal/testing/tier" // fixes the seed of rapid
)

var night = time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC)

func edited(t *testing.T, before string, change func(*Document) error) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "registry.yaml")
	if before != "" {
		if err := os.WriteFile(path, []byte(before), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Edit(path, Options{Home: hostpath.Abs("/home/you")}, night, change); err != nil {
		t.Fatal(err)
	}
	return readFile(t, path)
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var small = hostpath.InText(`version: 2   # of the format
updated: 2026-11-20T02:00:00Z

agents:

  # The shop.
  # It never sleeps.
  shop:
    path: /home/you/shop   # here
    kind: claude
    x-odd: [kept]

    expect:
      beat: 2m

  # The docs.
  docs: {path: /home/you/docs, kind: codex}

  last:
    kind: command
    start:
      cmd:
        - run
        - |
          two
          lines
# the end
`, "/home/you")

// An edit changes the lines that it is about, and no others.
func TestEditKeepsTheRest(t *testing.T) {
	for _, tc := range []struct {
		name       string
		change     func(*Document) error
		gone, come []string // lines, except for updated
	}{
		{"pause", func(d *Document) error { return d.Set("shop", true, "paused") }, nil, []string{"    paused: true"}},
		{"pause in braces", func(d *Document) error { return d.Set("docs", true, "paused") },
			[]string{"  docs: {path: /home/you/docs, kind: codex}"}, []string{"  docs: {path: /home/you/docs, kind: codex, paused: true}"}},
		{"path", func(d *Document) error { return d.Set("shop", hostpath.InText("/srv/shop", "/srv"), "path") },
			[]string{"    path: /home/you/shop   # here"}, []string{"    path: /srv/shop   # here"}},
		{"path in braces", func(d *Document) error { return d.Set("docs", hostpath.InText("/srv/a: b", "/srv"), "path") },
			[]string{"  docs: {path: /home/you/docs, kind: codex}"}, []string{"  docs: {path: '/srv/a: b', kind: codex}"}},
		{"duration", func(d *Document) error { return d.Set("shop", 90*time.Second, "expect", "beat") },
			[]string{"      beat: 2m"}, []string{"      beat: 1m30s"}},
		{"new group", func(d *Document) error {
			return d.Set("shop", perPhase2, "budget", "per_class", "crashed")
		},
			nil, []string{"    budget:", "      per_class:", "        crashed: 2/phase"}},
		{"list", func(d *Document) error { return d.Set("shop", []string{"heartbeat", "process"}, "signals") }, nil, []string{"    signals: [heartbeat, process]"}},
		{"add", func(d *Document) error {
			return d.Add("new", agentcli.Gemini, hostpath.InText("/home/you/new", "/home"))
		}, nil, []string{"  new:", "    path: /home/you/new", "    kind: gemini"}},
		{"remove", func(d *Document) error { return d.Remove("docs") }, []string{"  # The docs.", "  docs: {path: /home/you/docs, kind: codex}", ""}, nil},
		{"remove the first", func(d *Document) error { return d.Remove("shop") }, strings.Split("  # The shop.\n  # It never sleeps.\n  shop:\n    path: /home/you/shop   # here\n    kind: claude\n    x-odd: [kept]\n    expect:\n      beat: 2m\n\n", "\n"), nil},
		{"remove the last", func(d *Document) error { return d.Remove("last") },
			strings.Split("  last:\n    kind: command\n    start:\n      cmd:\n        - run\n        - |\n          two\n          lines", "\n"), nil},
		{"take a key away", func(d *Document) error { return d.Set("shop", nil, "expect", "beat") }, []string{"      beat: 2m"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := edited(t, small, tc.change)
			want := strings.Replace(small, "2026-11-20T", "2026-11-21T", 1)
			for i := range tc.gone {
				tc.gone[i] = hostpath.InText(tc.gone[i], "/home/you", "/srv")
			}
			for i := range tc.come {
				tc.come[i] = hostpath.InText(tc.come[i], "/home/you", "/srv")
			}
			if gone, come := lineDiff(want, got); !cmp.Equal(gone, tc.gone) || !cmp.Equal(come, tc.come) {
				t.Errorf("gone %q, want %q\ncome %q, want %q\n%s", gone, tc.gone, come, tc.come, got)
			}
		})
	}
}

// lineDiff returns the lines that are only in one of the two texts, in order.
func lineDiff(a, b string) (gone, come []string) {
	count := map[string]int{}
	for line := range strings.Lines(b) {
		count[line]++
	}
	for line := range strings.Lines(a) {
		if count[line]--; count[line] < 0 {
			gone = append(gone, strings.TrimSuffix(line, "\n"))
		}
	}
	clear(count)
	for line := range strings.Lines(a) {
		count[line]++
	}
	for line := range strings.Lines(b) {
		if count[line]--; count[line] < 0 {
			come = append(come, strings.TrimSuffix(line, "\n"))
		}
	}
	return gone, come
}

func TestFirstAgent(t *testing.T) {
	add := func(d *Document) error {
		if err := d.Add("shop", agentcli.Claude, hostpath.InText("/home/you/shop", "/home")); err != nil {
			return err
		}
		return d.Set("shop", []string{"claude", "-p", "go on"}, "start", "cmd")
	}
	agent := hostpath.InText("agents:\n  shop:\n    path: /home/you/shop\n    kind: claude\n    start:\n      cmd: [claude, -p, go on]\n", "/home/you")
	for _, tc := range []struct{ name, before, want string }{
		{"no file", "", "version: 2\nupdated: 2026-11-21T02:00:00Z\n" + agent},
		{"comments only", "# mine\n", "# mine\nversion: 2\nupdated: 2026-11-21T02:00:00Z\n" + agent},
		{"nothing below agents", "version: 2\nagents: # none yet\n", "version: 2\nupdated: 2026-11-21T02:00:00Z\n" + strings.Replace(agent, "agents:", "agents: # none yet", 1)},
		{"Windows lines", "version: 2\r\nagents:\r\n", strings.ReplaceAll("version: 2\nupdated: 2026-11-21T02:00:00Z\n"+agent, "\n", "\r\n")},
		{"PIV's names", "version: 2\nlastUpdated: 2026-11-20T02:00:00Z\nprojects: {}\n", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := edited(t, tc.before, add)
			if tc.want == "" {
				if r := parse(t, got); len(r.Agents) != 1 || len(r.Warnings) > 0 {
					t.Errorf("got %s", got)
				}
			} else if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What cannot be done leaves the file as it is, byte for byte.
func TestEditRefuses(t *testing.T) {
	pause := func(d *Document) error { return d.Set("shop", true, "paused") }
	for _, tc := range []struct {
		name, text, want string
		is               error
		change           func(*Document) error
	}{
		{"broken YAML", "version: 2\nagents: {shop: [", "has mistakes: nothing was written", nil, pause},
		{"mistake", "version: 2\nagents: {shop: {kind: x, path: /a}}", "nothing was written", nil, pause},
		{"PIV's", "projects: {shop: {path: /a}}\n", "version 1", ErrForeign, pause},
		{"empty", "", "it is empty", nil, pause},
		{"unknown agent", small, "no such agent", ErrUnknown, func(d *Document) error { return d.Set("shoop", true, "paused") }},
		{"remove unknown", small, "no such agent", ErrUnknown, func(d *Document) error { return d.Remove("shoop") }},
		{"add twice", small, "is declared already", ErrExists, func(d *Document) error { return d.Add("shop", agentcli.Claude, hostpath.Abs("/a")) }},
		{"bad name", small, "is not an agent name", nil, func(d *Document) error { return d.Add("../x", agentcli.Claude, hostpath.Abs("/a")) }},
		{"bad value", small, "change would leave a registry with mistakes", nil, func(d *Document) error { return d.Set("shop", "soon", "expect", "beat") }},
		{"into an alias", "version: 2\nx-e: &e {beat: 1m}\nagents: {shop: {kind: acp, path: " + hostpath.InText("/a", "/a") + ", expect: *e}}\n", "is an alias", nil,
			func(d *Document) error { return d.Set("shop", time.Minute, "expect", "tool") }},
		{"strange value", small, "a registry cannot hold a struct {}", nil, func(d *Document) error { return d.Set("shop", struct{}{}, "x-y") }},
		{"no change", small, "", nil, func(*Document) error { return nil }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "registry.yaml")
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Edit(path, Options{}, night, tc.change)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) || tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if got := readFile(t, path); got != tc.text {
				t.Errorf("the file is %q now", got)
			}
			if _, err := os.Stat(path + BackupSuffix); err == nil {
				t.Error("there is a copy of what was not written")
			}
		})
	}
}

// After a mistake in an editor the last good copy still has the previous content, including a pause.
func TestLastGoodCopy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.yaml")
	if err := os.WriteFile(path, []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Edit(path, Options{}, night, func(d *Document) error { return d.Set("shop", true, "paused") }); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("version: 2\nagents: {"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Edit(path, Options{}, night, func(*Document) error { return nil }); err == nil {
		t.Fatal("an edit of a registry with mistakes")
	}
	r, err := Read(path+BackupSuffix, Options{})
	if err != nil || len(r.Agents) != 3 {
		t.Fatalf("%v, %v", r, err)
	}
	if a, ok := r.Agent("shop"); !ok || !a.Paused {
		t.Errorf("the pause is forgotten: %+v", a)
	}
}

// Many writers at once lose nothing, and no reader ever sees half a file.
func TestManyWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.yaml")
	if err := os.WriteFile(path, []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	const writers = 8
	var group sync.WaitGroup
	stop := make(chan struct{})
	readerDone := make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				readerDone <- nil
				return
			default:
				if r, err := Read(path, Options{}); err != nil || len(r.Agents) < 3 {
					readerDone <- fmt.Errorf("a reader saw %v, %w", r, err)
					return
				}
			}
		}
	}()
	for w := range writers {
		group.Go(func() {
			_, err := Edit(path, Options{}, night, func(d *Document) error {
				return d.Add(fmt.Sprintf("agent-%d", w), agentcli.Codex, hostpath.Abs("/tmp/x"))
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	close(stop)
	if err := <-readerDone; err != nil {
		t.Error(err)
	}
	if r, err := Read(path, Options{}); err != nil || len(r.Agents) != 3+writers {
		t.Errorf("%d agents, %v", len(r.Agents), err)
	}
}

// An editor that saves while an edit is under way is not overwritten: the edit is done again on the new text.
func TestEditorInBetween(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.yaml")
	if err := os.WriteFile(path, []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	times := 0
	_, err := Edit(path, Options{}, night, func(d *Document) error {
		if times++; times == 1 {
			if err := os.WriteFile(path, []byte(strings.Replace(small, "x-odd: [kept]", "x-odd: [by the editor]", 1)), 0o600); err != nil {
				return err
			}
		}
		return d.Set("shop", true, "paused")
	})
	if text := readFile(t, path); err != nil || times != 2 || !strings.Contains(text, "by the editor") || !strings.Contains(text, "paused: true") {
		t.Errorf("%d times, %v:\n%s", times, err, text)
	}
}

func TestBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.yaml")
	lock := flock.New(path + lockSuffix)
	if ok, err := lock.TryLock(); !ok {
		t.Fatal(err)
	}
	defer lock.Close()
	released := time.AfterFunc(50*time.Millisecond, func() { _ = lock.Unlock() })
	defer released.Stop()
	if _, err := Edit(path, Options{}, night, func(d *Document) error { return d.Add("a", Command, "") }); err != nil {
		t.Errorf("an edit waits for the one before it: %v", err)
	}
}

// For any registry, an edit has its effect, keeps every other agent and every comment, and can be undone.
func TestEditModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := randomRegistry(rt)
		before, err := Parse("r", []byte(text), Options{})
		if err != nil {
			rt.Fatalf("%v\n%s", err, text)
		}
		name := before.Agents[rapid.IntRange(0, len(before.Agents)-1).Draw(rt, "agent")].Name
		d, err := newDocument([]byte(text))
		if err != nil {
			rt.Fatalf("%v\n%s", err, text)
		}
		var want func(*Agent)
		switch rapid.IntRange(0, 3).Draw(rt, "edit") {
		case 0:
			err, want = d.Set(name, true, "paused"), func(a *Agent) { a.Paused = true }
		case 1:
			err, want = d.Set(name, 7*time.Minute, "expect", "tool"), func(a *Agent) { a.Expect.Tool = 7 * time.Minute }
		case 2:
			err, want = d.Set(name, hostpath.Abs("/new path # x"), "path"), func(a *Agent) { a.Path = hostpath.Abs("/new path # x") }
		case 3:
			err, want = d.Remove(name), nil
		}
		if err != nil {
			rt.Fatalf("%v\n%s", err, text)
		}
		made, err := d.doc.Text()
		if err != nil {
			rt.Fatalf("%v\n%s", err, text)
		}
		after, err := Parse("r", made, Options{})
		if err != nil {
			rt.Fatalf("%v\nbefore:\n%s\nafter:\n%s", err, text, made)
		}
		var wanted []Agent
		for _, a := range before.Agents {
			if a.Name == name && want == nil {
				continue
			}
			if a.Name == name {
				want(&a)
			}
			wanted = append(wanted, a)
		}
		ignorePos := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Pos" }, cmp.Ignore())
		if diff := cmp.Diff(wanted, after.Agents, ignorePos); diff != "" {
			rt.Fatalf("%s\nbefore:\n%s\nafter:\n%s", diff, text, made)
		}
		if want != nil && strings.Count(string(made), "#c") != strings.Count(text, "#c") {
			rt.Fatalf("a comment is lost:\n%s\n%s", text, made)
		}
	})
}

// randomRegistry writes agents in the ways that people do.
func randomRegistry(rt *rapid.T) string {
	flip := func(label string) bool { return rapid.Bool().Draw(rt, label) }
	var b strings.Builder
	b.WriteString("version: 2\n")
	indent := rapid.SampledFrom([]string{"  ", "    "}).Draw(rt, "indent")
	b.WriteString("agents:")
	if flip("comment") {
		b.WriteString(" #c")
	}
	b.WriteString("\n")
	for i := range rapid.IntRange(1, 4).Draw(rt, "agents") {
		if flip("blank") {
			b.WriteString("\n")
		}
		if flip("above") {
			fmt.Fprintf(&b, "%s#c above\n", indent)
		}
		if flip("braces") {
			fmt.Fprintf(&b, "%sa%d: {kind: acp, path: %q, paused: false} #c\n", indent, i, hostpath.Abs(fmt.Sprint("/p", i)))
			continue
		}
		fmt.Fprintf(&b, "%sa%d:\n", indent, i)
		members := []string{"path: " + hostpath.Abs(fmt.Sprint("/p", i)), "kind: acp", "expect:\n" + indent + "  beat: 1m #c", "x-list:\n- one\n- two", "x-text: |\n  # not a comment\n  text", "x-flow: [1,\n  2]"}
		for _, m := range rapid.Permutation(members).Draw(rt, "members")[:] {
			for line := range strings.Lines(m) {
				fmt.Fprintf(&b, "%s%s%s\n", indent, indent, strings.TrimSuffix(line, "\n"))
			}
			if flip("comment below") {
				fmt.Fprintf(&b, "%s%s#c below\n", indent, indent)
			}
		}
	}
	if flip("end") {
		b.WriteString("#c end\nlisten: 127.0.0.1:1\n")
	}
	return b.String()
}
