package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/monitor"
	"github.com/outlive-mcp/outlive/internal/line/remote"
)

// How texts for people name commands: in brackets, behind "run", or on a line of their own below an agent.
var (
	inBrackets = regexp.MustCompile(`\((outlive [^()]+)\)`)
	behindRun  = regexp.MustCompile(`\brun (outlive [^;,()\n]+)`)
	onALine    = regexp.MustCompile(`(?m)^(?:\$| +next| {5,}) +(outlive [^#\n]+)`)
)

// commandsIn are the commands that a text names.
func commandsIn(text string) (list []string) {
	for _, form := range []*regexp.Regexp{inBrackets, behindRun, onALine} {
		for _, found := range form.FindAllStringSubmatch(text, -1) {
			for i, command := range strings.Split(found[1], ", outlive ") {
				if i > 0 {
					command = "outlive " + command
				}
				list = append(list, strings.TrimSpace(command))
			}
		}
	}
	return list
}

// typed types a command: its verb is there, and it takes these flags and arguments.
func typed(t *testing.T, command string) {
	t.Helper()
	words, err := splitWords(command)
	if err != nil {
		t.Errorf("%s: %v", command, err)
		return
	}
	root := newRoot(streams{in: os.Stdin, out: os.Stdout, err: os.Stderr})
	verb, args, err := root.Find(words[1:])
	if err == nil {
		err = verb.ParseFlags(args)
	}
	if err == nil {
		err = verb.ValidateArgs(verb.Flags().Args())
	}
	if err != nil || !verb.Runnable() || verb == root {
		t.Errorf("%s: %v, it is %q", command, err, verb.CommandPath())
		return
	}
	if of := verb.CommandPath(); of == "outlive logs" || of == "outlive restart" {
		// A colon is in no name: it is of the key of an incident.
		if w, err := parseWanted(verb.Flags().Arg(0)); err != nil || strings.Contains(w.name+w.server, ":") {
			t.Errorf("%s: %+v, %v", command, w, err)
		}
	}
}

// messageTexts are texts that outlive sends to people: all of those in messages.txt, and those with names and homes of every kind.
func messageTexts(t *testing.T) []string {
	t.Helper()
	golden, err := os.ReadFile(filepath.Join("..", "..", "agents", "incident", "testdata", "messages.txt"))
	if err != nil {
		t.Fatal(err)
	}
	classes := []string{"server_paused", "server_failed", "server_login"}
	for _, found := range regexp.MustCompile(`(?m)^=== ([a-z_]+)$`).FindAllStringSubmatch(string(golden), -1) {
		classes = append(classes, found[1])
	}
	if len(classes) < 35 {
		t.Fatalf("only %d classes in messages.txt: %q", len(classes), classes)
	}
	at := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	p := incident.Policy{Tiers: [][]string{{"me"}}, Home: " --home " + incident.Quoted("/srv/my agents")}
	texts := []string{string(golden)}
	for _, class := range classes {
		for _, agent := range []string{"shop", "server:gateway/linear:", "server:my till@4712:shop"} {
			if strings.HasPrefix(agent, incident.ServerPrefix) != incident.AboutServer(class) {
				continue
			}
			f := incident.Facts{Name: "shop", Details: "it is so", Ways: incident.Ways{Joinable: true}, Unheard: true, Severity: incident.Warning}
			i, effects := incident.Step(incident.New("ab12cd34", incident.Key{Agent: agent, Class: class}), incident.Opened{Facts: f}, p, at)
			for _, e := range effects {
				if send, ok := e.(incident.Send); ok {
					texts = append(texts, send.Message.Text.Body, send.Message.Line.Note)
				}
			}
			texts = append(texts, incident.Compose(i, p, at).Text.Body)
			if !incident.AboutServer(class) {
				texts = append(texts, incident.ToDo(class, agent+p.Home, incident.Ways{}))
			}
		}
	}
	texts = append(texts, incident.Status(make([]incident.Standing, 50), "", p, at).Text.Body, incident.Help().Text.Body)
	texts = append(texts, mendToDo("my till@4712"), mendToDo("gateway@7/linear"), loginToDo(": run outlive login https://far.example\nand more"), remote.WantsLogin+": run outlive login https://far.example")
	return texts
}

// Every command in a message works when it is typed, and every verb in one is part of such a command.
func TestCommandsInMessages(t *testing.T) {
	var verbs []string
	for _, c := range newRoot(streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}).Commands() {
		verbs = append(verbs, c.Name())
	}
	mentioned := regexp.MustCompile(`outlive ([a-z]+)`)
	seen := map[string]bool{}
	for _, text := range messageTexts(t) {
		commands := commandsIn(text)
		for _, command := range commands {
			if !seen[command] {
				seen[command] = true
				typed(t, command)
			}
		}
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "To do:") && !strings.HasPrefix(line, "Buttons:") && !strings.HasPrefix(line, "More:") {
				continue
			}
			for _, found := range mentioned.FindAllStringSubmatch(line, -1) {
				if slices.Contains(verbs, found[1]) && !slices.ContainsFunc(commands, func(c string) bool { return strings.HasPrefix(c, found[0]) }) {
					t.Errorf("%q is no command that can be copied, in %q", found[0], line)
				}
			}
		}
	}
	for _, want := range []string{
		"outlive logs gateway/linear", "outlive restart gateway/linear", "outlive restart 'my till@4712'", "outlive agent logs shop --home '/srv/my agents'",
		"outlive agent list --home '/srv/my agents'", "outlive ack --home '/srv/my agents'", "outlive login https://far.example", "outlive fleet join",
	} {
		if !seen[want] {
			t.Errorf("no message says %q", want)
		}
	}
}

// The same of what list, report and explain say of agents in trouble, and of the commands for the incident of a server.
func TestCommandsBelowAgents(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "agents.txt"))
	if err != nil {
		t.Fatal(err)
	}
	o := monitor.Options{Home: "/srv/my agents"}
	server := incident.Incident{ID: "ab12cd34", Key: incident.Key{Agent: "server:gateway/linear:", Class: "server_failed"}}
	list := append(commandsIn(string(golden)), strings.TrimSuffix(ackCommand(o, server), "   # no reminders for four hours"))
	if len(list) < 15 {
		t.Fatalf("only %q", list)
	}
	for _, command := range list {
		typed(t, command)
	}
	view := monitor.View{Incidents: []incident.Incident{server}}
	row := incidentRow(incidentRecordOf(server), "", time.Now())
	if meant, err := incidentsMeant(o, view, row[1]); err != nil || len(meant) != 1 || row[1] != "gateway/linear" {
		t.Errorf("outlive ack shows %q, and takes it as %+v, %v", row[1], meant, err)
	}
}
