package clients

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// Outcome is what was done with one server.
type Outcome struct {
	Server Server
	Why    string // why it was left as it is; "": it was wrapped, or unwrapped
}

// Options of [Client.Wrap].
type Options struct {
	// Outlive is the command with which the client starts outlive. "": "outlive".
	Outlive string
	// Flags are additional flags for outlive run.
	Flags []string
	// Label converts a server's name for --name. nil: unchanged.
	Label func(name string) string
	// Only selects the servers to edit. nil: all.
	Only func(Server) bool
}

// ErrUnsafe is returned when undoing an edit would not restore the text exactly. It means a mistake in this package;
// the file is then not changed.
var ErrUnsafe = errors.New("the edit could not be undone exactly")

// Wrap puts outlive in front of the stdio servers in a file of the client: command X with arguments A becomes outlive
// with "run", "--name", the server's name, "--", X and A. Everything else is kept byte for byte. cmd /c remains in
// front of the program that it starts. Servers that are wrapped already, or reached over the network, are not
// changed. If nothing was edited, the given text is returned.
//
// The white space records where the original arguments began: new arguments are inserted after the bracket, followed
// by a copy of the original white space; a list that was made for them has a space at both ends. If a client has
// reformatted its file since, [Unwrap] restores the same meaning, but not the same bytes.
func (c *Client) Wrap(text []byte, o Options) ([]byte, []Outcome, error) {
	edited, outcomes, err := c.edit(text, o.Only, (*entry).obstacle, func(d *document, e *entry) error { return d.wrap(e, o) })
	if err == nil && !bytes.Equal(edited, text) {
		err = c.checkUndo(text, edited, outcomes)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("wrap servers of %s: %w", c.Title, err)
	}
	return edited, outcomes, nil
}

// edit changes each server that only selects (nil: all), unless there is an obstacle.
func (c *Client) edit(text []byte, only func(Server) bool, obstacle func(*entry) string,
	change func(*document, *entry) error) ([]byte, []Outcome, error) {
	doc, err := c.parse(text)
	if err != nil {
		return nil, nil, err
	}
	var outcomes []Outcome
	for _, e := range doc.entries {
		if only != nil && !only(e.Server) {
			continue
		}
		why := obstacle(&e)
		if why == "" {
			err = errors.Join(err, change(doc, &e))
		}
		outcomes = append(outcomes, Outcome{e.Server, why})
	}
	edited, wrong := doc.Text()
	return edited, outcomes, errors.Join(err, wrong)
}

// obstacle says why outlive cannot start the server; "" if it can.
func (e *entry) obstacle() string {
	switch {
	case e.Wrapped() || e.Gateway():
		return "outlive is in front of it already"
	case e.Odd != "":
		return e.Odd
	case e.Extension:
		return "an extension of the client has its command"
	case e.Remote():
		return "reached over the network: " + e.URL
	case len(e.Args) == 0 && strings.Contains(e.Command, " ") && !strings.ContainsAny(e.Command, `/\`):
		return "command holds a whole command line: write the program as command and the rest as args"
	case e.packaged():
		return "outlive is in front of it already, by its package"
	}
	return ""
}

// wrap puts outlive in front of the server.
func (d *document) wrap(e *entry, o Options) error {
	outlive, name := cmp.Or(o.Outlive, "outlive"), e.Name
	if o.Label != nil {
		name = o.Label(name)
	}
	var words []any
	list := "[ "
	for _, w := range slices.Concat([]string{"run", "--name", name}, o.Flags, []string{"--"}) {
		words = append(words, w)
		list += tree.Quote(w) + ", "
	}
	if d.listed {
		return d.Insert(e.command, 0, "", append([]any{outlive}, words...)...)
	}
	inner := tree.Raw(d.Raw(e.command))
	err := d.Replace(e.command, outlive)
	if e.args != nil {
		return errors.Join(err, d.Insert(e.args, 0, "", append(words, inner)...))
	}
	at := e.command.Index()
	if d.Format() == tree.JSON {
		at++ // in TOML before the command, which a comment may follow on its line
	}
	return errors.Join(err, d.Insert(e.holder, at, "args", tree.Raw(list)+inner+" ]"))
}

// Unwrap removes outlive from the servers of a file of the client that only selects, and restores what [Wrap] found,
// whatever else has been changed since; [Server.ByWrap] reports which entries Wrap has made. nil: all servers.
// Entries that run outlive without a "--" are not changed, nor are those of the gateway. If nothing was edited, the
// given text is returned.
func (c *Client) Unwrap(text []byte, only func(Server) bool) ([]byte, []Outcome, error) {
	edited, outcomes, err := c.edit(text, only, (*entry).fixed, (*document).unwrap)
	if err != nil {
		return nil, nil, fmt.Errorf("unwrap servers of %s: %w", c.Title, err)
	}
	return edited, outcomes, nil
}

// fixed says why outlive cannot be removed; "" if it can.
func (e *entry) fixed() string {
	dashes := slices.Index(e.Args, "--")
	switch {
	case !e.Wrapped():
		return "outlive is not in front of it"
	case e.Odd != "":
		return e.Odd
	case !IsOutlive(e.Command):
		return "outlive is started through another program"
	case dashes < 0 || dashes+1 >= len(e.Args):
		return `there is no "--" before the server's command`
	}
	return ""
}

// unwrap removes outlive.
func (d *document) unwrap(e *entry) error {
	last := slices.Index(e.Args, "--") + 1
	if d.listed {
		ours := slices.Clone(e.command.Kids[:last+1])
		return d.Remove(e.command, func(k *tree.Node) bool { return slices.Contains(ours, k) })
	}
	err := d.Replace(e.command, tree.Raw(d.Raw(e.args.Kids[last])))
	if last+1 == len(e.Args) && d.Spaced(e.args) {
		return errors.Join(err, d.Remove(e.holder, func(k *tree.Node) bool { return k == e.args }))
	}
	ours := slices.Clone(e.args.Kids[:last+1])
	return errors.Join(err, d.Remove(e.args, func(k *tree.Node) bool { return slices.Contains(ours, k) }))
}

// checkUndo unwraps the result of wrapping, and compares.
func (c *Client) checkUndo(before, after []byte, outcomes []Outcome) error {
	undone, _, err := c.Unwrap(after, func(s Server) bool {
		return slices.ContainsFunc(outcomes, func(o Outcome) bool {
			return o.Why == "" && o.Server.Name == s.Name && slices.Equal(o.Server.Scope, s.Scope)
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
