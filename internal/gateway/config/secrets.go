package config

import (
	"bytes"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/files/secret"
	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// Secrets are the literal secrets of a file of any format that is read here, for who shows a part of it. Of a file that cannot be
// read there are none but what [secret.Find] sees.
func Secrets(name string, text []byte) secret.Known {
	s := fileerror.NewSource(name, bytes.TrimPrefix(text, []byte("\ufeff")))
	root, _ := syntaxOf(s).parse(s)
	return secretsOf(root)
}

// secretsOf are the values of a file that messages must not show: what stands under a name of a secret, or behind one in a
// command line. What looks like a secret is found without.
func secretsOf(root *tree.Node) secret.Known {
	var known secret.Known
	seen := map[*tree.Node]bool{} // aliases share nodes, and may lead back
	var walk func(name string, n *tree.Node)
	walk = func(name string, n *tree.Node) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		var words []string
		for _, item := range n.Items {
			walk(name, item)
			words = append(words, item.Raw)
		}
		known.AddWords(words)
		for _, f := range n.Fields {
			walk(f.Key, f.Value)
		}
		if n.Kind != tree.Text && n.Kind != tree.Number {
			return
		}
		known.Add(name, n.Raw)
		known.Add(name, strings.TrimSuffix(fileerror.Shortened(n.Raw), "…")) // as messages quote it
		for line := range strings.Lines(n.Raw) {
			known.Add(name, strings.TrimSpace(line))
		}
	}
	walk("", root)
	return known
}
