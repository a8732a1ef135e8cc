// Package outlive_test checks the house rules of docs/PATTERNS.md on the whole tree.
package outlive_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// levels of the rooms: a room imports only rooms of its own level or below. A new room gets its line here and in
// docs/ARCHITECTURE.md.
var levels = map[string]int{
	"jsonrpc": 0, "event": 0, "backoff": 0, "restart": 0, "wire": 0, "problem": 0, "wholefile": 0, "pattern": 0, "peer": 0,
	"child": 1, "mcp": 1, "audit": 1, "logline": 1, "watch": 1, "health": 1, "launcher": 1, "notify": 1, "piv": 1, "config": 1, "streamhttp": 1, "remote": 1,
	"process": 1, "vendors": 1, "heartbeat": 1, "roster": 1, "hooks": 1, "service": 1, "secret": 1,
	"supervise": 2, "session": 2, "catalog": 2, "clients": 2, "bridge": 2, "diagnose": 2, "remedy": 2, "escalate": 2, "agentrun": 2,
	"backend": 3, "host": 3, "monitor": 3,
	"proxy": 4, "gateway": 4, "fleet": 4, "checkup": 4,
	"control": 5, "dashboard": 5, "tui": 5,
	"cli": 6,
}

// support are the rooms of test support, beside the levels: which room each of them imports at most, and whether the demo
// uses it, too.
var support = map[string]struct {
	imports string
	demo    bool
}{
	"mcptest":   {imports: "jsonrpc", demo: true},
	"agenttest": {},
}

func isSupport(room string) bool {
	_, ok := support[room]
	return ok
}

func TestHouse(t *testing.T) {
	tree := loadTree(t)
	for _, rule := range fileRules {
		t.Run(rule.name, func(t *testing.T) {
			for _, s := range tree {
				for _, f := range rule.check(s) {
					t.Error(f)
				}
			}
		})
	}
	t.Run("every room has its doc.go", func(t *testing.T) {
		for room, files := range rooms(tree) {
			for _, f := range checkDoc(room, files) {
				t.Error(f)
			}
		}
	})
	t.Run("files near the limit", func(t *testing.T) {
		for _, s := range tree {
			if n := lineCount(s); !s.test && n > targetLines {
				t.Logf("%s has %d lines: over the target of %d", s.path, n, targetLines)
			}
		}
	})
}

// fileRules are the rules that one file can break by itself.
var fileRules = []struct {
	name  string
	check func(*source) []finding
}{
	{"lower levels never import higher ones", checkLayer},
	{"no room is a bag", checkBag},
	{"rooms are flat", checkFlat},
	{"files are short", checkFileLength},
	{"functions are under 60 lines", checkFunctionLength},
	{"exported names have a doc comment", checkExported},
	{"OS differences by file suffix", checkGOOS},
	{"stdout belongs to the protocol", checkPrint},
	{"only cmd exits", checkExit},
	{"nothing unfinished", checkUnfinished},
	{"domain packages read no flags and no environment", checkEnvironment},
	{"testing is for tests", checkTesting},
	{"main is short", checkMain},
	{"nothing is compiled before it is used", checkEager},
	{"what is compiled later is right now", checkPatterns},
}

// checkLayer looks at test files too: a test that needs a higher room belongs there.
func checkLayer(s *source) []finding {
	var found []finding
	for p, spec := range s.imports() {
		room, ok := strings.CutPrefix(p, module+"/internal/")
		if !ok {
			continue
		}
		if why := layerFault(s, strings.Split(room, "/")[0]); why != "" {
			found = append(found, s.at(spec.Pos(), "%s", why))
		}
	}
	if _, known := levels[s.room]; s.room != "" && !isSupport(s.room) && !known {
		found = append(found, s.at(s.ast.Pos(), "room %s has no level: add it to levels in house_test.go", s.room))
	}
	return found
}

// layerFault says what is wrong with s importing room, or nothing.
func layerFault(s *source, room string) string {
	top := strings.Split(s.path, "/")[0]
	switch {
	case room == s.room: // its own external test
		return ""
	case top == "bench":
		return ""
	case isSupport(room):
		if s.test || support[room].demo && (s.room == "cli" || top == "cmd") {
			return ""
		}
		return room + " is for tests, and mcptest for the demo"
	case top == "cmd":
		if room == "cli" || room == "child" { // the keeper is the same program, and runs before everything else
			return ""
		}
		return "cmd imports cli and child only, not " + room
	case isSupport(s.room):
		if room == support[s.room].imports {
			return ""
		}
		return fmt.Sprintf("%s is test support, which stands apart, and imports %s", s.room, room)
	case levels[s.room] == 0 && !s.test:
		return fmt.Sprintf("%s is of level 0, which knows nothing of the rest, and imports %s", s.room, room)
	case levels[room] > levels[s.room]:
		return fmt.Sprintf("%s (level %d) imports %s (level %d)", s.room, levels[s.room], room, levels[room])
	case room == "config" && s.room != "cli":
		return s.room + " imports config: cli maps the configuration to each room's Options"
	}
	return ""
}

