package clients

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Action is what became of a server.
type Action uint8

// The actions.
const (
	Left    Action = iota // not touched; Why says the reason
	Already               // not touched: it is as it was to become
	Edited                // wrapped, or unwrapped
	Moved                 // behind the gateway, or back
)

// Outcome says what became of one server.
type Outcome struct {
	Server Server
	Action Action
	Why    string // for Left
}

// Options of [Wrap].
type Options struct {
	// Outlive is the command that starts outlive, as the client is to find it. "": "outlive".
	Outlive string
	// Flags are further flags for outlive run.
	Flags []string
	// Label makes a server's name fit for --name. nil: the name as it is.
	Label func(name string) string
	// Only picks the servers to edit. nil: all.
	Only func(Server) bool
}

// ErrUnsafe is returned when undoing an edit would not give back what was there. It would be a mistake in this package;
// the file is then better left alone.
var ErrUnsafe = errors.New("the edit could not be undone exactly")

// Wrap puts outlive in front of the stdio servers of a file of the client: command X with arguments A becomes outlive
// with "run", "--name", the server's name, "--", X and A. Everything else stays byte for byte. cmd /c stays in front
// of what it starts. Servers that are wrapped, or reached over the network, are left. The text returned is the one
// given when nothing was edited.
//
// Where the arguments began is kept in the white space: new ones are put behind the bracket, with a copy of the white
// space that was there; a list that was made for them has a blank at both ends. After a client has formatted its
// file anew, [Unwrap] gives back the same meaning, though not the same bytes.
func (c *Client) Wrap(text []byte, o Options) ([]byte, []Outcome, error) {
	doc, err := c.parse(text)
	if err != nil {
		return nil, nil, fmt.Errorf("wrap servers of %s: %w", c.Title, err)
	}
	var splices []Splice
	var outcomes []Outcome
	for _, e := range doc.entries {
		if o.Only != nil && !o.Only(e.Server) {
			continue
		}
		out := Outcome{Server: e.Server}
		switch {
		case e.Wrapped() || e.Gateway():
			out.Action = Already
		default:
			if out.Why = e.obstacle(); out.Why == "" {
				out.Action = Edited
				splices = append(splices, e.wrap(doc, o)...)
			}
		}
		outcomes = append(outcomes, out)
	}
	if len(splices) == 0 {
		return text, outcomes, nil
	}
	edited, err := apply(text, splices)
	if err != nil {
		return nil, nil, fmt.Errorf("wrap servers of %s: %w", c.Title, err)
	}
	if err := c.checkUndo(text, edited, outcomes); err != nil {
		return nil, nil, fmt.Errorf("wrap servers of %s: %w", c.Title, err)
	}
	return edited, outcomes, nil
}

// obstacle says why outlive cannot start the server, "" when it can.
func (e *entry) obstacle() string {
	switch {
	case e.Odd != "":
		return e.Odd
	case e.Remote():
		return "reached over the network: " + e.URL
	case len(e.Args) == 0 && strings.Contains(e.Command, " ") && !strings.ContainsAny(e.Command, `/\`):
		return "command holds a whole command line: write the program as command and the rest as args"
	}
	return ""
}

// wrap returns the edits that put outlive in front.
func (e *entry) wrap(doc *document, o Options) []Splice {
	outlive, name := o.Outlive, e.Name
	if outlive == "" {
		outlive = "outlive"
	}
	if o.Label != nil {
		name = o.Label(name)
	}
	var words []string
	for _, w := range slices.Concat([]string{"run", "--name", name}, o.Flags, []string{"--"}) {
		words = append(words, doc.quote(w))
	}
	added := strings.Join(append(words, e.command.of(doc.text)), ", ")
	splices := []Splice{replace(doc.text, e.command, doc.quote(outlive))}
	if e.args == nil {
		return append(splices, Splice{At: e.addAt, Now: e.addBefore + "[ " + added + " ]" + e.addAfter})
	}
	at := e.args.open + 1
	if len(e.args.items) == 0 {
		return append(splices, Splice{At: at, Now: added})
	}
	before := string(doc.text[at:e.args.items[0].at.start])
	switch {
	case before == "":
		added += ", "
	case trailingSpace(before) == "":
		added = " " + added + ","
	default:
		added = trailingSpace(before) + added + ","
	}
	return append(splices, Splice{At: at, Now: added})
}

// Unwrap takes outlive away from the servers of a file of the client that only picks, and gives back what [Wrap] found, whatever
// else has been changed meanwhile; [Server.ByWrap] tells which entries are its. nil: all servers. Entries that run outlive without a "--" are left, as are those of the gateway. The text
// returned is the one given when nothing was edited.
func (c *Client) Unwrap(text []byte, only func(Server) bool) ([]byte, []Outcome, error) {
	doc, err := c.parse(text)
	if err != nil {
		return nil, nil, fmt.Errorf("unwrap servers of %s: %w", c.Title, err)
	}
	var splices []Splice
	var outcomes []Outcome
	for _, e := range doc.entries {
		if only != nil && !only(e.Server) {
			continue
		}
		out := Outcome{Server: e.Server}
		switch {
		case e.Odd != "" || !e.Wrapped():
			out.Action = Already
		default:
			more, why := e.unwrap(doc)
			if out.Why = why; why == "" {
				out.Action = Edited
				splices = append(splices, more...)
			}
		}
		outcomes = append(outcomes, out)
	}
	if len(splices) == 0 {
		return text, outcomes, nil
	}
	edited, err := apply(text, splices)
	if err != nil {
		return nil, nil, fmt.Errorf("unwrap servers of %s: %w", c.Title, err)
	}
	if _, err := c.parse(edited); err != nil {
		return nil, nil, fmt.Errorf("unwrap servers of %s: %w: %w", c.Title, ErrUnsafe, err)
	}
	return edited, outcomes, nil
}

// unwrap returns the edits that take outlive away, or why there are none.
func (e *entry) unwrap(doc *document) ([]Splice, string) {
	if !IsOutlive(e.Command) {
		return nil, "outlive is started through another program"
	}
	dashes := slices.IndexFunc(e.args.items, func(i item) bool { return i.text == "--" })
	if dashes < 0 || dashes+1 >= len(e.args.items) {
		return nil, `there is no "--" before the server's command`
	}
	inner := e.args.items[dashes+1]
	splices := []Splice{replace(doc.text, e.command, inner.at.of(doc.text))}
	from := e.args.open + 1
	lead := e.args.items[0].at.start > from
	last := dashes+2 == len(e.args.items)
	switch {
	case last && lead && e.remove != span{}:
		return append(splices, replace(doc.text, e.remove, "")), ""
	case inner.comma < 0:
		return append(splices, replace(doc.text, span{from, inner.at.end}, "")), ""
	}
	end := inner.comma + 1
	if !lead && !last && doc.text[end] == ' ' {
		end++
	}
	return append(splices, replace(doc.text, span{from, end}, "")), ""
}

// checkUndo unwraps what has just been wrapped and compares.
func (c *Client) checkUndo(before, after []byte, outcomes []Outcome) error {
	undone, _, err := c.Unwrap(after, func(s Server) bool {
		return slices.ContainsFunc(outcomes, func(o Outcome) bool {
			return o.Action == Edited && o.Server.Name == s.Name && slices.Equal(o.Server.Scope, s.Scope)
		})
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnsafe, err)
	}
	if !bytes.Equal(undone, before) {
		return ErrUnsafe
	}
	return nil
}
