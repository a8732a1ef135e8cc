package clients

import (
	"fmt"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// Scatter undoes [Client.Gather] in a file of the client. If nothing else was changed since, the result is byte for
// byte the previous file; otherwise the moved entries replace the gateway's, in their original form, and all other
// content is kept. A new entry with the name of a moved one is kept as well, and the moved one reported as [Left]; so is one whose
// gateway has no entry in the file any more.
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
		back, more := g.scatter(doc)
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

// Needed reports whether an outcome says of an entry that it was left. The record and the gateway's file are all that there is of it.
func (r *Record) Needed(outcomes []Outcome) bool {
	return slices.ContainsFunc(outcomes, func(o Outcome) bool {
		return o.Action == Left && slices.ContainsFunc(r.Groups, func(g Group) bool {
			return slices.Equal(g.Scope, o.Server.Scope) && slices.ContainsFunc(g.Moved, func(m Moving) bool { return m.Name == o.Server.Name })
		})
	})
}

// scatter replaces the gateway's entry by the entries of one group.
func (g Group) scatter(doc *document) (splices []tree.Splice, outcomes []Outcome) {
	there := func(name string) bool {
		return slices.ContainsFunc(doc.entries, func(e entry) bool { return e.Name == name && slices.Equal(e.Scope, g.Scope) })
	}
	leave := func(m Moving, why string) {
		outcomes = append(outcomes, Outcome{Server: Server{Scope: g.Scope, Name: m.Name}, Why: why + "; it is kept in " + g.Config})
	}
	at := slices.IndexFunc(doc.entries, func(e entry) bool {
		return e.Gateway() && slices.Equal(e.Scope, g.Scope) && slices.Contains(e.Args, g.Config)
	})
	if at < 0 { // somebody has removed it, or its project, or it was taken back before
		for _, m := range g.Moved {
			if !there(m.Name) {
				leave(m, "there is no entry of the gateway in the file any more")
			}
		}
		return nil, outcomes
	}
	gateway := doc.entries[at]
	listed := gateway.node.Listed()
	var texts []string
	for _, m := range g.Moved {
		if there(m.Name) {
			leave(m, "there is a new entry of that name")
			continue
		}
		if !listed && !strings.HasSuffix(m.Text, "\n") {
			m.Text += "\n" // it was at the end of the file
		}
		texts = append(texts, m.Text)
		outcomes = append(outcomes, Outcome{Server: Server{Scope: g.Scope, Name: m.Name}, Action: Moved})
	}
	between := ""
	if listed {
		between = "," + doc.Lead(gateway.node)
	}
	if listed && len(texts) == 0 { // what would stand in its place is nothing, with a comma
		for i := range outcomes {
			outcomes[i].Why += "; remove " + GatewayName + " by hand"
		}
		return nil, outcomes
	}
	for i, part := range doc.Parts(gateway.node) {
		now := ""
		if i == 0 {
			now = strings.Join(texts, between)
		}
		splices = append(splices, tree.Splice{At: part.Start, Was: doc.Part(part), Now: now})
	}
	return splices, outcomes
}
