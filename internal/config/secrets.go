package config

import (
	"bytes"
	"strings"

	"github.com/outlive-mcp/outlive/internal/problem"
	"github.com/outlive-mcp/outlive/internal/secret"
)

// Secrets are the literal secrets of a file of any format that is read here, for who shows a part of it. Of a file that cannot be
// read there are none but what [secret.Find] sees.
func Secrets(name string, text []byte) secret.Known {
	s := problem.NewSource(name, bytes.TrimPrefix(text, []byte("\ufeff")))
	root, _ := syntaxOf(s).parse(s)
	return secretsOf(root)
}

// secretsOf are the values of a file that messages must not show: what stands under a name of a secret, or behind one in a
// command line. What looks like a secret is found without.
func secretsOf(root *node) secret.Known {
	var known secret.Known
	seen := map[*node]bool{} // aliases share nodes, and may lead back
	var walk func(name string, n *node)
	walk = func(name string, n *node) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		var words []string
		for _, item := range n.items {
			walk(name, item)
			words = append(words, item.raw)
		}
		known.AddWords(words)
		for _, f := range n.fields {
			walk(f.key, f.value)
		}
		if n.kind != text && n.kind != number {
			return
		}
		known.Add(name, n.raw)
		known.Add(name, strings.TrimSuffix(problem.Shortened(n.raw), "…")) // as messages quote it
		for line := range strings.Lines(n.raw) {
			known.Add(name, strings.TrimSpace(line))
		}
	}
	walk("", root)
	return known
}
