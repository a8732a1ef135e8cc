package roster

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v4"

	"github.com/outlive-mcp/outlive/internal/pattern"
	"github.com/outlive-mcp/outlive/internal/problem"
)

// agentKeys is what an agent, or the defaults of all, may have.
func agentKeys(a *Agent, home string) []key {
	e := &a.Expect
	return []key{
		{name: "kind", shape: word(&a.Kind, Kinds()), doc: "what the agent is; decides which of its own files are read"},
		{name: "match", doc: "which processes and sessions are its own", shape: object(
			key{name: "cwd", shape: given(&a.Match.CWD, yes), doc: "a process that runs in the agent's path is its own"},
			key{name: "session", shape: text(&a.Match.Session, "", notEmpty), doc: "auto, or the id of one session"},
			key{name: "pidfile", shape: text(&a.Match.PIDFile, "", notEmpty), doc: "a file with its process number, relative to the path"},
			key{name: "user", shape: given(&a.Match.User, func(n *int) shape { return count(n, 0, 1<<31-1) }), doc: "the number of the user whose processes are its own; the monitor's when left out"},
		)},
		{name: "start", doc: "how it is brought up and spoken to", shape: object(
			key{name: "cmd", shape: command(&a.Start.Cmd), doc: "program and arguments of a new run"},
			key{name: "resume", shape: command(&a.Start.Resume), doc: "goes on with a session; {session}, {preamble} and {phase} are filled in"},
			key{name: "nudge", shape: command(&a.Start.Nudge), doc: "hands a text to a running session; {session} and {text} are filled in"},
			key{name: "env", shape: environment(&a.Start.Env), doc: "added to the environment"},
			key{name: "terminal", shape: given(&a.Start.Terminal, yes), doc: "cmd and resume get a terminal that outlive agent attach joins; when left out, CLIs that are worked with at one do"},
		)},
		{name: "signals", shape: list(&a.Signals, anyOf(Signals()), oneOf(Signals())), doc: "which evidence counts; all when left out"},
		{name: "expect", doc: "how long what may take", shape: object(
			key{name: "beat", shape: duration(&e.Beat), doc: "between two heartbeats"},
			key{name: "stale", shape: duration(&e.Stale), doc: "age at which a heartbeat means that something is wrong"},
			key{name: "startup", shape: duration(&e.Startup), doc: "until there is any sign of a session"},
			key{name: "attended", shape: duration(&e.Attended), doc: "how long after a person last typed in its session nothing is done to its process; default 30m"},
			key{name: "model_silent", shape: duration(&e.ModelSilent), doc: "of a call to a model without an answer"},
			key{name: "tool", shape: duration(&e.Tool), doc: "of one tool, while nothing below it works"},
			key{name: "task", shape: duration(&e.Task), doc: "for a background task that is dead; default 5m"},
			key{name: "waiting", shape: duration(&e.Waiting), doc: "for a human, until that is told"},
			key{name: "progress", shape: duration(&e.Progress), doc: "without any change that shows"},
			key{name: "max_cost_usd", shape: amount(&e.MaxCostUSD), doc: "US dollars of a session, as far as its CLI writes them: Claude Code when a run of it ends, Codex never"},
			key{name: "done", doc: "how a finished agent looks", shape: object(
				key{name: "exit", shape: given(&e.Done.Exit, func(n *int) shape { return count(n, 0, 255) }), doc: "its exit status"},
				key{name: "manifest", shape: word(&e.Done.Manifest, []string{"complete"}), doc: "every phase of the manifest is complete"},
			)},
		)},
		{name: "policy", shape: perClass(&a.Policy, rungs), doc: "what is tried for which class of stalls, in this order"},
		{name: "budget", doc: "how much may be tried", shape: object(
			key{name: "per_class", shape: perClass(&a.Budget.PerClass, limit), doc: "such as 5/1h or 2/phase"},
			key{name: "global", shape: limit(&a.Budget.Global), doc: "over all agents, such as 1/60s; no limit when left out"},
			key{name: "at_once", doc: "how many agents may be starting at the same time, over all agents", shape: object(
				key{name: "host", shape: count(&a.Budget.AtOnce.Host, 1, 1000), doc: "on this machine; 6 when left out"},
				key{name: "account", shape: count(&a.Budget.AtOnce.Account, 1, 1000), doc: "of one kind, whose agents share an account; 3 when left out"},
			)},
			key{name: "kill_grace", shape: duration(&a.Budget.KillGrace), doc: "between asking a process to end and making it"},
			key{name: "stable_after", shape: duration(&a.Budget.StableAfter), doc: "of health, until the ladder begins from below again"},
		)},
		{name: "escalate", doc: "whom to tell, and when again", shape: object(
			key{name: "to", shape: channelNames(&a.Escalate.To), doc: "names of channels"},
			key{name: "ack_timeout", shape: duration(&a.Escalate.AckTimeout), doc: "without an acknowledgement, until next is told"},
			key{name: "repeat", shape: duration(&a.Escalate.Repeat), doc: "between two reminders"},
			key{name: "next", shape: channelNames(&a.Escalate.Next), doc: "names of channels"},
			key{name: "quiet", shape: list(&a.Escalate.Quiet, patterned(quietPattern), checkQuiet), doc: "hours in which only what is critical is told, such as 23:00-07:00 critical-only"},
			key{name: "max", shape: count(&a.Escalate.Max, 1, 1000), doc: "how often it is told at most"},
		)},
		{name: "notify_done", shape: yes(&a.NotifyDone), doc: "true: one message when it has finished, or has had nothing to do for a minute"},
	}
}

