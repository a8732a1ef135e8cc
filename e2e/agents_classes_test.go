package e2e

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// live are the tests in which the running monitor calls a real agent so, by their names.
type live struct {
	claude, codex string
	process       string // of another real process: an orchestrator of the PIV supervisor
	why           string // one of the CLIs has no test, or neither
}

// both is a state that both CLIs are brought into in the same way.
func both(row string) live {
	return live{claude: "TestMonitorDetectsTroubles/claude/" + row, codex: "TestMonitorDetectsTroubles/codex/" + row}
}

// detected is a state of TestMonitorDetects for both CLIs.
func detected(row string) live {
	return live{claude: "TestMonitorDetects/claude/" + row, codex: "TestMonitorDetects/codex/" + row}
}

// onlyPIV are states that only a project in a registry of the PIV supervisor has.
func onlyPIV(test, why string) live { return live{process: test, why: why} }

// classes says where each class of internal/agents/diagnose is seen live.
var classes = map[string]live{
	"not_watched": detected("exit"),
	"paused":      both("paused"),
	"complete":    onlyPIV("TestMonitorDetectsPIV/complete", "a status of the PIV registry; an agent that is declared is done instead"),
	"done":        detected("wrapped-undeclared"),
	"healthy":     both("says-working"),
	"working":     detected("working"),
	"idle":        detected("idle"),
	"starting":    both("starting"),
	"grace": onlyPIV("TestMonitorDetectsPIV/grace",
		"a declared agent has it only after the machine was started, has slept, or had its clock set, which no test may do"),
	"unobserved": both("unobserved"),
	"api_backoff": {claude: "TestMonitorDetects/claude/429",
		why: "Codex 0.169.0 writes nothing of its retries: it is working until it gives up"},

	"crashed":            detected("wrapped-killed"),
	"exited_unfinished":  both("wrapped-unfinished"),
	"startup_blocked":    detected("startup"),
	"stopped":            both("stopped"),
	"waiting_permission": {claude: "TestMonitorSeesWaiting/claude/permission", codex: "TestMonitorSeesWaiting/codex/permission"},
	"waiting_question":   {claude: "TestMonitorSeesWaiting/claude/question", codex: "TestMonitorSeesWaiting/codex/question"},
	"waiting_other":      both("says-stuck"),
	"rate_limited":       {claude: "TestMonitorDetectsTroubles/claude/429-ended", codex: "TestMonitorDetects/codex/429"},
	"api_failed":         both("529-ended"),
	"auth_expired":       detected("401"),
	"credit_exhausted":   both("credit"),
	"human_required":     both("dead-key"),
	"execution_error":    both("400"),
	"context_exhausted":  detected("context"),
	"budget_exceeded":    {claude: "TestMonitorCountsTheCost", why: "Codex 0.169.0 writes no cost"},
	"model_silent":       detected("hang"),
	"tool_hung":          both("tool"),
	"server_hung":        {claude: "TestMonitorRestartsTheServer", why: "what shows it is the server's outlive, not the CLI"},
	"waiting_server": {why: "a call at a server that wants a login, or is paused, is answered within --queue-timeout, so no CLI waits for it: " +
		"TestMonitorTellsOfAServersLogin shows what people are told"},
	// While it lives, Claude Code 2.1.330 tells its session of each task's end (TestMonitorLeavesBackgroundTasksAlone).
	"background_task_dead": {claude: "TestMonitorDetectsTroubles/claude/task-before", why: "Codex 0.169.0 has no such tasks"},
	"loop":                 both("loop"),
	"no_progress":          both("no-progress"),
	"heartbeat_lost":       both("silent-beats"),
	"orphaned":             both("orphan"),

	"unreadable": onlyPIV("TestMonitorDetectsPIV/unreadable", "an entry of the PIV registry; of a mistake in a declaration the monitor keeps the last good copy"),
	"vanished":   onlyPIV("TestMonitorDetectsPIV/vanished", "an entry of the PIV registry; a declaration that is gone is one that its owner has removed"),
	"lost":       onlyPIV("TestMonitorDetectsPIV/lost", "the PIV registry, which says what lives; declarations only say what should"),
	"unsure": onlyPIV("TestMonitorIsUnsure",
		"the PIV registry names a number; a CLI is found by its program and its directory, and is not a stranger"),
	"manifest":      both("broken-manifest"),
	"contradiction": {claude: "TestMonitorHearsAContradiction/claude", codex: "TestMonitorHearsAContradiction/codex"},
	"no_evidence":   both("output-only"),
}

