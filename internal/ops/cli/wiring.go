package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
	"github.com/outlive-mcp/outlive/internal/gateway/config"
	"github.com/outlive-mcp/outlive/internal/gateway/sharing"
	"github.com/outlive-mcp/outlive/internal/keep/backoff"
	"github.com/outlive-mcp/outlive/internal/keep/child"
	"github.com/outlive-mcp/outlive/internal/keep/restart"
	"github.com/outlive-mcp/outlive/internal/keep/watch"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

// settings are the flags of `outlive run`, checked and in the words of the packages that need them.
type settings struct {
	backend    backend.Options
	watch      watch.Options // Globs and Auto empty: nothing is watched
	executable string        // what CMD resolved to
	dir        string
	killMode   child.KillMode
	longest    int // line in both directions, in bytes; 0: the usual
	logLevel   slog.Level
	logFormat  logline.Format
	audit      string // as --audit says until the paths are known; then a path, or "" for none
	stderrLog  string
	known      string // path of the knowledge file

	remote    *config.Server // a server elsewhere; nil: CMD is started
	login     string         // the command that logs in at it
	asks      bool           // the user is asked to log in when it wants that
	noBrowser bool           // and no page is opened for that
	warnings  []string       // of what the command line says of it

	markerPath  string
	serverState string           // OUTLIVE_STATE_DIR
	share       *sharing.Request // what the daemon is asked for; nil: the server is this run's own
}

// resolve checks the flags and finds the command. argv may be a URL in place of one, with flags of its own. changed reports which flags
// were given.
func (f *runFlags) resolve(argv []string, far *remoteFlags, changed func(string) bool) (*settings, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fail(exitFailure, "working directory: %w", err)
	}
	if f.backend.Name == "" {
		f.backend.Name = nameOf(argv)
	} else if err := checkName(f.backend.Name); err != nil {
		return nil, err
	}
	var s *settings
	if isURL(argv[0]) {
		s, err = f.settingsOfURL(dir, argv[0], far, changed)
	} else if err = far.check(argv); err == nil {
		s, err = f.settingsOfCommand(dir, argv, changed)
	}
	if err != nil {
		return nil, err
	}
	s.paths(s.backend.Name, nil)
	return s, nil
}

// settingsOfCommand are those of a run that starts its server.
func (f *runFlags) settingsOfCommand(dir string, argv []string, changed func(string) bool) (*settings, error) {
	s, err := f.check(dir, argv, changed)
	if err != nil {
		return nil, err
	}
	if s.executable, err = child.Resolve(argv[0], ""); err != nil {
		code, _ := child.ShellStatus(err)
		return nil, &exitError{cmp.Or(code, exitNotExecutable), err}
	}
	return s, nil
}

// settingsOfURL are those of a run whose server is elsewhere. An agent cannot restart it, so it gets no tools for that.
func (f *runFlags) settingsOfURL(dir, url string, far *remoteFlags, changed func(string) bool) (*settings, error) {
	if f.mode == "inherit" {
		return nil, fail(exitUsage, "--mode inherit: a server at a URL has no stdin and stdout to inherit: leave it out")
	}
	file, err := far.load(f.backend.Name, []string{url})
	if err != nil {
		return nil, err
	}
	s, err := f.check(dir, []string{shownURL(file.Servers[0].URL)}, changed)
	if err != nil {
		return nil, err
	}
	s.elsewhere(file.Servers[0], changed)
	s.login, s.asks, s.noBrowser, s.backend.NoTools = far.loginCommand(url), true, far.noBrowser, true
	for _, w := range file.Warnings {
		s.warnings = append(s.warnings, file.Render(w))
	}
	return s, nil
}

// elsewhere makes them those of a server that is no process of ours.
func (s *settings) elsewhere(c config.Server, changed func(string) bool) {
	s.remote = &c
	s.backend.Elsewhere = true
	s.backend.Supervise.Exits.Endless = true // a connection has no end of its own
	waitForNetwork(&s.backend.Supervise.Backoff, changed)
}

// auditPath is where --audit wants the audit log: usual if it says nothing, "" for none.
func auditPath(flag, usual string) string {
	switch flag {
	case "":
		return usual
	case "none":
		return ""
	}
	return flag
}