// ownKeys are those that only an agent has, not the defaults.
func ownKeys(a *Agent, home string) []key {
	keys := []key{
		{name: "path", shape: path(&a.Path, home), doc: "its directory: absolute, or beginning with ~/"},
		{name: "paused", shape: yes(&a.Paused), doc: "true: nothing is done about it"},
	}
	for _, name := range []string{"name", "status", "heartbeat", "orchestrator_pid", "current_phase", "last_completed_phase", "registered_at", "piv_commands_version"} {
		keys = append(keys, key{name: name, shape: ignored(), doc: "S4's, at run time"})
	}
	return keys
}

// ignored is known and means nothing here.
func ignored() shape {
	return shape{read: func(*reader, value) {}, group: true, schema: func() *jsonschema.Schema { return &jsonschema.Schema{} }}
}

func rungs(to *[]string) shape { return list(to, anyOf(Rungs()), oneOf(Rungs())) }

func patterned(p string) func() *jsonschema.Schema {
	return func() *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Pattern: p} }
}

// channelNames are looked up once all channels are known.
func channelNames(to *[]string) shape {
	s := list(to, patterned(channelPattern), checkChannel)
	inner := s.read
	s.read = func(r *reader, v value) {
		inner(r, v)
		nodes := v.Content
		if v.Kind == yaml.ScalarNode {
			nodes = []*yaml.Node{v.Node}
		}
		for _, n := range nodes {
			if n = resolve(n); n.Kind == yaml.ScalarNode {
				r.mentions = append(r.mentions, value{n, v.label})
			}
		}
	}
	return s
}

// matching is a check that is nothing but a pattern.
func matching(p *pattern.Pattern, message, hint string) func(string) (string, string) {
	return func(s string) (string, string) {
		if p.MatchString(s) {
			return "", ""
		}
		return message, hint
	}
}

// The forms of texts.
const (
	channelPattern = `^[A-Za-z0-9][A-Za-z0-9_:-]{0,63}$`
	hourPattern    = `^([01][0-9]|2[0-3]):[0-5][0-9]$`
	quietPattern   = `^([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9]( critical-only)?$`
	envPattern     = `^[A-Za-z_][A-Za-z0-9_]*$`
)