// tests are the names of all tests of a class.
func (l live) tests() []string {
	return slices.DeleteFunc([]string{l.claude, l.codex, l.process}, func(name string) bool { return name == "" })
}

// shown is what the tests of this run have seen.
var shown struct {
	sync.Mutex
	began map[string]bool     // tests with a monitor
	seen  map[string][]string // test: the classes that its monitor has told
}

// watched notes that a test has a monitor.
func watched(t *testing.T) {
	shown.Lock()
	defer shown.Unlock()
	if shown.began == nil {
		shown.began, shown.seen = map[string]bool{}, map[string][]string{}
	}
	shown.began[t.Name()] = true
}

// shows notes that a monitor has called its agent so.
func shows(t *testing.T, class string) {
	shown.Lock()
	defer shown.Unlock()
	shown.seen[t.Name()] = append(shown.seen[t.Name()], class)
}

// notShown is what the table says and this run has not seen: of the tests that ran, or, where none was left out, of all. The door leaves
// some out.
func notShown() (faults []string) {
	shown.Lock()
	defer shown.Unlock()
	all := full() && flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == "" && !direct()
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		for _, test := range classes[class].tests() {
			if (all || shown.began[test]) && !slices.Contains(shown.seen[test], class) {
				faults = append(faults, fmt.Sprintf("no monitor has said %s in %s, which is where agents_classes_test.go has it shown", class, test))
			}
		}
	}
	return faults
}

// TestEveryClassIsShownLive: whoever adds a class to internal/agents/diagnose shows it with the real CLIs, or says here why that
// cannot be.
func TestEveryClassIsShownLive(t *testing.T) {
	known := classesOfSource(t)
	for _, class := range known {
		l, ok := classes[class]
		switch {
		case !ok || len(l.tests()) == 0 && l.why == "":
			t.Errorf("no live test shows %s", class)
		case (l.claude == "" || l.codex == "") && l.why == "":
			t.Errorf("%s is not shown with both CLIs, and nothing says why", class)
		}
	}
	for class := range classes {
		if !slices.Contains(known, class) {
			t.Errorf("internal/agents/diagnose has no class %s", class)
		}
	}
	words := literalsOfTests(t)
	for class, l := range classes {
		for _, test := range l.tests() {
			function, sub, _ := strings.Cut(test, "/")
			if rows := rowsOf(function); rows != nil {
				if rows[sub] != class {
					t.Errorf("%s is to show %s, and there it is %q", test, class, rows[sub])
				}
			} else if !slices.Contains(words[function], class) {
				t.Errorf("%s is to show %s, and does not name it, or there is no such test", test, class)
			}
		}
	}
}

// rowsOf are the subtests of a test that is a table, and the class of each; nil: it is none.
func rowsOf(function string) map[string]string {
	rows := map[string]string{}
	add := func(prefix string, list []detection) {
		for _, d := range list {
			rows[prefix+d.name] = d.class
		}
	}
	switch function {
	case "TestMonitorDetects":
		for kind, list := range detections {
			add(kind+"/", list)
		}
	case "TestMonitorDetectsTroubles":
		for kind, list := range troubles {
			add(kind+"/", troubled)
			add(kind+"/", list)
		}
	case "TestMonitorDetectsPIV":
		for _, s := range pivStates {
			rows[s.name] = s.class
		}
	default:
		return nil
	}
	return rows
}

// classesOfSource are the values of the constants of type Class of internal/agents/diagnose.
func classesOfSource(t *testing.T) (values []string) {
	t.Helper()
	for _, file := range parsed(t, "../internal/agents/diagnose/*.go") {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			if word, ok := spec.Type.(*ast.Ident); ok && word.Name == "Class" {
				values = append(values, literals(spec)...)
			}
			return true
		})
	}
	if len(values) < 20 {
		t.Fatalf("the classes are not found: %q", values)
	}
	return values
}

// literalsOfTests are the texts in each test function of this directory.
func literalsOfTests(t *testing.T) map[string][]string {
	t.Helper()
	words := map[string][]string{}
	for _, file := range parsed(t, "agents_*_test.go") {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				words[f.Name.Name] = literals(f)
			}
		}
	}
	return words
}

func literals(in ast.Node) (values []string) {
	ast.Inspect(in, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				values = append(values, text)
			}
		}
		return true
	})
	return values
}

func parsed(t *testing.T, pattern string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(tools.root, pattern))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}
