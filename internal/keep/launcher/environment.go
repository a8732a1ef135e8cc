package launcher

import (
	"os"
	"slices"
	"strings"
)

// Environment is what a launcher changed in the environment it was given. Unchanged values are not in it, so that a
// secret that was passed to the launcher is not stored a second time.
type Environment struct {
	Set    []string `json:"set,omitempty"`    // NAME=value, sorted
	Unset  []string `json:"unset,omitempty"`  // names, sorted
	Before []string `json:"before,omitempty"` // NAME=text that was prepended with its separator, as in PATH; sorted
}

// Apply returns base with the changes made. base is NAME=value, where the last of equal names counts; it is not
// modified.
func (e Environment) Apply(base []string) []string {
	set := map[string]string{}
	for _, kv := range e.Set {
		name, value, _ := strings.Cut(kv, "=")
		set[name] = value
	}
	before := map[string]string{}
	for _, kv := range e.Before {
		name, text, _ := strings.Cut(kv, "=")
		before[name] = text
	}
	had := asMap(base)
	out := make([]string, 0, len(base)+len(e.Set))
	for _, kv := range base {
		name, value, _ := strings.Cut(kv, "=")
		if _, changed := set[name]; changed || slices.Contains(e.Unset, name) {
			continue
		}
		out = append(out, name+"="+before[name]+value)
	}
	for _, kv := range e.Before {
		if name, text, _ := strings.Cut(kv, "="); had[name] == nil {
			out = append(out, name+"="+strings.TrimSuffix(text, string(os.PathListSeparator)))
		}
	}
	return append(out, e.Set...)
}

// ours is the prefix of outlive's own variables, which are set at each start.
const ours = "OUTLIVE_"

// changes compares the launcher's environment with the server's.
func changes(given, got []string) Environment {
	var e Environment
	old, now := asMap(given), asMap(got)
	for name, value := range now {
		was := old[name]
		switch {
		case strings.HasPrefix(name, ours), name == "_", was != nil && *was == *value:
		case was != nil && *was != "" && strings.HasSuffix(*value, string(os.PathListSeparator)+*was):
			e.Before = append(e.Before, name+"="+strings.TrimSuffix(*value, *was))
		default:
			e.Set = append(e.Set, name+"="+*value)
		}
	}
	for name := range old {
		if now[name] == nil && !strings.HasPrefix(name, ours) && name != "_" {
			e.Unset = append(e.Unset, name)
		}
	}
	slices.Sort(e.Set)
	slices.Sort(e.Unset)
	slices.Sort(e.Before)
	return e
}

// asMap returns the values by name; entries without a name are left out.
func asMap(env []string) map[string]*string {
	m := make(map[string]*string, len(env))
	for _, kv := range env {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" {
			m[name] = &value
		}
	}
	return m
}
