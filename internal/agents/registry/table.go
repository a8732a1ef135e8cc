package registry

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
	"github.com/outlive-mcp/outlive/internal/files/schema"
	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// agentKeys are the keys that an agent, and the defaults of all agents, may have.
func (r *reader) agentKeys(a *Agent) []schema.Key {
	e := &a.Expect
	return []schema.Key{
		{Name: "kind", Shape: word(&a.Kind, Kinds()), Doc: "what the agent is; decides which of its own files are read"},
		{Name: "match", Doc: "which processes and sessions are its own", Shape: object(
			schema.Key{Name: "cwd", Shape: given(&a.Match.CWD, yes), Doc: "a process that runs in the agent's path is its own"},
			schema.Key{Name: "session", Shape: text(&a.Match.Session, filledForm), Doc: "auto, or the id of one session"},
			schema.Key{Name: "pidfile", Shape: text(&a.Match.PIDFile, filledForm), Doc: "a file with its process number, relative to the path"},
			schema.Key{Name: "user", Shape: given(&a.Match.User, func(n *int) *schema.Shape { return count(n, 0, 1<<31-1) }), Doc: "the number of the user whose processes are its own; the monitor's when left out"},
		)},
		{Name: "start", Doc: "how it is brought up and spoken to", Shape: object(
			schema.Key{Name: "cmd", Shape: r.command(&a.Start.Cmd), Doc: "program and arguments of a new run"},
			schema.Key{Name: "resume", Shape: r.command(&a.Start.Resume), Doc: "goes on with a session; {session}, {preamble} and {phase} are filled in"},
			schema.Key{Name: "nudge", Shape: r.command(&a.Start.Nudge), Doc: "hands a text to a running session; {session} and {text} are filled in"},
			schema.Key{Name: "env", Shape: environment(&a.Start.Env), Doc: "added to the environment"},
			schema.Key{Name: "terminal", Shape: given(&a.Start.Terminal, yes), Doc: "cmd and resume get a terminal that outlive agent attach joins; when left out, CLIs that are worked with at one do"},
		)},
		{Name: "signals", Shape: list(&a.Signals, oneOf(Signals())), Doc: "which evidence counts; all when left out"},
		{Name: "expect", Doc: "how long what may take", Shape: object(
			schema.Key{Name: "beat", Shape: duration(&e.Beat), Doc: "between two heartbeats"},
			schema.Key{Name: "stale", Shape: duration(&e.Stale), Doc: "age at which a heartbeat means that something is wrong"},
			schema.Key{Name: "startup", Shape: duration(&e.Startup), Doc: "until there is any sign of a session"},
			schema.Key{Name: "attended", Shape: duration(&e.Attended), Doc: "how long after a person last typed in its session, or joined its terminal, nothing is done to its process; default 30m"},
			schema.Key{Name: "model_silent", Shape: duration(&e.ModelSilent), Doc: "of a call to a model without an answer"},
			schema.Key{Name: "tool", Shape: duration(&e.Tool), Doc: "of one tool, while nothing below it works"},
			schema.Key{Name: "task", Shape: duration(&e.Task), Doc: "for a background task that is dead; default 5m"},
			schema.Key{Name: "waiting", Shape: duration(&e.Waiting), Doc: "for a human, until that is told"},
			schema.Key{Name: "progress", Shape: duration(&e.Progress), Doc: "without any change that shows"},
			schema.Key{Name: "max_cost_usd", Shape: amount(&e.MaxCostUSD), Doc: "US dollars of a session, as far as its CLI writes them; not all do"},
			schema.Key{Name: "done", Doc: "how a finished agent looks", Shape: object(
				schema.Key{Name: "exit", Shape: exitStatus(&e.Done.Exit), Doc: "its exit status; never: none means that it is done. When left out, 0 does for a command, and for a CLI that works on one prompt"},
				schema.Key{Name: "manifest", Shape: word(&e.Done.Manifest, []string{"complete"}), Doc: "every phase of the manifest is complete"},
			)},
		)},
		{Name: "policy", Shape: perClass(&a.Policy, r.ladder), Doc: "what is tried for which class of stalls, in this order"},
		{Name: "budget", Doc: "how much may be tried", Shape: object(
			schema.Key{Name: "per_class", Shape: perClass(&a.Budget.PerClass, limit), Doc: "such as 5/1h or 2/phase"},
			schema.Key{Name: "global", Shape: limit(&a.Budget.Global), Doc: "over all agents, such as 1/60s; no limit when left out"},
			schema.Key{Name: "at_once", Doc: "how many agents may be starting at the same time, over all agents", Shape: object(
				schema.Key{Name: "host", Shape: count(&a.Budget.AtOnce.Host, 1, 1000), Doc: "on this machine; 6 when left out"},
				schema.Key{Name: "account", Shape: count(&a.Budget.AtOnce.Account, 1, 1000), Doc: "of one kind, whose agents share an account; 3 when left out"},
			)},
			schema.Key{Name: "kill_grace", Shape: durationUpTo(&a.Budget.KillGrace, time.Minute), Doc: "between asking a process to end and making it; 2s when left out, at most 1m, for which nothing else is looked at"},
			schema.Key{Name: "stable_after", Shape: duration(&a.Budget.StableAfter), Doc: "of health, until the ladder begins from below again"},
		)},
		{Name: "escalate", Doc: "whom to tell, and when again", Shape: object(
			schema.Key{Name: "to", Shape: r.channelNames(&a.Escalate.To), Doc: "names of channels; all but those of next when left out"},
			schema.Key{Name: "ack_timeout", Shape: duration(&a.Escalate.AckTimeout), Doc: "without an acknowledgement, until next is told"},
			schema.Key{Name: "repeat", Shape: duration(&a.Escalate.Repeat), Doc: "between two reminders"},
			schema.Key{Name: "next", Shape: r.channelNames(&a.Escalate.Next), Doc: "names of channels"},
			schema.Key{Name: "quiet", Shape: list(&a.Escalate.Quiet, &schema.Shape{Kind: schema.Text, Form: quietForm}), Doc: "hours in which only what is critical is told, such as 23:00-07:00 critical-only, or 00:00-24:00"},
			schema.Key{Name: "max", Shape: count(&a.Escalate.Max, 1, 1000), Doc: "how often it is told at most"},
		)},
		{Name: "notify_done", Shape: yes(&a.NotifyDone), Doc: "true: one message when it has finished, or has had nothing to do for a minute"},
	}
}

