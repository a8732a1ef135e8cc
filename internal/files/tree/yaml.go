package tree

import (
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
)

// readYAML parses a document. One that is edited needs more positions, and has no tree if it has no value.
func (d *Doc) readYAML(edited bool) []fileerror.Problem {
	var document yaml.Node
	if err := yaml.Load(d.text, &document); err != nil {
		if noDocument(err) {
			return nil
		}
		return []fileerror.Problem{explainYAML(d.source, err)}
	}
	if len(document.Content) == 0 || edited && isNull(document.Content[0]) {
		return nil
	}
	d.Root = d.yamlNode(document.Content[0], map[*yaml.Node]*Node{})
	if !edited {
		return nil
	}
	// Lines are separated by the same line breaks as in the other formats.
	plain := strings.NewReplacer("\r\n", "\n").Replace(string(d.text))
	if at := strings.IndexAny(plain, "\r\u0085\u2028\u2029"); at >= 0 {
		return []fileerror.Problem{{Pos: d.source.At(strings.IndexAny(string(d.text), "\r\u0085\u2028\u2029")), Message: "a line end that only YAML takes for one", Hint: byHand}}
	}
	d.placeYAML(d.Root, document.Content[0])
	return nil
}

func isNull(y *yaml.Node) bool { return y.Kind == yaml.ScalarNode && y.Tag == "!!null" }

// yamlNode converts a node, without the positions that edits need.
func (d *Doc) yamlNode(y *yaml.Node, known map[*yaml.Node]*Node) *Node {
	n := &Node{Raw: y.Value, Value: y.Value, Pos: d.posOf(y)}
	known[y] = n
	switch y.Kind {
	case yaml.AliasNode:
		n.Kind, n.alias = Text, known[y.Alias]
	case yaml.SequenceNode:
		n.Kind = List
		for _, c := range y.Content {
			n.Kids = append(n.Kids, d.yamlNode(c, known))
		}
	case yaml.MappingNode:
		n.Kind = Object
		for i := 0; i+1 < len(y.Content); i += 2 {
			key := y.Content[i]
			if key.Anchor != "" {
				d.yamlNode(key, known) // an alias of it may follow
			}
			kid := d.yamlNode(y.Content[i+1], known)
			kid.KeyPos = d.posOf(key)
			if key.Kind == yaml.AliasNode && key.Alias != nil {
				key = key.Alias
			}
			if kid.Key = key.Value; key.Kind != yaml.ScalarNode {
				kid.key = noText
			} else if key.Tag == "!!merge" {
				kid.key = merge
			}
			n.Kids = append(n.Kids, kid)
		}
	default:
		if n.Kind = kindOfTag(y.Tag); n.Kind == Bool {
			n.Value = strings.ToLower(y.Value) // True, TRUE
		}
	}
	return n
}

func (d *Doc) posOf(y *yaml.Node) fileerror.Pos {
	return d.source.Inside(fileerror.Pos{Line: y.Line, Column: y.Column})
}

// placeYAML sets the positions of a container's entries.
func (d *Doc) placeYAML(n *Node, y *yaml.Node) {
	n.start = d.offset(y)
	switch {
	case y.Kind != yaml.MappingNode && y.Kind != yaml.SequenceNode:
		return
	case y.Style&yaml.FlowStyle != 0:
		if n.start < len(d.text) && strings.IndexByte("[{", d.text[n.start]) >= 0 {
			d.place(n, d.group(n.start))
		}
		return
	}
	n.form = block
	for i, k := range n.Kids {
		k.up = n
		value := y.Content[i]
		if y.Kind == yaml.MappingNode {
			value = y.Content[2*i+1]
			k.from = d.offset(y.Content[2*i])
			k.sep, _ = d.separator(k.from, d.lineEnd(k.from))
		} else {
			at := d.offset(value)
			k.from = d.lineStart(at) + strings.LastIndexByte(string(d.text[d.lineStart(at):at]), '-')
			k.sep = k.from + 1
			if k.from < d.lineStart(at) || isNull(value) {
				k.sep = -1
			}
		}
		if k.sep < 0 {
			continue
		}
		k.placed, k.name = true, k.from
		k.stop = d.entryStop(k.from, value.Kind == yaml.SequenceNode && y.Kind == yaml.MappingNode)
		d.placeValue(k, value)
	}
}

// offset is where a node begins.
func (d *Doc) offset(y *yaml.Node) int { return d.source.Offset(d.posOf(y)) }

// placeValue finds the value of an entry of a block.
func (d *Doc) placeValue(k *Node, y *yaml.Node) {
	k.start, k.end = k.sep, k.sep
	if isNull(y) && y.Value == "" {
		k.property = y.Anchor != ""
		return
	}
	at := d.offset(y)
	if begin, _ := d.blank(k.sep); begin != at || y.Anchor != "" || at >= len(d.text) || d.text[at] == '!' {
		k.property = true
		return
	}
	k.start, k.end = at, d.trimmed(at, max(at, k.stop))
	first := d.lineEnd(at)
	switch c := d.text[at]; {
	case y.Kind == yaml.MappingNode || y.Kind == yaml.SequenceNode:
		d.placeYAML(k, y)
	case c == '"' || c == '\'':
		k.end = d.quoteEnd(at)
	case c == '|' || c == '>':
	case k.stop > first && k.alias == nil: // a plain text of several lines
		k.property = strings.Contains(string(d.text[at:k.end]), " #")
	default:
		if i := strings.Index(string(d.text[at:k.end]), " #"); i >= 0 {
			k.end = d.trimmed(at, at+i)
		}
	}
}

// entryStop is the end of the last line of an entry that begins at from; a list may have the same indentation as its
// key.
func (d *Doc) entryStop(from int, list bool) int {
	indent, stop := d.column(from), d.lineEnd(from)
	for at := stop; at < len(d.text); at = d.lineEnd(at) {
		line := string(d.text[at:d.lineEnd(at)])
		text := strings.TrimSpace(line)
		switch in := indentOf(line); {
		case text == "":
			continue
		case in < indent, in == indent && !(list && (text == "-" || strings.HasPrefix(text, "- "))):
			return stop
		}
		stop = d.lineEnd(at)
	}
	return stop
}

// kindOfTag is the kind of a scalar with this tag.
func kindOfTag(tag string) Kind {
	switch tag {
	case "!!null":
		return Null
	case "!!bool":
		return Bool
	case "!!int", "!!float":
		return Number
	}
	return Text
}
