package clients

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// ErrNoGateway is returned by [Client.Scatter] when the gateway's entry is no longer in the file.
var ErrNoGateway = errors.New("there is no entry of the gateway in the file any more")

// Scatter undoes [Client.Gather] in a file of the client. If nothing else was changed since, the result is byte for
// byte the previous file; otherwise the moved entries replace the gateway's, in their original form, and all other
// content is kept. A new entry with the name of a moved one is kept as well, and reported as [Left].
func (c *Client) Scatter(text []byte, r *Record) ([]byte, []Outcome, error) {
	if digest(text) == r.After {
		restored, err := tree.Apply(text, r.Undo)
		if err != nil {
			return nil, nil, fmt.Errorf("put back servers of %s: %w", c.Title, err)
		}
		servers, err := c.Servers(restored)
		if err != nil {
			return nil, nil, fmt.Errorf("put back servers of %s: %w", c.Title, err)
		}
		return restored, r.outcomes(servers), nil
	}
	var outcomes []Outcome
	for _, g := range r.Groups {
		doc, err := c.parse(text)
		if err != nil {
			return nil, nil, fmt.Errorf("put back servers of %s: %w", c.Title, err)
		}
		back, more, err := g.scatter(doc)
		if err != nil {
			return nil, nil, fmt.Errorf("put back servers of %s: %w", c.Title, err)
		}
		if text, err = tree.Apply(text, back); err != nil {
			return nil, nil, fmt.Errorf("put back servers of %s: %w", c.Title, err)
		}
		outcomes = append(outcomes, more...)
	}
	if _, err := c.parse(text); err != nil {
		return nil, nil, fmt.Errorf("put back servers of %s: %w: %w", c.Title, ErrUnsafe, err)
	}
	return text, outcomes, nil
}

// outcomes reports the moved entries that are back.
func (r *Record) outcomes(servers []Server) []Outcome {
	var outcomes []Outcome
	for _, g := range r.Groups {
		for _, m := range g.Moved {
			for _, s := range servers {
				if s.Name == m.Name && slices.Equal(s.Scope, g.Scope) {
					outcomes = append(outcomes, Outcome{Server: s, Action: Moved})
				}
			}
		}
	}
	return outcomes
}

// scatter replaces the gateway's entry by the entries of one group.
func (g Group) scatter(doc *document) ([]tree.Splice, []Outcome, error) {
	at := slices.IndexFunc(doc.entries, func(e entry) bool {
		return e.Gateway() && slices.Equal(e.Scope, g.Scope) && slices.Contains(e.Args, g.Config)
	})
	if at < 0 {
		return nil, nil, fmt.Errorf("%w: %s", ErrNoGateway, strings.Join(g.Scope, "."))
	}
	gateway := doc.entries[at]
	var texts []string
	var outcomes []Outcome
	for _, m := range g.Moved {
		out := Outcome{Server: Server{Scope: g.Scope, Name: m.Name}, Action: Moved}
		if slices.ContainsFunc(doc.entries, func(e entry) bool { return e.Name == m.Name && slices.Equal(e.Scope, g.Scope) }) {
			out.Action, out.Why = Left, "there is a new entry of that name"
		} else {
			if !gateway.node.Listed() && !strings.HasSuffix(m.Text, "\n") {
				m.Text += "\n" // it was at the end of the file
			}
			texts = append(texts, m.Text)
		}
		outcomes = append(outcomes, out)
	}
	var splices []tree.Splice
	between := ""
	switch {
	case gateway.node.Listed() && len(texts) == 0:
		return nil, outcomes, fmt.Errorf("every server has a new entry: remove %s from %s by hand", GatewayName, strings.Join(g.Scope, "."))
	case gateway.node.Listed():
		between = "," + doc.Lead(gateway.node)
	}
	for i, part := range doc.Parts(gateway.node) {
		now := ""
		if i == 0 {
			now = strings.Join(texts, between)
		}
		splices = append(splices, tree.Splice{At: part.Start, Was: doc.Part(part), Now: now})
	}
	return splices, outcomes, nil
}
