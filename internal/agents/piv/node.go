package piv

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// parse returns the document and its mapping. An empty file has neither content nor a mapping.
func parse(text []byte) (document, root *yaml.Node, err error) {
	if len(text) > SizeLimit {
		return nil, nil, fmt.Errorf("%w: it has %d bytes, more than %d", ErrBroken, len(text), SizeLimit)
	}
	document = &yaml.Node{}
	if err := yaml.Load(text, document); err != nil {
		if strings.Contains(err.Error(), "no documents in stream") {
			return emptyDocument(), nil, nil
		}
		return nil, nil, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	if len(document.Content) == 0 || isNull(document.Content[0]) {
		return emptyDocument(), nil, nil
	}
	root = document.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, nil, fmt.Errorf("%w: line %d: it is no mapping", ErrBroken, root.Line)
	}
	return document, root, nil
}

func emptyDocument() *yaml.Node {
	return &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode, Tag: "!!map"}}}
}

// resolve follows an alias, once: an alias of an alias does not exist, and what contains itself is nothing of PIV's.
func resolve(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// member is the value of a key of a mapping, or nil.
func member(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return resolve(n.Content[i+1])
		}
	}
	return nil
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// scalar is a member's text as it stands there; "" for null, for nothing and for what is no scalar.
func scalar(n *yaml.Node, key string) string {
	v := member(n, key)
	if v == nil || v.Kind != yaml.ScalarNode || isNull(v) {
		return ""
	}
	return v.Value
}

// number is a member that is a whole number; absent for null and for nothing.
func number(n *yaml.Node, key string, absent int) (int, error) {
	v := member(n, key)
	if v == nil || isNull(v) {
		return absent, nil
	}
	i, err := strconv.Atoi(v.Value)
	if v.Kind != yaml.ScalarNode || err != nil {
		return absent, fmt.Errorf("line %d: %s is no whole number", v.Line, key)
	}
	return i, nil
}

func yes(n *yaml.Node, key string) bool { return strings.EqualFold(scalar(n, key), "true") }

// items are the mappings of a member that is a list.
func items(n *yaml.Node, key string) []*yaml.Node {
	v := member(n, key)
	if v == nil || v.Kind != yaml.SequenceNode {
		return nil
	}
	var list []*yaml.Node
	for _, c := range v.Content {
		if c = resolve(c); c != nil && c.Kind == yaml.MappingNode {
			list = append(list, c)
		}
	}
	return list
}

// set gives a member of a mapping a new scalar, in place: comments stay, and so does its place. An alias is replaced,
// because what it stands for is somebody else's.
func set(n *yaml.Node, key, value, tag string) {
	fresh := &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != key {
			continue
		}
		old := n.Content[i+1]
		fresh.HeadComment, fresh.LineComment, fresh.FootComment = old.HeadComment, old.LineComment, old.FootComment
		if old.Tag == tag {
			fresh.Style = old.Style
		}
		n.Content[i+1] = fresh
		return
	}
	n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, fresh)
}
