package registry

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
)

// ErrUnknown is wrapped by the errors about an agent that is not declared.
var ErrUnknown = errors.New("no such agent")

// ErrExists is wrapped by the error about an agent that is declared already.
var ErrExists = errors.New("is declared already")

// Draft is a registry while [Edit] changes it. Each step changes the text where it has to; comments, order, blank lines and
// unknown keys stay.
type Draft struct {
	text []byte
}

// Add declares an agent. More is said with [Draft.Set].
func (d *Draft) Add(name string, kind Kind, path string) error {
	if err := heartbeat.ValidName(name); err != nil {
		return fmt.Errorf("add agent: %w", err)
	}
	if d.agent(name) != nil {
		return fmt.Errorf("add agent %s: it %w", name, ErrExists)
	}
	entry := mapping("kind", scalar(string(kind)))
	if path != "" {
		entry = mapping("path", scalar(path), "kind", scalar(string(kind)))
	}
	return d.put([]string{"agents", name}, entry)
}

// Remove takes an agent out, and the comment that stands directly above it.
func (d *Draft) Remove(name string) error {
	if d.agent(name) == nil {
		return fmt.Errorf("remove %s: %w", name, ErrUnknown)
	}
	return d.cut([]string{"agents", name})
}

// Set gives a key of an agent a value, such as Set("shop", true, "paused") or Set("shop", 6*time.Minute, "expect", "stale").
// The value is a bool, an int, a float64, a string, a [time.Duration], a [Kind], a [Limit], a []string, or nil, which takes the key away.
func (d *Draft) Set(agent string, v any, key ...string) error {
	if d.agent(agent) == nil {
		return fmt.Errorf("set %s of %s: %w", strings.Join(key, "."), agent, ErrUnknown)
	}
	return d.set(v, append([]string{"agents", agent}, key...))
}

func (d *Draft) set(v any, path []string) error {
	if v == nil {
		return d.cut(path)
	}
	n, err := encode(v)
	if err != nil {
		return fmt.Errorf("set %s: %w", strings.Join(path, "."), err)
	}
	return d.put(path, n)
}

// encode makes a node of a value.
func encode(v any) (*yaml.Node, error) {
	switch v := v.(type) {
	case string:
		return scalar(v), nil
	case Kind:
		return scalar(string(v)), nil
	case time.Duration:
		return scalar(FormatDuration(v)), nil
	case Limit:
		return scalar(v.String()), nil
	case bool, int, float64:
		n := &yaml.Node{}
		if err := n.Encode(v); err != nil {
			return nil, fmt.Errorf("encode %v: %w", v, err)
		}
		return n, nil
	case []string:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
		for _, s := range v {
			n.Content = append(n.Content, scalar(s))
		}
		return n, nil
	}
	return nil, fmt.Errorf("a %T is no value of a registry", v)
}

// scalar is a text, quoted where it would be something else without.
func scalar(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	n.Style &^= yaml.LiteralStyle | yaml.FoldedStyle
	return n
}

// mapping takes names and nodes in turn.
func mapping(content ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, c := range content {
		switch c := c.(type) {
		case string:
			n.Content = append(n.Content, scalar(c))
		case *yaml.Node:
			n.Content = append(n.Content, c)
		}
	}
	return n
}

// agent is an agent's entry, or nil.
func (d *Draft) agent(name string) *yaml.Node {
	document, err := load(d.text)
	if err != nil || document == nil {
		return nil
	}
	at := document.Content[0]
	for _, key := range []string{"agents", name} {
		i := index(at, key)
		if i < 0 {
			return nil
		}
		at = resolve(at.Content[i+1])
	}
	return at
}

// index finds a key of a mapping under any of its names; -1 when it is not there itself.
func index(n *yaml.Node, key string) int {
	if n.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := resolve(n.Content[i]).Value
		if name == key || name == camel(key) || key == "agents" && name == "projects" {
			return i
		}
	}
	return -1
}