// keysOfAgent are all keys of an agent, including those that the defaults cannot have.
func (r *reader) keysOfAgent(a *Agent) []schema.Key {
	keys := []schema.Key{
		{Name: "path", Shape: r.path(&a.Path), Doc: "its directory: absolute, or beginning with ~/"},
		{Name: "paused", Shape: yes(&a.Paused), Doc: "true: nothing is done about it"},
	}
	for _, name := range []string{"name", "status", "heartbeat", "orchestrator_pid", "current_phase", "last_completed_phase", "registered_at", "piv_commands_version"} {
		keys = append(keys, schema.Key{Name: name, Shape: &schema.Shape{Kind: schema.Anything}, Doc: "a PIV registry has it; not used here"})
	}
	return append(keys, r.agentKeys(a)...)
}

// ladder reads the steps for a class. Of one that cannot be climbed is warned: what is done by default holds.
func (r *reader) ladder(to *recovery.Ladder) *schema.Shape {
	return &schema.Shape{Kind: schema.ListOrText, Of: oneOf(recovery.Rungs()), Null: true, Take: func(n *tree.Node, label string) {
		*to = nil
		for _, item := range items(n) {
			if item.Bad {
				*to = nil
				return // it was told
			}
			if item.Kind != tree.Null {
				*to = append(*to, recovery.Rung(item.Raw))
			}
		}
		if fault := to.Fault(); fault != "" {
			r.Warn(n.Pos, label+" counts as not declared, and what is done by default holds", fault)
			*to = nil
		}
	}}
}

// channelNames reads names of channels, which are checked once all channels are known.
func (r *reader) channelNames(to *[]string) *schema.Shape {
	return &schema.Shape{Kind: schema.ListOrText, Of: &schema.Shape{Kind: schema.Text, Form: channelForm}, Take: func(n *tree.Node, label string) {
		*to = texts(n)
		for _, item := range items(n) {
			r.mentions = append(r.mentions, mention{item, label})
		}
	}}
}

// The forms of texts.
var (
	channelForm = schema.Matching(lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_:-]{0,63}$`), "is not a channel name", "use letters, digits, dash, underscore and colon")
	hourForm    = schema.Matching(lazyregexp.New(`^([01][0-9]|2[0-3]):[0-5][0-9]$`), "is not a time of day", `write it like "08:00"`)
	quietForm   = &schema.Form{Pattern: quietText, Message: "is not a quiet time", Hint: "write it like 23:00-07:00 critical-only", Old: quietNever}
	envForm     = schema.Matching(lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`), "is not a variable name", "use letters, digits and underscore")
	filledForm  = &schema.Form{Judge: notEmpty}
	listenForm  = &schema.Form{Pattern: lazyregexp.New(`:[0-9]{1,5}$`), Judge: checkListen}
	addressForm = &schema.Form{Pattern: lazyregexp.New(`^(telegram$|exec:|[a-z][a-z0-9+.-]*://|\$\{)`), Judge: checkAddress, Old: withoutShell}
	urlForm     = &schema.Form{Pattern: lazyregexp.New(`^https?://|\$\{`), Judge: checkURL}
)

