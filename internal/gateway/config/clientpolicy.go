package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// literal escapes a name so that, used as a glob, it matches only itself.
var literal = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// toolFilter reads which tools a client allows and denies. In every client an empty list of allowed tools allows
// none.
func toolFilter(n *tree.Node) (allow, deny []string) {
	for _, k := range []string{"includeTools", "enabledTools", "tools", "enabled_tools"} {
		v := n.Good(k)
		if v == nil || v.Kind != tree.List && v.Kind != tree.Text {
			continue
		}
		names := v.Texts()
		if len(names) == 0 {
			deny = append(deny, "*")
		}
		if slices.Contains(names, "*") {
			continue
		}
		for _, name := range names {
			name, _, _ = strings.Cut(name, "(") // Gemini CLI writes tool(first argument)
			allow = append(allow, literal.Replace(name))
		}
	}
	for _, k := range []string{"excludeTools", "disabledTools", "disabled_tools"} {
		for _, name := range n.Good(k).Texts() {
			deny = append(deny, literal.Replace(name))
		}
	}
	return allow, deny
}

// mostSeconds is the largest timeout that is read as seconds; larger values are milliseconds. Cline and Roo Code
// allow 1 to 3600 seconds; Gemini CLI and Claude Code use milliseconds, where timeouts below four seconds are not to
// be expected.
const mostSeconds = 3600

// clientPolicy reads a client's timeouts and its files to watch.
func (r *reader) clientPolicy(own map[string]Setting, n *tree.Node) {
	for _, t := range []struct{ key, flag string }{
		{"startup_timeout_ms", "start-timeout"}, {"startup_timeout_sec", "start-timeout"},
		{"timeout", "call-timeout"}, {"tool_timeout_sec", "call-timeout"},
	} {
		v := n.Good(t.key)
		if v == nil {
			continue
		}
		amount, err := strconv.ParseFloat(v.Value, 64)
		unit := time.Second
		if t.key == "startup_timeout_ms" || t.key == "timeout" && amount > mostSeconds {
			unit = time.Millisecond
		}
		if d := time.Duration(amount * float64(unit)); err == nil && d > 0 {
			r.set(own, t.flag, v.Pos, d.String())
		}
	}
	watch := cmp.Or(n.Good("watchPaths"), n.Good("dev").Good("watch"))
	if globs := watch.Texts(); len(globs) > 0 {
		r.set(own, "watch", watch.Pos, globs...)
	}
}
