package config

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// literal makes a glob that matches a name and nothing else.
var literal = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// toolFilter takes the tools that a client lets through. An empty list of such tools means none to every client.
func toolFilter(n *node) (allow, deny []string) {
	for _, k := range []string{"includeTools", "enabledTools", "tools", "enabled_tools"} {
		v := n.good(k)
		if v == nil || v.kind != list && v.kind != text {
			continue
		}
		names := texts(v)
		if len(names) == 0 {
			deny = append(deny, "*")
		}
		if slices.Contains(names, "*") {
			continue
		}
		for _, name := range names {
			name, _, _ = strings.Cut(name, "(") // Gemini CLI: tool(first argument)
			allow = append(allow, literal.Replace(name))
		}
	}
	for _, k := range []string{"excludeTools", "disabledTools", "disabled_tools"} {
		for _, name := range texts(n.good(k)) {
			deny = append(deny, literal.Replace(name))
		}
	}
	return allow, deny
}

// mostSeconds divides timeouts in seconds from those in milliseconds: Cline and Roo Code have 1 to 3600 seconds, Gemini CLI
// and Claude Code milliseconds, and nobody wants calls to end after less than four seconds.
const mostSeconds = 3600

// clientPolicy takes what a client says of time, and of files to watch.
func (r *reader) clientPolicy(own map[string]Setting, n *node) {
	for _, t := range []struct{ key, flag string }{
		{"startup_timeout_ms", "start-timeout"}, {"startup_timeout_sec", "start-timeout"},
		{"timeout", "call-timeout"}, {"tool_timeout_sec", "call-timeout"},
	} {
		v := n.good(t.key)
		if v == nil {
			continue
		}
		amount, err := strconv.ParseFloat(v.value, 64)
		unit := time.Second
		if t.key == "startup_timeout_ms" || t.key == "timeout" && amount > mostSeconds {
			unit = time.Millisecond
		}
		if d := time.Duration(amount * float64(unit)); err == nil && d > 0 {
			r.set(own, t.flag, v.pos, d.String())
		}
	}
	watch := n.good("watchPaths")
	if watch == nil {
		watch = n.good("dev").good("watch")
	}
	if globs := texts(watch); len(globs) > 0 {
		r.set(own, "watch", watch.pos, globs...)
	}
}
