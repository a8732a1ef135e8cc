package house

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
	t.Run("an interface of one package has two implementations", func(t *testing.T) {
		for _, f := range checkInterfaces(tree) {
			t.Error(f)
		}
	})
}

// fileRules are the rules that one file can break by itself.
var fileRules = []struct {
	name  string
	check func(*source) []finding
}{
	{"a wing imports only what its row allows", checkLayer},
	{"no room is a bag", checkBag},
	{"rooms are flat", checkFlat},
	{"exported names have a doc comment", checkExported},
	{"OS differences by file suffix", checkGOOS},
	{"stdout belongs to the protocol", checkPrint},
	{"only cmd exits", checkExit},
	{"nothing unfinished", checkUnfinished},
	{"domain packages read no flags and no environment", checkEnvironment},
	{"testing is for tests", checkTesting},
	{"nothing is compiled before it is used", checkEager},
	{"what is compiled later is right now", checkPatterns},
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
	if s.wing != "" && strings.Count(s.path, "/") != 3 {
		return []finding{s.at(s.ast.Pos(), "packages are internal/WING/ROOM: %s is not", path.Dir(s.path))}
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
