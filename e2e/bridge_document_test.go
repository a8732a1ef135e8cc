package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// documentPath is the document that TestBridge writes and compares, all but the sections of TestFaults and TestOddServers.
func documentPath() string {
	return filepath.Join(filepath.Dir(tools.root), "docs", "COMPATIBILITY.md")
}

// document compares docs/COMPATIBILITY.md with what has just been seen, or writes it (E2E_WRITE_COMPATIBILITY=1). It
// has no times in it and nothing of this machine, so that every run must come to the same text.
func (b *board) document(t *testing.T) {
	if len(b.cells) < len(allCells()) {
		t.Skipf("%d of %d pairs were tried, and the document is about all of them", len(b.cells), len(allCells()))
	}
	text := readDocument(t)
	_, clients, _ := cutSection(t, text, clientsHeading) // TestFaults keeps it
	_, odd, _ := cutSection(t, text, oddHeading)         // a hunt writes it
	compareDocument(t, text, b.render(t, clients+odd), "TestBridge")
}

func readDocument(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(documentPath())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// cutSection cuts a text at a heading of the second level, and at the next one.
func cutSection(t *testing.T, text, heading string) (before, section, after string) {
	t.Helper()
	at := strings.Index(text, "\n"+heading+"\n")
	if at < 0 {
		t.Fatalf("docs/COMPATIBILITY.md has no %q", heading)
	}
	before, section = text[:at], text[at:]
	if end := strings.Index(section[1:], "\n## "); end >= 0 {
		section, after = section[:end+1], section[end+1:]
	}
	return before, section, after
}

// writesDocument reports whether docs/COMPATIBILITY.md is to be written with what is seen, in place of being compared.
func writesDocument() bool { return os.Getenv("E2E_WRITE_COMPATIBILITY") == "1" }

// compareDocument compares the document with what a test has seen, or writes that down.
func compareDocument(t *testing.T, text, now, test string) {
	t.Helper()
	if writesDocument() {
		if err := os.WriteFile(documentPath(), []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	said, seen := strings.Split(text, "\n"), strings.Split(now, "\n")
	for i := range max(len(said), len(seen)) {
		if line(said, i) != line(seen, i) {
			t.Errorf("line %d of docs/COMPATIBILITY.md:\nit says  %s\nthe run says  %s", i+1, line(said, i), line(seen, i))
		}
	}
	if t.Failed() {
		t.Logf("OUTLIVE_TIER=full E2E_WRITE_COMPATIBILITY=1 e2e/run.sh -run %s writes it anew", test)
	}
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

const introduction = `# Compatibility

Which MCP clients work with which MCP servers behind outlive. The Model Context Protocol has two eras: *legacy* versions
open with an ` + "`initialize`" + ` handshake (2024-11-05 to 2025-11-25), *modern* ones carry version and capabilities in every request
(2026-07-28). Where both sides have an era in common, outlive passes it through; where they do not, it translates
(` + "`--bridge auto`" + `, the default).

This file is written by the tests that it reports, and a run of them fails when it is out of date:

    OUTLIVE_TIER=full E2E_WRITE_COMPATIBILITY=1 e2e/run.sh -run 'TestBridge|TestFaults'

What is said of odd servers a hunt writes: ` + "`.ci/hunt odd`" + `.

Contents: [AI clients](#ai-clients) · [Odd servers](#odd-servers) · [Eras](#eras) · [Pairs](#pairs) · [Trials](#trials) ·
[Limits](#limits) · [Conformance across eras](#conformance-across-eras) · [Versions](#versions)
`

const limits = `
## Limits

What one era has and the other has no place for, between a client and a server that outlive translates for:

- **Tasks** are offered in neither direction. A tool that runs as a task only is not shown.
- **Questions of a legacy server** name no call. With several calls in flight, one that can carry the question does.
  After its first question calls go one at a time; the client's answer waits for the call before it for 25 s at most.
- **A call that waits for an answer** lives in a legacy server's process. If that dies, the call's outcome is unknown, and says so.
- **Progress** of such a call cannot be told while it waits, because no request of the client is in flight then: the last of it
  is told when the call goes on.
- **Log levels** of a legacy server hold for its whole connection: whoever has a call in flight and asked for the level gets them.
- **Over HTTP** clients of 2026-07-28 share a legacy server, whose questions and log messages name neither a call nor a client.
  A question goes to a client only when no other call can have asked it. While several calls could have, it is held until all but
  one have ended, for 30 s, and then refused; for 2 s if the others are calls that were withdrawn. When as many questions wait as
  calls, the latest one is refused at once. Calls of tools that have asked before go one at a time: each waits until the one before has
  ended, or asked its client, for 25 s at most. So this concerns the first question of a tool, and questions beside calls of other tools.
- **What a shared legacy server says of a call** that it has answered already cannot be told from what it says of the only one it
  works on. Nor can what it says of one that was withdrawn, if it goes on with that all the same and answers neither: for 30 s it is
  reckoned with, for 10 min if its tool has asked before, for 2 s if all other calls there are by the same client name, and not at all
  if that client was authenticated. Nor can what a tool asks while its client is still answering what it asked before, unless both came
  within 100 ms.
- **A shared legacy server** is told that its clients can be asked anything, because one handshake speaks for all. What a client
  cannot be asked is refused when it is asked, with -32601.
- **Log messages of a shared legacy server** come while one call alone is in flight there, and asks for them.
- **Log messages of a modern server over HTTP** come while one request alone asks for them: a message names no request.
- **A server that comes back in the other era** is translated from then on, if it refuses the old handshake with an error. One that
  dies of ` + "`server/discover`" + `, or says nothing to it, keeps failing for a client of 2026-07-28 until that connects anew.
- **A resource that does not exist** is -32602 for a legacy client too, because a modern server tells it no other way.
`

func (b *board) render(t *testing.T, kept string) string {
	t.Helper()
	var out strings.Builder
	out.WriteString(introduction)
	out.WriteString(kept)
	b.renderEras(&out)
	b.renderPairs(&out)
	b.renderTrials(&out)
	out.WriteString(limits)
	renderConformance(&out)
	renderVersions(t, &out)
	return out.String()
}

// row writes one line of a table.
func row(out *strings.Builder, cells ...string) {
	fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
}

// writeItem writes one item of a list, in lines of 140 characters at most.
func writeItem(out *strings.Builder, mark, text string) {
	line := mark
	for n, word := range strings.Fields(text) {
		switch {
		case n == 0:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > 140:
			out.WriteString(line + "\n")
			line = strings.Repeat(" ", len(mark)) + word
		default:
			line += " " + word
		}
	}
	out.WriteString(line + "\n")
}

func header(out *strings.Builder, titles ...string) {
	row(out, titles...)
	row(out, slices.Repeat([]string{"---"}, len(titles))...)
}

// eraRows are the specification's compatibility matrix, then the two combinations that it does not list.
var eraRows = []struct{ client, server, alone string }{
	{"modern", "modern", "works"},
	{"modern", "legacy", "fails"},
	{"dual", "modern", "works"},
	{"dual", "legacy", "works; the probe fails or times out first"},
	{"legacy", "modern", "fails"},
	{"legacy", "dual", "works"},
	{"legacy", "legacy", "works"},
	{"modern", "dual", "not listed"},
	{"dual", "dual", "not listed"},
}

func (b *board) renderEras(out *strings.Builder) {
	fmt.Fprint(out, "\n## Eras\n\nThe [compatibility matrix](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning#compatibility-matrix) of the\n"+
		"specification, what it expects without outlive, and what became of it behind outlive in every pair below.\n\n")
	header(out, "Client", "Server", "Specification", "Behind outlive", "Pairs, each over both transports")
	for _, r := range eraRows {
		var pairs, how []string
		for _, c := range allCells() {
			if c.client.era != r.client || c.server.era != r.server {
				continue
			}
			if pair := c.client.key + "×" + c.server.key; !slices.Contains(pairs, pair) {
				pairs = append(pairs, pair)
			}
			if word := b.cells[c.name()].word(c); !slices.Contains(how, word) {
				how = append(how, word)
			}
		}
		slices.Sort(how)
		row(out, r.client, r.server, r.alone, strings.Join(how, ", "), strings.Join(pairs, ", "))
	}
}

// word is a cell in one word.
func (o outcome) word(c cell) string {
	switch {
	case len(o.failed()) > 0:
		return "fails"
	case o.bridged(c):
		return "bridged"
	}
	return "native"
}

// failed are the trials that were made and not passed.
func (o outcome) failed() []string {
	return slices.DeleteFunc(trialNames(), func(name string) bool { return o.passed[name] })
}

// tell is a cell in full.
func (o outcome) tell(c cell) string {
	if failed := o.failed(); len(failed) > 0 {
		return "**fails**: " + strings.Join(failed, ", ")
	}
	return fmt.Sprintf("%s, %s: %d", o.version, o.word(c), len(o.passed))
}

func (b *board) renderPairs(out *strings.Builder) {
	fmt.Fprintf(out, "\n## Pairs\n\n*native*: both speak the same era. *bridged*: outlive translates. Where the two transports differ, `outlive run` comes first.\n\n")
	titles := []string{"Client ＼ Server"}
	for _, s := range castServers {
		titles = append(titles, s.title)
	}
	header(out, titles...)
	for _, c := range castClients {
		line := []string{c.title}
		for _, s := range castServers {
			run, http := b.both(c, s, outcome.word)
			if run != http {
				run += " / " + http
			}
			line = append(line, run)
		}
		row(out, line...)
	}
	fmt.Fprintf(out, "\nEach pair in full: the version that the client was told, and how many of the %d [trials](#trials) were passed. The last column\n"+
		"names the test in [e2e/bridge_matrix_test.go](../e2e/bridge_matrix_test.go), here for `outlive run`; over HTTP it is `TestBridge/http/…`.\n\n", len(trialNames()))
	header(out, "Client", "Server", lanes[0].title, lanes[1].title, "Test")
	for _, c := range castClients {
		for _, s := range castServers {
			run, http := b.both(c, s, outcome.tell)
			row(out, c.title, s.title, run, http, "`TestBridge/run/"+c.key+"×"+s.key+"`")
		}
	}
}

// both says something of a pair over each transport.
func (b *board) both(client, server part, say func(outcome, cell) string) (run, http string) {
	of := func(lane string) string {
		c := cell{lane, client, server}
		return say(b.cells[c.name()], c)
	}
	return of("run"), of("http")
}

func (b *board) renderTrials(out *strings.Builder) {
	fmt.Fprintf(out, "\n## Trials\n\nOn one connection, which takes less than %v to come about, in this order:\n\n", connectLimit)
	for i, trial := range trialsOf(cell{}, nil) {
		writeItem(out, fmt.Sprintf("%d. ", i+1), fmt.Sprintf("**%s**: %s", trial.name, trial.means))
	}
}

func renderConformance(out *strings.Builder) {
	fmt.Fprint(out, "\n## Conformance across eras\n\nThe official conformance suite, as a client of one revision, over HTTP against `outlive gateway` with a server of the other era\n"+
		"only ([e2e/bridge_conformance_test.go](../e2e/bridge_conformance_test.go)). Without a bridge nothing of it works.\n\n")
	header(out, "Suite", "Server", "Required scenarios passed", "Test")
	for _, r := range bridgedRevisions {
		row(out, r.revision, r.era+" only", fmt.Sprintf("%d of %d", r.required-len(r.beyond), r.required), "`TestBridgeConformance/"+r.name()+"`")
	}
	for _, r := range bridgedRevisions {
		if len(r.beyond) == 0 {
			continue
		}
		fmt.Fprintf(out, "\nWhat a suite of %s does not get from a server of the %s era:\n\n", r.revision, r.era)
		for _, name := range slices.Sorted(maps.Keys(r.beyond)) {
			writeItem(out, "- ", fmt.Sprintf("`%s`: %s", name, r.beyond[name]))
		}
	}
}

func renderVersions(t *testing.T, out *strings.Builder) {
	t.Helper()
	fmt.Fprint(out, "\n## Versions\n\n")
	header(out, "Program", "Version")
	row(out, "Go SDK, `github.com/modelcontextprotocol/go-sdk`", pinned(t, "go.mod", "\tgithub.com/modelcontextprotocol/go-sdk "))
	for _, p := range [][2]string{
		{"TypeScript SDK 1.x", "sdk"}, {"TypeScript SDK 2.x", "client"}, {"TypeScript SDK 2.x", "server"}, {"server-everything", "server-everything"},
	} {
		row(out, p[0]+", `@modelcontextprotocol/"+p[1]+"`", packaged(t, "node_modules/@modelcontextprotocol/"+p[1]))
	}
	for _, kind := range []string{"claude", "codex"} {
		row(out, agentTitles[kind]+", `"+agentPackages[kind]+"`", packaged(t, "node_modules/"+agentPackages[kind]))
	}
	row(out, "Python SDK, `mcp`", pinned(t, "requirements.txt", "mcp=="))
	row(out, "Conformance suite, `@modelcontextprotocol/conformance`", packaged(t, "conformance/node_modules/@modelcontextprotocol/conformance"))
}

// pinned is the rest of the line of a file that begins with a prefix.
func pinned(t *testing.T, file, prefix string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tools.root, file))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if version, ok := strings.CutPrefix(line, prefix); ok {
			return strings.TrimPrefix(strings.TrimSpace(version), "v")
		}
	}
	t.Fatalf("%s has no line %q", file, prefix)
	return ""
}

// packaged is the version of an installed npm package.
func packaged(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tools.root, dir, "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	var p struct{ Version string }
	if err := json.Unmarshal(text, &p); err != nil || p.Version == "" {
		t.Fatalf("%s names no version: %v", dir, err)
	}
	return p.Version
}
