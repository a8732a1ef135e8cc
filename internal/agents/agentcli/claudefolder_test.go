package agentcli

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// The folder of a directory has a hyphen for each UTF-16 unit: two for a character outside of the BMP.
func TestClaudeFolder(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string]string{
		"/home/u/shop":            "-home-u-shop",
		"/home/u/my.shop_2":       "-home-u-my-shop-2",
		"/home/u/🚀 launch":        "-home-u----launch",
		"/home/u/店":               "-home-u--",
		"/home/u/é":               "-home-u--",
		"/home/u/e\u0301":         "-home-u-e-", // NFD
		"/home/u/👩\u200d💻":        "-home-u------",
		"/home/u/𝒜b":              "-home-u---b",
		"/home/u/not\xff\xfeUTF8": "-home-u-not--UTF8",
	} {
		if got := claudeFolder(dir); got != want {
			t.Errorf("%q: %q, wanted %q", dir, got, want)
		}
	}
}

// The transcript of a session in a directory with an emoji is read. The name is as Claude Code 2.1.332 has written it.
func TestAnEmojiInADirectory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := w.dir("🚀 launch")
	folder := strings.TrimSuffix(claudeFolder(w.dir("x")), "x") + "---launch"
	path := filepath.Join(w.options.Places[Claude], "projects", folder, "a.jsonl")
	writeFile(t, path, fmt.Sprintf(`{"type":"user","sessionId":"a","cwd":%q,"timestamp":%q,"message":{"content":"go"}}`+"\n", dir, now()))
	same(t, "by its transcript", w.found(NewReader(w.options), Query{Dirs: []string{dir}}), "claude a 0 model")
	w.claudeState(70, dir, "a", `"status":"busy"`)
	same(t, "by its process", w.found(NewReader(w.options), Query{Dirs: []string{dir}}), "claude a 70 model")
}
