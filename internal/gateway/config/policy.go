package config

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// settings reads the policy keys of an object, by flag.
func (r *reader) settings(n *tree.Node) map[string]Setting {
	found := map[string]Setting{}
	for _, k := range r.opts.Keys {
		f := n.Get(keyOf(k.Name))
		if f == nil || f.Bad || f.Kind == tree.Null {
			continue
		}
		found[k.Name] = Setting{Key: k.Name, Values: f.Texts(), Pos: f.Pos}
	}
	return found
}

// policy merges a server's own settings with the defaults, in the order of Options.Keys.
func (r *reader) policy(defaults, own map[string]Setting) []Setting {
	var all []Setting
	for _, k := range r.opts.Keys {
		if s, ok := own[k.Name]; ok {
			all = append(all, s)
		} else if s, ok := defaults[k.Name]; ok {
			all = append(all, s)
		}
	}
	return all
}

// set adds a setting that a client expresses in its own way, if there is such a policy key.
func (r *reader) set(own map[string]Setting, flag string, at fileerror.Pos, values ...string) {
	if slices.ContainsFunc(r.opts.Keys, func(k PolicyKey) bool { return k.Name == flag }) {
		own[flag] = Setting{Key: flag, Values: values, Pos: at}
	}
}

func settingOf(policy []Setting, flag string) *Setting {
	for i := range policy {
		if policy[i].Key == flag && len(policy[i].Values) == 1 {
			return &policy[i]
		}
	}
	return nil
}

// checkPolicy finds settings that contradict each other. A server that cannot run twice has neither spares nor
// instances.
func (r *reader) checkPolicy(s *Server, instances fileerror.Pos) {
	replace := ""
	if v := settingOf(s.Policy, "compat"); v != nil && v.Values[0] == "watchdog" {
		replace = "compat: watchdog"
	}
	if v := settingOf(s.Policy, "reload"); v != nil {
		replace = ""
		if v.Values[0] == "replace" {
			replace = "reload: replace"
		}
	}
	if replace == "" {
		return
	}
	if v := settingOf(s.Policy, "standby"); v != nil && v.Values[0] != "0" {
		if n, err := strconv.Atoi(v.Values[0]); err == nil && n > 0 {
			r.Problem(v.Pos, fmt.Sprintf("standby %d of %s contradicts %s", n, s.Name, replace), "a server that cannot run twice has no spare: set standby: 0")
		}
	}
	if s.Instances > 1 {
		r.Problem(instances, fmt.Sprintf("instances %d of %s contradicts %s", s.Instances, s.Name, replace), "a server that cannot run twice has one instance")
	}
}
