package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// recordings is where the recordings are written, "" when none are.
func recordings() string { return os.Getenv("E2E_RECORD") }

// save writes the recording of an agent that has ended into E2E_RECORD/<kind>/<name>: timeline.jsonl, and what there
// is of transcript.jsonl, hooks.jsonl, stdout.jsonl, session.json (what is left of Claude's state file) and screen.txt.
func (a *agent) save(name string) {
	a.t.Helper()
	if recordings() == "" || a.t.Failed() {
		return
	}
	a.rec.add("exit", a.cmd.ProcessState.String())
	dir := filepath.Join(recordings(), a.kind, name)
	if err := os.RemoveAll(dir); err != nil {
		a.t.Fatal(err)
	}
	var timeline bytes.Buffer
	for _, line := range a.rec.lines {
		if kind, is := line.Data.(string); is && line.What == "transcript" && slices.Contains(bulky, kind) {
			continue
		}
		data, err := json.Marshal(line)
		if err != nil {
			a.t.Fatal(err)
		}
		timeline.Write(append(data, '\n'))
	}
	files := map[string][]byte{"timeline.jsonl": timeline.Bytes()}
	transcripts := a.transcripts()
	slices.SortStableFunc(transcripts, func(a, b string) int { return strings.Count(a, "/") - strings.Count(b, "/") }) // subagents' last
	for i, name := range transcripts {
		suffix := ""
		if i > 0 {
			suffix = fmt.Sprintf("-%d", i+1)
		}
		files["transcript"+suffix+".jsonl"] = withoutBulk(name)
	}
	for _, name := range a.sessionFiles() {
		files["session.json"], _ = os.ReadFile(name)
	}
	for target, source := range map[string]string{"hooks.jsonl": "hooks.jsonl", "stdout.jsonl": "stdout"} {
		files[target], _ = os.ReadFile(a.w.path(source)) // not every scenario has it
	}
	if a.term != nil && strings.HasPrefix(name, "startup") {
		files["screen.txt"] = []byte(emptyLines.ReplaceAllString(a.screen(), "\n"))
	}
	for name, data := range files {
		if len(data) > 0 {
			a.write(filepath.Join(dir, name), a.scrub(string(data)))
		}
	}
}

// bulky are the records of Claude Code that say what the model is told, and nothing of what it does.
var bulky = []string{"attachment", "api-request-shape", "api-request-blob", "file-history-snapshot", "tools-used", "atis-latch"}

// withoutBulk is a transcript without those records.
func withoutBulk(name string) []byte {
	data, _ := os.ReadFile(name) // it was there when the list was made
	var kept []byte
	for line := range bytes.Lines(data) {
		if !slices.Contains(bulky, lineKind(string(line))) {
			kept = append(kept, line...)
		}
	}
	return kept
}

var (
	longString = regexp.MustCompile(`"(?:[^"\\]|\\.){240,}"`)
	machineID  = regexp.MustCompile(`linux:[0-9a-f]{32}:pid:\[\d+\]`)
	kernel     = regexp.MustCompile(`Linux \d+\.\d+[\w.+-]*`)
	emptyLines = regexp.MustCompile(`\s*\n`)
	leftover   = regexp.MustCompile(`[^\s"]*/?tmp/Test[^\s"]*`)
)

// scrub takes out of a recording what belongs to this machine, and shortens what is long: prompts and tool
// descriptions, which no reader looks at.
func (a *agent) scrub(text string) string {
	slug := func(path string) string { return regexp.MustCompile(`[^A-Za-z0-9]`).ReplaceAllString(path, "-") }
	host, _ := os.Hostname()
	pairs := []string{
		a.project, "/home/u/shop", slug(a.project), slug("/home/u/shop"), a.home, "/home/u", slug(a.home), slug("/home/u"),
		a.w.dir, "/run/user/1000", tools.root, "/opt/agents", a.model.URL, "http://127.0.0.1:4000",
	}
	if len(host) > 3 {
		pairs = append(pairs, host, "workstation")
	}
	text = strings.NewReplacer(pairs...).Replace(text)
	text = machineID.ReplaceAllString(text, "linux:00000000000000000000000000000000:pid:[4026531836]")
	text = kernel.ReplaceAllString(text, "Linux 6.12.0")
	text = leftover.ReplaceAllString(text, "/home/u/shop")
	text = longString.ReplaceAllStringFunc(text, func(s string) string {
		cut := strings.TrimRight(strings.ToValidUTF8(s[1:80], ""), `\`)
		if i := strings.LastIndexByte(cut, '\\'); i > len(cut)-6 {
			cut = cut[:i] // not in the middle of an escape
		}
		return fmt.Sprintf(`"%s… (%d bytes)"`, cut, len(s))
	})
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(shortLine(line))
	}
	return out.String()
}

// shortLine shortens the lists of a record that is still long: tools, skills, agents.
func shortLine(line string) string {
	const enough = 4000
	var record any
	if len(line) < enough || json.Unmarshal([]byte(line), &record) != nil {
		return line
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(shortLists(record)); err != nil {
		return line
	}
	return out.String()
}

func shortLists(v any) any {
	switch v := v.(type) {
	case []any:
		v = v[:min(len(v), 2)]
		for i := range v {
			v[i] = shortLists(v[i])
		}
		return v
	case map[string]any:
		for key := range v {
			v[key] = shortLists(v[key])
		}
	}
	return v
}