// The checks of those forms.
var (
	checkChannel = matching(pattern.New(channelPattern), "is no channel's name", "use letters, digits, dash, underscore and colon")
	checkHour    = matching(pattern.New(hourPattern), "is no time of day", `write it like "08:00"`)
	checkQuiet   = matching(pattern.New(quietPattern), "is no quiet time", "write it like 23:00-07:00 critical-only")
	checkEnv     = matching(pattern.New(envPattern), "is no name of a variable", "use letters, digits and underscore")
)

// ValidVariable reports what is wrong with the name of an environment variable.
func ValidVariable(name string) error {
	if message, hint := checkEnv(name); message != "" {
		return fmt.Errorf("%q %s: %s", problem.Shortened(name), message, hint)
	}
	return nil
}

func notEmpty(s string) (message, hint string) {
	if strings.TrimSpace(s) == "" || strings.ContainsRune(s, 0) {
		return "is empty", "write a value, or remove the key"
	}
	return "", ""
}

func environment(to *map[string]string) shape {
	return dict(func(r *reader, f field, label string) {
		if message, hint := checkEnv(f.name); message != "" {
			r.wrong(f.key, hint, "%s: %q %s", label, problem.Shortened(f.name), message)
			return
		}
		if *to == nil {
			*to = map[string]string{}
		}
		if isNull(f.value) { // a variable that is set to nothing
			(*to)[f.name] = ""
		} else if s, ok := r.scalar(value{f.value, label}, noNUL); ok {
			(*to)[f.name] = s
		}
	}, patterned(envPattern), func() *jsonschema.Schema {
		return &jsonschema.Schema{Types: []string{"string", "number", "boolean", "null"}}
	})
}

func noNUL(s string) (message, hint string) {
	if strings.ContainsRune(s, 0) {
		return "has a NUL character", "no program can take it"
	}
	return "", ""
}

func path(to *string, home string) shape {
	s := text(to, `^(/|~/|~$|[A-Za-z]:[\\/]|\\\\)`, func(s string) (string, string) {
		switch {
		case strings.ContainsRune(s, 0):
			return "has a NUL character", ""
		case (s == "~" || strings.HasPrefix(s, "~/")) && home != "":
			return "", ""
		case !filepath.IsAbs(s):
			return "is not absolute", "write the whole path, or begin it with ~/"
		}
		return "", ""
	})
	inner := s.read
	s.read = func(r *reader, v value) {
		if inner(r, v); *to == "~" || strings.HasPrefix(*to, "~/") {
			*to = filepath.Join(home, strings.TrimPrefix(*to, "~"))
		}
	}
	return s
}

// checkListen lets every address pass that can be one; whether others can reach it is a warning's business.
func checkListen(s string) (message, hint string) {
	_, port, err := net.SplitHostPort(s)
	if n, bad := strconv.Atoi(port); err != nil || bad != nil || n < 0 || n > 65535 {
		return "is no host:port", "write it like 127.0.0.1:8377"
	}
	return "", ""
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}

func checkURL(s string) (message, hint string) {
	if message, hint := checkReferences(s); message != "" || strings.Contains(s, "${") {
		return message, hint
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "is no URL", "write it like https://hc-ping.example/your-uuid"
	}
	return "", ""
}

var scheme = pattern.New(`^[a-z][a-z0-9+.-]*://.`)

// checkAddress never quotes more than the caller does: a channel's address may hold a token.
func checkAddress(s string) (message, hint string) {
	program, isCommand := strings.CutPrefix(s, "exec:")
	switch {
	case s == "telegram":
		return "", ""
	case isCommand && strings.TrimSpace(program) == "":
		return "names no program", "write exec: and a command"
	case isCommand, scheme.MatchString(s), strings.HasPrefix(s, "${"):
		return checkReferences(s)
	}
	return "is no address of a channel", fmt.Sprintf("want telegram, exec:COMMAND, a service's URL such as ntfy://host/topic, or a reference such as ${%s}", "NTFY_URL")
}
