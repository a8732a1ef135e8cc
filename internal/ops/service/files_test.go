package service

import (
	"bytes"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
)

// awkward is a service whose words are not easy to write down in any of the files.
func awkward(program string) Service {
	return Service{
		Name: "monitor", About: "keeps agents <moving> & 100% awake",
		Command:     []string{program, "monitor", "--home", `/tmp/a "b" $HOME 50% \n`, "", "ünï", ";", "a;b", "&<>", "it's", "tab\there"},
		Environ:     []string{"PATH=/usr/bin:/bin", `WORDS=a "b" $c 5% \`, "EMPTY="},
		EnvironFile: "/tmp/with blank/monitor.env", Log: "/tmp/monitor & co.log",
		Notifies: true, Watchdog: 90 * time.Second, Keeps: true,
	}
}

func TestSystemd(t *testing.T) {
	text, err := Systemd(awkward("/usr/bin/out live"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Description=keeps agents <moving> & 100%% awake\n", "Type=notify\n", "WatchdogSec=90s\n", "Restart=always\n", "KillMode=process\n", "OOMPolicy=continue\n",
		`ExecStart="/usr/bin/out live" monitor --home "/tmp/a \"b\" $$HOME 50%% \\n" "" ünï ";" "a;b" "&<>" "it's" "tab\there"` + "\n",
		`Environment="WORDS=a \"b\" $c 5%% \\"` + "\n", "EnvironmentFile=-/tmp/with blank/monitor.env\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	plain, err := Systemd(Service{Name: "gateway", Command: []string{"/usr/bin/outlive", "gateway"}, Watchdog: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for want, there := range map[string]bool{"Type=exec\n": true, "KillMode=mixed\n": true, "WatchdogSec": false, "EnvironmentFile": false} {
		if strings.Contains(string(plain), want) != there {
			t.Errorf("%q there: %v, want %v, in\n%s", want, !there, there, plain)
		}
	}
}

// systemd itself reads the unit, and has the same words.
func TestSystemdUnderstands(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze, which knows what a unit means, is not there")
	}
	program, err := exec.LookPath("env") // a unit's program has to be there
	if err != nil {
		t.Skip("env(1), which stands in for the program, is not there")
	}
	for _, s := range []Service{awkward(program), {Name: "gateway", About: "gateway", Command: []string{program, "gateway"}}} {
		text, err := Systemd(s)
		if err != nil {
			t.Fatal(err)
		}
		unit := filepath.Join(t.TempDir(), "outlive-test.service")
		if err := os.WriteFile(unit, text, 0o600); err != nil {
			t.Fatal(err)
		}
		verify := exec.Command(analyze, "verify", "--user", "--man=no", unit)
		verify.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
		if out, err := verify.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("systemd-analyze verify: %v\n%s\n%s", err, out, text)
		}
	}
}

func TestLaunchd(t *testing.T) {
	s := awkward("/usr/local/bin/outlive")
	text, err := Launchd(s)
	if err != nil {
		t.Fatal(err)
	}
	list := readPlist(t, text)
	for key, want := range map[string]any{
		"Label": "io.github.outlive-mcp.monitor", "KeepAlive": true, "RunAtLoad": true, "AbandonProcessGroup": true,
		"StandardErrorPath": "/tmp/monitor & co.log", "ThrottleInterval": "10",
		"EnvironmentVariables": map[string]any{"PATH": "/usr/bin:/bin", "WORDS": `a "b" $c 5% \`, "EMPTY": ""},
	} {
		if diff := cmp.Diff(want, list[key]); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
	var words []any
	for _, w := range s.Command {
		words = append(words, w)
	}
	if diff := cmp.Diff(words, list["ProgramArguments"]); diff != "" {
		t.Errorf("ProgramArguments: %s", diff)
	}
}

// readPlist reads a property list as Apple's programs do: dict, array, string, integer, true.
func readPlist(t *testing.T, text []byte) map[string]any {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(text))
	var value func(start xml.StartElement) any
	body := func(start xml.StartElement) string {
		var s string
		if err := d.DecodeElement(&s, &start); err != nil {
			t.Fatal(err)
		}
		return s
	}
	value = func(start xml.StartElement) any {
		dict, list, key := map[string]any{}, []any{}, ""
		switch start.Name.Local {
		case "string", "integer":
			return body(start)
		case "true":
			_ = body(start)
			return true
		}
		for {
			token, err := d.Token()
			if err != nil {
				t.Fatal(err)
			}
			switch token := token.(type) {
			case xml.StartElement:
				switch {
				case token.Name.Local == "key":
					key = body(token)
				case start.Name.Local == "array":
					list = append(list, value(token))
				case start.Name.Local == "plist":
					dict = value(token).(map[string]any)
				default:
					dict[key] = value(token)
				}
			case xml.EndElement:
				if start.Name.Local == "array" {
					return list
				}
				return dict
			}
		}
	}
	for {
		token, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok {
			return value(start).(map[string]any)
		}
	}
}

func TestTask(t *testing.T) {
	s := awkward(`C:\Program Files\outlive.exe`)
	s.Command = append(s.Command, `C:\my dir\`, `a\"b`)
	text, err := Task(s, `PC\ada & co`)
	if err != nil {
		t.Fatal(err)
	}
	var task struct {
		Description string `xml:"RegistrationInfo>Description"`
		Trigger     string `xml:"Triggers>LogonTrigger>UserId"`
		User        string `xml:"Principals>Principal>UserId"`
		Limit       string `xml:"Settings>ExecutionTimeLimit"`
		Count       int    `xml:"Settings>RestartOnFailure>Count"`
		Several     string `xml:"Settings>MultipleInstancesPolicy"`
		AtLogon     string `xml:"Triggers>LogonTrigger>Repetition>Interval"`
		AtOnce      string `xml:"Triggers>RegistrationTrigger>Repetition>Interval"`
		Command     string `xml:"Actions>Exec>Command"`
		Arguments   string `xml:"Actions>Exec>Arguments"`
	}
	if err := xml.Unmarshal(text, &task); err != nil {
		t.Fatal(err)
	}
	if task.Count < 1 || task.Count > 255 { // an unsigned byte: the scheduler refuses the file otherwise
		t.Errorf("RestartOnFailure %d times", task.Count)
	}
	if task.AtLogon != "PT1M" || task.AtOnce != "PT1M" || task.Several != "IgnoreNew" {
		t.Errorf("what has ended is not started again: %+v", task)
	}
	if task.Command != s.Command[0] || task.User != `PC\ada & co` || task.Trigger != task.User || task.Description != s.About || task.Limit != "PT0S" {
		t.Errorf("task %+v", task)
	}
	if diff := cmp.Diff(s.Command[1:], splitWindows(task.Arguments)); diff != "" {
		t.Errorf("arguments: %s", diff)
	}

	wide := UTF16(text)
	if !bytes.HasPrefix(wide, []byte{0xff, 0xfe}) {
		t.Error("no byte order mark")
	}
	var units []uint16
	for i := 2; i < len(wide); i += 2 {
		units = append(units, uint16(wide[i])|uint16(wide[i+1])<<8)
	}
	back := string(utf16.Decode(units))
	if !strings.HasPrefix(back, `<?xml version="1.0" encoding="UTF-16"?>`+"\r\n") || !strings.Contains(back, "ünï") {
		t.Errorf("%.200s", back)
	}
}

// splitWindows splits a command line as the C runtime of Windows does (the rules since 2008).
func splitWindows(line string) []string {
	var words []string
	for i := 0; i < len(line); {
		if line[i] == ' ' || line[i] == '\t' {
			i++
			continue
		}
		var word strings.Builder
		for quoted := false; i < len(line) && (quoted || line[i] != ' ' && line[i] != '\t'); {
			slashes := 0
			for i < len(line) && line[i] == '\\' {
				slashes++
				i++
			}
			if i == len(line) || line[i] != '"' {
				word.WriteString(strings.Repeat(`\`, slashes))
				if i < len(line) && (quoted || line[i] != ' ' && line[i] != '\t') {
					word.WriteByte(line[i])
					i++
				}
				continue
			}
			word.WriteString(strings.Repeat(`\`, slashes/2))
			if slashes%2 == 1 {
				word.WriteByte('"')
			} else {
				quoted = !quoted
			}
			i++
		}
		words = append(words, word.String())
	}
	return words
}

func TestNoServiceOfThese(t *testing.T) {
	good := Service{Name: "monitor", Command: []string{"/usr/bin/outlive"}}
	bad := map[string]func(*Service){
		"a name with a slash":        func(s *Service) { s.Name = "../monitor" },
		"no name":                    func(s *Service) { s.Name = "" },
		"no command":                 func(s *Service) { s.Command = nil },
		"a program that is relative": func(s *Service) { s.Command = []string{"outlive"} },
		"a new line in an argument":  func(s *Service) { s.Command = append(s.Command, "a\nExecStart=/bin/false") },
		"bytes that are no text":     func(s *Service) { s.Environ = []string{"A=\xff"} },
		"a variable without a value": func(s *Service) { s.Environ = []string{"A"} },
	}
	for name, spoil := range bad {
		s := good
		s.Command = append([]string(nil), good.Command...)
		spoil(&s)
		_, one := Systemd(s)
		_, two := Launchd(s)
		_, three := Task(s, "")
		for _, err := range []error{one, two, three} {
			if err == nil || !strings.HasSuffix(err.Error(), "no service can be made of it") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := Systemd(good); err != nil {
		t.Error(err)
	}
}

func TestPlace(t *testing.T) {
	p := PlaceOf(ForSystemd, "monitor", filepath.Join(t.TempDir(), "units"), 501)
	for i, want := range []bool{true, false} {
		if changed, err := p.Write([]byte("text")); err != nil || changed != want {
			t.Errorf("write %d: changed %v, %v", i, changed, err)
		}
	}
	if text, err := os.ReadFile(p.Path); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
	for i, want := range []bool{true, false} {
		if there, err := p.Remove(); err != nil || there != want {
			t.Errorf("remove %d: there %v, %v", i, there, err)
		}
	}
	got := PlaceOf(ForLaunchd, "gateway", "/l", 501).Enable
	if diff := cmp.Diff([][]string{{"launchctl", "bootstrap", "gui/501", filepath.Join("/l", "io.github.outlive-mcp.gateway.plist")}}, got); diff != "" {
		t.Error(diff)
	}
	// Windows starts no second one beside what runs.
	if got := PlaceOf(ForWindows, "gateway", "/l", 501).Remark; !strings.Contains(got, "schtasks /End /TN outlive-gateway") {
		t.Errorf("remark %q", got)
	}
}