// quietText are hours of a day. The end may be the day's.
var quietText = lazyregexp.New(`^([01][0-9]|2[0-3]):[0-5][0-9]-(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)( critical-only)?$`)

// quietNever says of hours without a length that they are none.
func quietNever(s string) (message, hint string) {
	hours, _, _ := strings.Cut(s, " ")
	if from, to, _ := strings.Cut(hours, "-"); from != to {
		return "", ""
	}
	return "has no length and no effect", "write the whole day like 00:00-24:00"
}

// ValidVariable reports what is wrong with the name of an environment variable.
func ValidVariable(name string) error {
	if message, hint := envForm.Check(name); message != "" {
		return fmt.Errorf("%q %s: %s", fileerror.Shortened(name), message, hint)
	}
	return nil
}

func notEmpty(s string) (message, hint string) {
	if strings.TrimSpace(s) == "" || strings.ContainsRune(s, 0) {
		return "is empty", "write a value, or remove the key"
	}
	return "", ""
}

// environment reads variables. Their values may be empty.
func environment(to *map[string]string) *schema.Shape {
	value := anyText("null")
	value.Null, value.Form = true, &schema.Form{Judge: noNUL}
	return dict(envForm, value, func(f *tree.Node, _ string) {
		if *to == nil {
			*to = map[string]string{}
		}
		if (*to)[f.Key] = f.Raw; f.Kind == tree.Null {
			(*to)[f.Key] = ""
		}
	})
}

func noNUL(s string) (message, hint string) {
	if strings.ContainsRune(s, 0) {
		return "has a NUL character", "no program can take it"
	}
	return "", ""
}

func (r *reader) path(to *string) *schema.Shape {
	inHome := func(s string) bool { return (s == "~" || strings.HasPrefix(s, "~/")) && r.home != "" }
	form := &schema.Form{Pattern: lazyregexp.New(`^(/|~/|~$|[A-Za-z]:[\\/]|\\\\)`), Judge: func(s string) (message, hint string) {
		switch {
		case strings.ContainsRune(s, 0):
			return "has a NUL character", ""
		case !inHome(s) && !filepath.IsAbs(s):
			return "is not absolute", "write the whole path, or begin it with ~/"
		}
		return "", ""
	}}
	return &schema.Shape{Kind: schema.Text, Form: form, Take: func(n *tree.Node, _ string) {
		if *to = n.Raw; inHome(n.Raw) {
			*to = filepath.Join(r.home, strings.TrimPrefix(n.Raw, "~"))
		}
	}}
}

// checkListen accepts every valid address. Whether other machines can reach it is checked elsewhere, with a warning.
func checkListen(s string) (message, hint string) {
	_, port, err := net.SplitHostPort(s)
	if n, bad := strconv.Atoi(port); err != nil || bad != nil || n < 0 || n > 65535 {
		return "is not a host:port", "write it like 127.0.0.1:8377"
	}
	return "", ""
}

func checkURL(s string) (message, hint string) {
	if message, hint := checkReferences(s); message != "" || strings.Contains(s, "${") {
		return message, hint
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "is not a URL", "write it like https://hc-ping.example/your-uuid"
	}
	return "", ""
}

var scheme = lazyregexp.New(`^[a-z][a-z0-9+.-]*://.`)

// checkAddress quotes nothing of the address that its caller does not quote: it may contain a token.
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
	return "is not a channel address", fmt.Sprintf("want telegram, exec:COMMAND, a service's URL such as ntfy://host/topic, or a reference such as ${%s}", "NTFY_URL")
}

// needsShell matches what only a shell understands: a redirection, a pipe, a list, or a quote.
var needsShell = lazyregexp.New("^([0-9]?[<>]|[|&;'\"`])")

// withoutShell says of a command for a shell that there is none, and of a form of 0.1.0 that it is gone.
func withoutShell(address string) (message, hint string) {
	command, isCommand := strings.CutPrefix(address, "exec:")
	switch {
	case !isCommand:
		return "", ""
	case strings.HasPrefix(command, "//") && strings.Contains(command, "?"):
		return "has the form exec:///PROGRAM?arg=…, which is not read any more", "write exec: and a command"
	case !slices.ContainsFunc(strings.Fields(command), needsShell.MatchString):
		return "", ""
	}
	return "has what only a shell understands, and the program gets it as an argument", "name a script"
}
