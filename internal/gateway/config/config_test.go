package config

import (
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/testing/hostpath"
)

var update = flag.Bool("update", false, "write what is seen as what is wanted")

const corpus = "testdata/config"

// policyOfRun are keys of every kind, called like the flags of `outlive run`.
var policyOfRun = []PolicyKey{
	{Name: "backoff", Usage: "delay after a crash", Enum: []string{"transparent", "exponential", "tiered"}},
	{Name: "max-restarts", Kind: Int, Usage: "crashes tolerated before giving up; 0: unlimited"},
	{Name: "restart-delay", Kind: Duration, Usage: "wait exactly this long after every crash"},
	{Name: "compat", Usage: "every number of the watchdog supervisor at once", Enum: []string{"watchdog"}},
	{Name: "restart-on", Usage: "exit codes that ask for a restart, besides 42"},
	{Name: "fail-on", Usage: "exit codes that no restart can mend"},
	{Name: "start-timeout", Kind: Duration, Usage: "how long a server may take to answer its handshake"},
	{Name: "drain", Kind: Duration, Usage: "how long calls in flight may finish before a planned restart"},
	{Name: "reload", Usage: "planned restarts", Enum: []string{"overlap", "replace"}},
	{Name: "standby", Kind: Int, Usage: "how many initialised spare servers to keep"},
	{Name: "retire", Kind: Duration, Usage: "how long a replaced server may finish the calls it has"},
	{Name: "watch", Kind: List, Usage: "restart when these files change"},
	{Name: "lazy", Kind: Bool, Usage: "start the server at the first call"},
	{Name: "idle-timeout", Kind: Duration, Usage: "end the server when it was not used this long"},
	{Name: "no-fast-start", Kind: Bool, Usage: "answer nothing from what earlier runs have shown"},
	{Name: "replay-call", Kind: List, Usage: "tool call repeated to each new server before it serves"},
	{Name: "kill-mode", Usage: "what ends with a server", Enum: []string{"tree", "group"}},
	{Name: "health", Usage: "whether a server that hangs is restarted", Enum: []string{"on", "off"}},
	{Name: "call-timeout", Kind: Duration, Usage: "how long a call may go without progress"},
	{Name: "max-rss", Kind: Size, Usage: "memory of the server and all it starts"},
	{Name: "max-age", Kind: Duration, Usage: "how long one process may serve"},
	{Name: "max-calls", Kind: Int, Usage: "how many calls one process may get"},
	{Name: "no-tools", Kind: Bool, Usage: "do not add restart_server and its like"},
	{Name: "lost-calls", Usage: "answer calls of unknown outcome with", Enum: []string{"tool-result", "error"}},
	{Name: "distrust-annotations", Kind: Bool, Usage: "do not repeat calls of tools that say they are read-only or idempotent"},
	{Name: "queue-timeout", Kind: Duration, Usage: "how long a request waits for the server to come back"},
	{Name: "surrogates", Usage: "lone surrogates from the client", Enum: []string{"reject", "replace", "pass"}},
	{Name: "retry-tool", Kind: List, Usage: "tools whose calls may be repeated after a crash"},
	{Name: "max-message", Kind: Size, Usage: "longest message in both directions"},
}

var environment = map[string]string{
	"SET": "set", "WORD": "word", "EMPTY": "", "DATA": "/data", "NAME": "name", "T": "t0ken", "OUTLIVE_TOKEN": "opensesame",
	"SECRET_WITH_SPACE": "hunter2 secret", "SECRET_LINES": "hunter2\nsecret", "OUTLIVE_INPUT_KEY": "typed", "OUTLIVE_INPUT_CHOICE": "c",
}

var files = map[string]string{
	"/srv/app/secret.txt": "from a file\n", "/srv/app/binary": "\xff\xfe",
	"/srv/app/vars.env": "# comment\nA=1\nexport B='two words'\nC=\"a\\nb\" # rest\nD=x # comment\nnothing\n",
}

// inDir are options that know a few variables and files.
func inDir(dir string) Options {
	return Options{
		Keys: policyOfRun,
		Lookup: func(name string) (string, bool) {
			v, ok := environment[name]
			return v, ok
		},
		ReadFile: func(path string, limit int64) ([]byte, error) {
			if text, ok := files[hostpath.Slashed(path)]; int64(len(text)) > limit {
				return nil, atomicfile.ErrTooLong
			} else if ok {
				return []byte(text), nil
			}
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		},
		Dir: hostpath.Abs(dir), Home: hostpath.Abs("/home/you"),
	}
}

// optionsFor puts files of a client's folder into a folder of that name.
func optionsFor(name string) Options {
	if folder := filepath.Base(filepath.Dir(name)); strings.HasPrefix(folder, ".") {
		return inDir("/srv/app/" + folder)
	}
	return inDir("/srv/app")
}

func corpusFiles(t *testing.T, kind string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(filepath.Join(corpus, kind), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) != ".want" {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// Every mistake is reported with its position and what to do; values of references are not shown.
func TestBroken(t *testing.T) {
	names := corpusFiles(t, "broken")
	if len(names) < 40 {
		t.Errorf("%d broken files", len(names))
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			f, err := Parse(filepath.Base(name), data, optionsFor(name))
			var problems *fileerror.Problems
			if !errors.As(err, &problems) || f != nil {
				t.Fatalf("file %v, error %v", f, err)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Error("shows what a variable holds")
			}
			golden(t, name+".want", err.Error()+"\n")
		})
	}
}

// Every client's file yields the servers that the client would start.
func TestGood(t *testing.T) { goodFiles(t, "good") }

// What an earlier release took means what it meant then, and a warning says what to write.
func TestOlder(t *testing.T) { goodFiles(t, "older") }

func goodFiles(t *testing.T, kind string) {
	for _, name := range corpusFiles(t, kind) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			f, err := Parse(strings.TrimPrefix(filepath.ToSlash(name), corpus+"/"+kind+"/"), data, optionsFor(name))
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".want", normalised(t, f))
		})
	}
}

// normalised is a File as JSON without positions and unset members, followed by its warnings.
func normalised(t *testing.T, f *File) string {
	t.Helper()
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	text, err = json.MarshalIndent(pruned(v), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	out := string(text) + "\n"
	for _, w := range f.Warnings {
		out += f.Render(w) + "\n"
	}
	return out
}

func pruned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			member = pruned(member)
			if v[name] = member; slices.Contains([]string{"Pos", "TargetPos", "Warnings"}, name) || isZero(member) {
				delete(v, name)
			}
		}
	case []any:
		for i := range v {
			v[i] = pruned(v[i])
		}
	case string:
		return hostpath.Slashed(v)
	}
	return v
}

func isZero(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	case string:
		return v == ""
	}
	return v == nil || v == false || v == float64(0)
}
