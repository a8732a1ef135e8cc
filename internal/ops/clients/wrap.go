package clients

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/edit"
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
				err = errors.Join(err, doc.wrap(&e, o))
			}
		}
		outcomes = append(outcomes, out)
	}
	edited, wrong := doc.Text()
	if err = errors.Join(err, wrong); err == nil && !bytes.Equal(edited, text) {
		err = c.checkUndo(text, edited, outcomes)
	}
	if err != nil {
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

// wrap puts outlive in front.
func (d *document) wrap(e *entry, o Options) error {
	outlive, name := cmp.Or(o.Outlive, "outlive"), e.Name
	if o.Label != nil {
		name = o.Label(name)
	}
	var words []any
	list := "[ "
	for _, w := range slices.Concat([]string{"run", "--name", name}, o.Flags, []string{"--"}) {
		words = append(words, w)
		list += edit.Quote(w) + ", "
	}
	inner := edit.Raw(d.Raw(e.command))
	err := d.Replace(e.command, outlive)
	if e.args != nil {
		return errors.Join(err, d.Insert(e.args, 0, "", append(words, inner)...))
	}
	at := e.command.Index()
	if d.Format() == edit.JSON {
		at++ // in TOML before the command, because a comment may follow it on its line
	}
	return errors.Join(err, d.Insert(e.holder, at, "args", edit.Raw(list)+inner+" ]"))
}

// Unwrap takes outlive away from the servers of a file of the client that only picks, and gives back what [Wrap] found, whatever
// else has been changed meanwhile; [Server.ByWrap] tells which entries are its. nil: all servers. Entries that run outlive without a "--" are left, as are those of the gateway. The text
// returned is the one given when nothing was edited.
func (c *Client) Unwrap(text []byte, only func(Server) bool) ([]byte, []Outcome, error) {
	doc, err := c.parse(text)
	if err != nil {
		return nil, nil, fmt.Errorf("unwrap servers of %s: %w", c.Title, err)
	}
	var outcomes []Outcome
	for _, e := range doc.entries {
		if only != nil && !only(e.Server) {
			continue
		}
		out := Outcome{Server: e.Server, Action: Already}
		if e.Odd == "" && e.Wrapped() {
			if out.Action, out.Why = Edited, e.fixed(); out.Why == "" {
				err = errors.Join(err, doc.unwrap(&e))
			} else {
				out.Action = Left
			}
		}
		outcomes = append(outcomes, out)
	}
	edited, wrong := doc.Text()
	if err = errors.Join(err, wrong); err != nil {
		return nil, nil, fmt.Errorf("unwrap servers of %s: %w", c.Title, err)
	}
	return edited, outcomes, nil
}

// fixed says why outlive cannot be taken away, "" when it can.
func (e *entry) fixed() string {
	dashes := slices.Index(e.Args, "--")
	switch {
	case !IsOutlive(e.Command):
		return "outlive is started through another program"
	case dashes < 0 || dashes+1 >= len(e.Args):
		return `there is no "--" before the server's command`
	}
	return ""
}

// unwrap takes outlive away.
func (d *document) unwrap(e *entry) error {
	last := slices.Index(e.Args, "--") + 1
	err := d.Replace(e.command, edit.Raw(d.Raw(e.args.Kids[last])))
	if last+1 == len(e.Args) && d.Spaced(e.args) {
		return errors.Join(err, d.Remove(e.holder, func(k *edit.Node) bool { return k == e.args }))
	}
	ours := slices.Clone(e.args.Kids[:last+1])
	return errors.Join(err, d.Remove(e.args, func(k *edit.Node) bool { return slices.Contains(ours, k) }))
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
