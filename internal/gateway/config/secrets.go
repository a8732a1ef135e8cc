package config

import (
	"bytes"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/files/secret"
	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// Secrets returns the literal secrets in a file of any format that this package reads, for code that shows parts of
// the file. If the file cannot be parsed, it returns only what [secret.Find] sees.
func Secrets(name string, text []byte) secret.Known {
	s := fileerror.NewSource(name, bytes.TrimPrefix(text, []byte("\ufeff")))
	root, _ := tree.Read(syntaxOf(s), s)
	return secretsOf(root)
}

// secretsOf returns the values that messages must not show: those of keys whose name means a secret, and those that
// follow such a name in a command line. Values that look like secrets are recognised without it.
func secretsOf(root *tree.Node) secret.Known {
	var known secret.Known
	seen := map[*tree.Node]bool{} // YAML aliases share nodes, and may be cyclic
	var walk func(name string, n *tree.Node)
	walk = func(name string, n *tree.Node) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		var words []string
		for _, item := range n.Items() {
			walk(name, item)
			words = append(words, item.Raw)
		}
		known.AddWords(words)
		for _, f := range n.Members() {
			walk(f.Key, f)
		}
		if n.Kind != tree.Text && n.Kind != tree.Number {
			return
		}
		known.Add(name, n.Raw)
		known.Add(name, strings.TrimSuffix(fileerror.Shortened(n.Raw), "…")) // in the form in which messages quote it
		for line := range strings.Lines(n.Raw) {
			known.Add(name, strings.TrimSpace(line))
		}
	}
	walk("", root)
	return known
}