// checkMode refuses the flags that would be without effect.
func (f *runFlags) checkMode(changed func(string) bool) error {
	if f.mode != "inherit" {
		return nil
	}
	var idle []string
	for _, one := range f.table() {
		if !one.inherit && changed(string(one.name)) {
			idle = append(idle, one.name.String())
		}
	}
	if len(idle) == 0 {
		return nil
	}
	return fmt.Errorf("%s: no effect with --mode inherit, where the server has outlive's own stdin and stdout and outlive sees no message: "+
		"leave out --mode inherit, or this", strings.Join(idle, ", "))
}

// check takes the flags of a server that is run in dir.
func (f *runFlags) check(dir string, argv []string, changed func(string) bool) (*settings, error) {
	f.dir, f.markerPath, f.backend.Command = dir, filepath.Join(dir, restart.MarkerFile), argv
	for _, check := range []func(changed func(string) bool) error{f.checkEach, f.checkMode, f.supervise, f.limits, f.recovery} {
		if err := check(changed); err != nil {
			return nil, fail(exitUsage, "%w", err)
		}
	}
	return &f.settings, nil
}

// checkEach looks at each setting by itself, and takes those that are one of a few words.
func (f *runFlags) checkEach(func(string) bool) error {
	if err := checkEach(f.table()); err != nil {
		return err
	}
	_ = f.logLevel.UnmarshalText([]byte(f.level)) // it knows each of logLevels
	if err := child.Supports(f.killMode); err != nil {
		return wrongSetting("%s: %v", settingName("kill-mode"), err)
	}
	f.backend.LostAsError = f.lostCalls == "error"
	f.backend.NoBridge = f.bridge == "off"
	return nil
}

// supervise takes the flags about restarts. --mode inherit and --compat watchdog mean the watchdog's numbers.
func (f *runFlags) supervise(changed func(string) bool) error {
	o, preset := &f.backend.Supervise, f.backoff
	if (f.compat == "watchdog" || f.mode == "inherit") && !changed("backoff") {
		preset = backoff.Tiered().Name
	}
	policy, err := backoff.Preset(preset)
	if err != nil {
		return wrongSetting("%s: %v", settingName("backoff"), err)
	}
	if changed("max-restarts") {
		policy.MaxRestarts = f.maxRestarts
	}
	if changed("restart-delay") {
		policy.Tiers, policy.FirstAtOnce, policy.Jitter = []backoff.Tier{{Delay: f.restartDelay}}, false, 0
	}
	for changed("restart-delay") && !changed("max-restarts") && policy.MaxRestarts > 1 && policy.Validate() != nil {
		policy.MaxRestarts-- // fewer fit into the time that they are counted in
	}
	if err := policy.Validate(); err != nil {
		return wrongSetting("%s, %s: %w", settingName("max-restarts"), settingName("restart-delay"), err)
	}
	o.Backoff = policy
	if o.Exits.RestartOn, err = codes("restart-on", f.restartOn); err != nil {
		return err
	}
	o.Exits.FailOn, err = codes("fail-on", f.failOn)
	return err
}

func codes(flag, list string) ([]int, error) {
	out, err := restart.ParseCodes(list)
	if err != nil {
		return nil, wrongSetting("%s: %v", settingName(flag), err)
	}
	return out, nil
}

// leastMessage is the smallest --max-message, in bytes: handshakes and tool lists have to pass.
const leastMessage = 4 << 10

// limits takes the flags about waiting and size.
func (f *runFlags) limits(func(string) bool) error {
	f.backend.ProbePatience = f.backend.Supervise.StartTimeout // a server that is to be up by then has read its first request, too
	f.longest, _ = parseSize(f.maxMessage)                     // it was checked
	if f.longest > 0 && f.longest < leastMessage {
		return wrongSetting("%s %q is too small for the protocol: want 4KiB at least, such as 32MiB", settingName("max-message"), f.maxMessage)
	}
	return nil
}

var sizeForm = lazyregexp.New(`^(\d+) ?([KMG]?)(?:i?B)?$`)