// change does the same twice: once with nodes, which always works and says what the registry has to mean afterwards, and once
// with the text, which keeps blank lines and alignment. The second counts when it means the same as the first.
func (d *Draft) change(path []string, nodes func(root *yaml.Node) error, lines func(s *splice, root *yaml.Node) bool) error {
	document, err := load(d.text)
	if err != nil {
		return fmt.Errorf("change %s: %w", strings.Join(path, "."), err)
	}
	if document == nil {
		d.text = append(slices.Clip(d.text), "version: 2\n"...)
		if document, err = load(d.text); err != nil {
			return fmt.Errorf("change %s: %w", strings.Join(path, "."), err)
		}
	}
	s := newSplice(d.text)
	done := lines(s, document.Content[0])
	if err := nodes(document.Content[0]); err != nil {
		return fmt.Errorf("change %s: %w", strings.Join(path, "."), err)
	}
	if text := s.text(); done {
		if again, err := load(text); err == nil && again != nil && same(again.Content[0], document.Content[0]) {
			d.text = text
			return nil
		}
	}
	d.text, err = dump(document)
	return err
}

func dump(document *yaml.Node) ([]byte, error) {
	var out strings.Builder
	dumper, err := yaml.NewDumper(&out, yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err != nil {
		return nil, fmt.Errorf("write registry: %w", err)
	}
	if err := errors.Join(dumper.Dump(document), dumper.Close()); err != nil {
		return nil, fmt.Errorf("write registry: %w", err)
	}
	return []byte(out.String()), nil
}

func (d *Draft) put(path []string, v *yaml.Node) error {
	return d.change(path, func(root *yaml.Node) error {
		at := root
		for i, key := range path {
			k := index(at, key)
			switch {
			case k < 0:
				at.Content = append(at.Content, scalar(key), nest(path[i+1:], v))
				return nil
			case i == len(path)-1:
				v.LineComment, v.HeadComment, v.FootComment = at.Content[k+1].LineComment, at.Content[k+1].HeadComment, at.Content[k+1].FootComment
				at.Content[k+1] = v
				return nil
			case at.Content[k+1].Kind == yaml.AliasNode:
				return fmt.Errorf("%s is an alias, which others use too: write it out first", key)
			case isNull(at.Content[k+1]):
				at.Content[k+1] = nest(path[i+1:], v)
				return nil
			case at.Content[k+1].Kind != yaml.MappingNode:
				return fmt.Errorf("%s has no keys", key)
			}
			at = at.Content[k+1]
		}
		return nil
	}, func(s *splice, root *yaml.Node) bool { return s.put(root, path, clone(v)) })
}

// clone is a node for the dumper, which changes what it is given.
func clone(n *yaml.Node) *yaml.Node {
	fresh := *n
	fresh.Content = nil
	for _, c := range n.Content {
		fresh.Content = append(fresh.Content, clone(c))
	}
	return &fresh
}

// nest puts a value below the keys that lead to it.
func nest(path []string, v *yaml.Node) *yaml.Node {
	for _, key := range slices.Backward(path) {
		v = mapping(key, v)
	}
	return v
}

func (d *Draft) cut(path []string) error {
	return d.change(path, func(root *yaml.Node) error {
		at := root
		for i, key := range path {
			k := index(at, key)
			switch {
			case k < 0:
				return nil
			case i == len(path)-1:
				at.Content = slices.Delete(at.Content, k, k+2)
				return nil
			case at.Content[k+1].Kind == yaml.AliasNode:
				return fmt.Errorf("%s is an alias, which others use too: write it out first", key)
			}
			at = at.Content[k+1]
		}
		return nil
	}, func(s *splice, root *yaml.Node) bool { return s.cut(root, path) })
}

// same reports whether two nodes mean the same. The order of keys means nothing, and neither does whether what is empty says so.
func same(a, b *yaml.Node) bool {
	empty := func(n *yaml.Node) bool {
		return isNull(n) || n.Kind == yaml.MappingNode && len(n.Content) == 0
	}
	if empty(a) && empty(b) {
		return true
	}
	if a.Kind != b.Kind || a.Tag != b.Tag || a.Value != b.Value || a.Anchor != b.Anchor || len(a.Content) != len(b.Content) {
		return false
	}
	if a.Kind != yaml.MappingNode {
		return slices.EqualFunc(a.Content, b.Content, same)
	}
	for i := 0; i+1 < len(a.Content); i += 2 {
		found := false
		for j := 0; j+1 < len(b.Content) && !found; j += 2 {
			found = same(a.Content[i], b.Content[j]) && same(a.Content[i+1], b.Content[j+1])
		}
		if !found {
			return false
		}
	}
	return true
}