// bags are names that say nothing about what belongs inside.
var bags = []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "shared", "lib", "base", "stuff", "tools_common"}

func checkBag(s *source) []finding {
	var found []finding
	stem := strings.TrimSuffix(strings.TrimSuffix(path.Base(s.path), ".go"), "_test")
	for _, name := range []string{s.room, stem, s.ast.Name.Name} {
		if slices.Contains(bags, name) {
			found = append(found, s.at(s.ast.Pos(), "%q is a bag: name it after the one concept it holds", name))
		}
	}
	return found
}

func checkFlat(s *source) []finding {
	if s.room != "" && strings.Count(s.path, "/") != 2 {
		return []finding{s.at(s.ast.Pos(), "rooms are flat: internal/%s has a package inside it", s.room)}
	}
	return nil
}

// checkDoc wants a doc.go with a package comment that says which goroutines exist, or that there are none.
func checkDoc(room string, files []*source) []finding {
	for _, s := range files {
		if path.Base(s.path) != "doc.go" {
			continue
		}
		doc := s.ast.Doc.Text()
		if !strings.HasPrefix(doc, "Package "+room+" ") {
			return []finding{s.at(s.ast.Pos(), "the package comment begins with %q", "Package "+room+" ")}
		}
		if !strings.Contains(strings.ToLower(doc), "goroutine") {
			return []finding{s.at(s.ast.Pos(), "the package comment says which goroutines exist, who starts them and what ends them (or that there are none)")}
		}
		return nil
	}
	return []finding{finding(fmt.Sprintf("internal/%s: no doc.go", room))}
}

// machinePaths are places of one machine. The pieces are joined here so that this file does not name them.
var machinePaths = regexp.MustCompile(`(?:^|[\s"'` + "`" + `(=:,])(?:/` + `work/|/` + `root/|/` + `home/[a-z]|/` + `Users/[A-Za-z])`)

// examplePaths may stand in documentation: nobody's own.
var examplePaths = regexp.MustCompile(`/(?:home|Users)/(?:you|user|u|me|alice|ada)\b`)

// registryHosts are hosts of package registries; which of them is used is each machine's business.
func registryHosts() []string {
	hosts := []string{"registry." + "npmjs.org", "proxy." + "golang.org", "sum." + "golang.org", "files." + "pythonhosted.org", "registry." + "yarnpkg.com"}
	settings := []string{os.Getenv("npm_config_registry"), os.Getenv("PIP_INDEX_URL"), os.Getenv("GOPROXY")}
	if out, err := exec.Command("go", "env", "GOPROXY").Output(); err == nil {
		settings = append(settings, string(out))
	}
	for _, setting := range settings {
		for _, one := range regexp.MustCompile(`[,|\s]+`).Split(setting, -1) {
			if u, err := url.Parse(one); err == nil && u.Hostname() != "" && !slices.Contains(hosts, u.Hostname()) {
				hosts = append(hosts, u.Hostname())
			}
		}
	}
	return hosts
}

// The project is the same wherever it is built: no file names a machine's folders or a registry.
func TestNoFileNamesAMachine(t *testing.T) {
	hosts := registryHosts()
	suspects := append([]string{"/" + "work/", "/" + "root/", "/" + "home/", "/" + "Users/"}, hosts...) // of machinePaths
	for _, name := range publishedFiles(t) {
		text := string(readText(name))
		if !slices.ContainsFunc(suspects, func(s string) bool { return strings.Contains(text, s) }) {
			continue // most files: a search of each line takes much longer
		}
		for i, line := range strings.Split(text, "\n") {
			if m := machinePaths.FindString(examplePaths.ReplaceAllString(line, "")); m != "" {
				t.Errorf("%s:%d: a path of one machine: %.120q", name, i+1, strings.TrimSpace(line))
			}
			for _, host := range hosts {
				if strings.Contains(line, host) {
					t.Errorf("%s:%d: names the registry %s", name, i+1, host)
				}
			}
		}
	}
}