// parseSize reads "32MiB", "500K", "1000000": bytes, in powers of 1024. "": 0, for what was not given.
func parseSize(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	m := sizeForm.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%q is not a size: write it like 32MiB", text)
	}
	n, err := strconv.Atoi(m[1])
	shift := map[string]int{"": 0, "K": 10, "M": 20, "G": 30}[m[2]]
	if err != nil || n <= 0 || n > 1<<40>>shift {
		return 0, fmt.Errorf("%q is out of range", text)
	}
	return n << shift, nil
}

// recovery takes the flags about replacing servers before and after they fail. --compat watchdog ends the old process first,
// as the watchdog does.
func (f *runFlags) recovery(changed func(string) bool) error {
	o := &f.backend
	if f.compat == "watchdog" && !changed("reload") {
		o.Reload = backend.ReplaceReload
	}
	if o.Supervise.Standby > 0 && o.Reload == backend.ReplaceReload {
		return wrongSetting("%s needs %s overlap: a server that cannot run twice has no spare", settingName("standby"), settingName("reload"))
	}
	o.Health.Off = f.health == "off"
	o.Elsewhere = standsIn(o.Command)
	if o.Lazy && o.NoFastStart {
		return wrongSetting("%s needs what earlier runs have shown: it cannot go with %s", settingName("lazy"), settingName("no-fast-start"))
	}
	for _, text := range f.replayCalls {
		r, err := parseReplay(text)
		if err != nil {
			return err
		}
		o.Replays = append(o.Replays, r)
	}
	rss, _ := parseSize(f.maxRSS) // it was checked
	o.Limits.MaxRSS = int64(rss)
	return f.watched()
}

// parseReplay reads "tool" or "tool {arguments}".
func parseReplay(text string) (backend.Replay, error) {
	tool, arguments, given := strings.Cut(strings.TrimSpace(text), " ")
	r := backend.Replay{Tool: tool}
	if given {
		r.Arguments = []byte(strings.TrimSpace(arguments))
	}
	var object map[string]json.RawMessage
	if tool == "" || given && json.Unmarshal(r.Arguments, &object) != nil {
		return r, wrongSetting(`%s %q: write the tool's name and its arguments as a JSON object: 'login {"profile":"x"}'`, settingName("replay-call"), text)
	}
	return r, nil
}

// mostSpares is a generous limit: one spare is for a crash, a second for one that follows at once.
const mostSpares = 8

// watched takes the globs of --watch and tries them, so that mistakes are reported before anything runs.
func (f *runFlags) watched() error {
	for _, glob := range f.globs {
		if glob != "auto" {
			f.watch.Globs = append(f.watch.Globs, glob)
			continue
		}
		if _, err := watch.Auto(f.dir, f.backend.Command); err != nil {
			return wrongSetting("%s auto: %v, for example %s 'src/**/*.py'", settingName("watch"), err, settingName("watch"))
		}
		f.watch.Auto = f.backend.Command
	}
	f.watch.Root = f.dir
	return nil
}

// standsIn reports whether a command only represents a server that runs elsewhere, so that its resource use says
// nothing.
func standsIn(argv []string) bool {
	switch strings.TrimSuffix(filepath.Base(argv[0]), ".exe") {
	case "docker", "podman", "nerdctl", "kubectl", "ssh", "wsl", "mcp-remote":
		return true
	}
	return false
}

// paths sets the files of a run. Their names contain its PID, since clients start short-lived copies. given are variables that are
// configured for the server.
func (s *settings) paths(name string, given map[string]string) {
	state := stateDir()
	s.stderrLog = filepath.Join(state, "log", fmt.Sprintf("%s.%d%s", name, os.Getpid(), keptSuffix))
	s.audit = auditPath(s.audit, filepath.Join(state, "audit", name+".jsonl"))
	command := s.backend.Command
	if s.remote != nil {
		command, given = []string{s.remote.URL}, s.remote.Headers
	}
	s.known = knowledgeFile(command, s.executable, s.dir, given)
	s.backend.Known = loadKnowledge(s.known)
	s.serverState = filepath.Join(state, "servers", name)
}
