package registry

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// ErrUnknown is wrapped by the errors about an agent that is not declared.
var ErrUnknown = errors.New("no such agent")

// ErrExists is wrapped by the error about an agent that is declared already.
var ErrExists = errors.New("is declared already")

// Document is a registry while [Edit] changes it. It is edited by package tree: comments, order, blank lines and unknown
// keys are kept.
type Document struct{ doc *tree.Doc }

// newDocument opens a registry's text. One without keys gets its version.
func newDocument(text []byte) (*Document, error) {
	doc, err := tree.Open(tree.YAML, "registry", text)
	if err == nil && doc.Root == nil {
		doc, err = tree.Open(tree.YAML, "registry", append(slices.Clip(text), "version: 2\n"...))
	}
	return &Document{doc}, err
}

// Add declares an agent. Its other keys are set with [Document.Set].
func (d *Document) Add(name string, kind Kind, path string) error {
	if err := heartbeat.ValidName(name); err != nil {
		return fmt.Errorf("add agent: %w", err)
	}
	if d.has(name) {
		return fmt.Errorf("add agent %s: it %w", name, ErrExists)
	}
	entry := tree.Map{{Key: "kind", Value: string(kind)}}
	if path != "" {
		entry = slices.Insert(entry, 0, tree.Member{Key: "path", Value: path})
	}
	return d.set(entry, "agents", name)
}

// Remove removes an agent, and the comment directly above it.
func (d *Document) Remove(name string) error {
	if !d.has(name) {
		return fmt.Errorf("remove %s: %w", name, ErrUnknown)
	}
	return d.set(nil, "agents", name)
}

// Set sets a key of an agent, as in Set("shop", true, "paused") or Set("shop", 6*time.Minute, "expect", "stale"). The
// value is a bool, an int, a float64, a string, a [time.Duration], a [Kind], a [recovery.Budget], a []string, or nil, which
// removes the key.
func (d *Document) Set(agent string, v any, key ...string) error {
	if !d.has(agent) {
		return fmt.Errorf("set %s of %s: %w", strings.Join(key, "."), agent, ErrUnknown)
	}
	return d.set(v, append([]string{"agents", agent}, key...)...)
}

func (d *Document) set(v any, path ...string) (err error) {
	path = written(d.doc.Root, path)
	switch value := v.(type) {
	case nil:
		err = d.doc.Delete(path...)
	case Kind:
		err = d.doc.Set(string(value), path...)
	case time.Duration:
		err = d.doc.Set(recovery.FormatDuration(value), path...)
	case recovery.Budget:
		err = d.doc.Set(value.String(), path...)
	case bool, int, float64, string, []string, tree.Map, tree.Raw:
		err = d.doc.Set(value, path...)
	default:
		err = fmt.Errorf("a registry cannot hold a %T", v)
	}
	if err != nil {
		return fmt.Errorf("change %s: %w", strings.Join(path, "."), err)
	}
	return nil
}

func (d *Document) has(name string) bool {
	return d.doc.Root.At(written(d.doc.Root, []string{"agents", name})...) != nil
}

// written returns the keys of a path in this registry's spelling: each may have PIV's name for it.
func written(n *tree.Node, path []string) []string {
	path = slices.Clone(path)
	for i, key := range path {
		for _, name := range []string{camel(key), map[string]string{"agents": "projects"}[key]} {
			if n.Get(key) == nil && n.Get(name) != nil {
				path[i] = name
			}
		}
		n = n.Get(path[i])
	}
	return path
}
