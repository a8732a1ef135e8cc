package hooks

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// byteOrderMark is at the beginning of files that Windows editors wrote.
const byteOrderMark = "\ufeff"

// ErrSettings is wrapped by the errors about a settings file that does not have its CLI's format.
var ErrSettings = errors.New("not the settings of this CLI")

// ErrUnsafe is returned when undoing an edit would not restore the text exactly. It means a mistake in this package;
// the file is then not changed.
var ErrUnsafe = errors.New("the edit could not be undone exactly")

// Install adds our hooks to the text of a settings file, after those of others, and replaces ours that are there.
// Everything else is kept byte for byte. If the text has exactly these hooks already, it is returned unchanged. A
// text of white space only is replaced by a new one.
func (v *Vendor) Install(text []byte, entries []Entry) ([]byte, error) {
	base, err := v.Remove(text)
	if err != nil {
		return nil, err
	}
	edited := base
	for _, e := range entries {
		if edited, err = v.add(edited, e); err != nil {
			return nil, fmt.Errorf("install hooks of %s: %w", v.Title, err)
		}
	}
	undone, err := v.Remove(edited)
	if err != nil || !bytes.Equal(undone, base) && !blank(base) {
		return nil, fmt.Errorf("install hooks of %s: %w", v.Title, errors.Join(ErrUnsafe, err))
	}
	return edited, nil
}

// openSettings parses a text. events is nil when there are no hooks; both are nil for a text of white space only.
func openSettings(text []byte) (d *tree.Doc, events *tree.Node, err error) {
	d, err = tree.Open(tree.JSON, "settings", text)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("%w: %w", ErrSettings, err)
	case d.Root == nil:
		return d, nil, nil
	case d.Root.Kind != tree.Object:
		return nil, nil, fmt.Errorf("%w: the file must hold a JSON object", ErrSettings)
	}
	events = d.Root.Get("hooks")
	if events != nil && events.Kind != tree.Object {
		return nil, nil, fmt.Errorf("%w: hooks must be an object", ErrSettings)
	}
	return d, events, nil
}

func (v *Vendor) add(text []byte, e Entry) ([]byte, error) {
	d, events, err := openSettings(text)
	if err != nil {
		return nil, err
	}
	handler := tree.Map{{Key: "type", Value: "command"}, {Key: "command", Value: e.Command}, {Key: "timeout", Value: int64(e.Timeout / v.Unit)}}
	group := tree.Map{{Key: "hooks", Value: []any{handler}}}
	groups := events.Get(e.Event)
	switch {
	case d.Root == nil:
		return tree.NewJSON(tree.Map{{Key: "hooks", Value: tree.Map{{Key: e.Event, Value: []any{group}}}}}), nil
	case groups == nil:
		err = d.Set([]any{group}, "hooks", e.Event)
	case groups.Kind != tree.List:
		return nil, fmt.Errorf("%w: hooks.%s must be a list", ErrSettings, e.Event)
	default:
		err = d.Insert(groups, -1, "", group)
	}
	if err != nil {
		return nil, err
	}
	return d.Text()
}

// Remove removes our hooks from the text of a settings file, with the containers that were made for them. All other
// changes since then are kept; without any, the text is again what it was, byte for byte. If Install had made the
// text from nothing, nothing is returned.
func (v *Vendor) Remove(text []byte) ([]byte, error) {
	d, events, err := openSettings(text)
	if err == nil && events != nil {
		text, err = v.remove(d, events, text)
	}
	if err != nil {
		return nil, fmt.Errorf("remove hooks of %s: %w", v.Title, err)
	}
	return text, nil
}

func (v *Vendor) remove(d *tree.Doc, events *tree.Node, text []byte) ([]byte, error) {
	var errs []error
	gone := map[*tree.Node]bool{}
	all := func(n *tree.Node) bool {
		return len(n.Kids) > 0 && !slices.ContainsFunc(n.Kids, func(k *tree.Node) bool { return !gone[k] })
	}
	// take removes those children of a container that goes selects.
	take := func(n *tree.Node) { errs = append(errs, d.Remove(n, func(k *tree.Node) bool { return gone[k] })) }
	for _, event := range events.Kids {
		for _, handlers := range handlersOf(event) {
			for _, h := range handlers.Kids {
				gone[h] = v.isOurs(h)
			}
			if gone[handlers.Up()] = all(handlers); !all(handlers) {
				take(handlers)
			}
		}
		if gone[event] = all(event) && d.Spaced(event); !gone[event] { // a container that we made is removed, too
			take(event)
		}
	}
	if gone[events] = all(events) && d.Spaced(events); !gone[events] {
		take(events)
	} else if all(d.Root) && d.Spaced(d.Root) && string(bytes.TrimSpace(bytes.TrimPrefix(text, []byte(byteOrderMark)))) == d.Raw(d.Root) {
		return nil, nil
	} else {
		take(d.Root)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return d.Text()
}

// handlersOf returns an event's lists of hooks.
func handlersOf(event *tree.Node) (lists []*tree.Node) {
	for _, group := range event.Kids {
		if h := group.Get("hooks"); h != nil && h.Kind == tree.List && event.Kind == tree.List {
			lists = append(lists, h)
		}
	}
	return lists
}

func blank(text []byte) bool {
	return len(bytes.TrimSpace(bytes.TrimPrefix(text, []byte(byteOrderMark)))) == 0
}

// ourCommand matches a command that runs a hook of outlive, with the program quoted in any way.
var ourCommand = lazyregexp.New(`^\s*(?:&\s*)?(?:'(?:[^']*[/\\])?outlive(?:\.exe)?'|"(?:[^"]*[/\\])?outlive(?:\.exe)?"|(?:[^\s'"]*[/\\])?outlive(?:\.exe)?)\s+hook\s+(\w+)(?:\s|$)`)

func (v *Vendor) isOurs(handler *tree.Node) bool {
	m := ourCommand.FindStringSubmatch(handler.Text("command"))
	return m != nil && m[1] == v.Name
}

// HookCommand is the command line that runs a vendor's hook with this program and flags, for the shell that the CLI
// uses.
func (v *Vendor) HookCommand(program string, flags ...string) string {
	words := []string{v.calling(quoteWord(program)), "hook", v.Name}
	for _, f := range flags {
		words = append(words, quoteWord(f))
	}
	return strings.Join(words, " ")
}

var plainWord = lazyregexp.New(`^[A-Za-z0-9_@%+=:,./-]+$`)

// Status is what a settings file says about hooks.
type Status struct {
	Ours   []Entry
	Others int  // hooks of other programs
	Off    bool // the file disables all hooks
}

// Inspect returns which hooks a settings file has.
func (v *Vendor) Inspect(text []byte) (s Status, err error) {
	d, events, err := openSettings(text)
	if err != nil || d.Root == nil {
		return s, err
	}
	if off := d.Root.At(v.Off...); off != nil && len(v.Off) > 0 {
		s.Off = off.Value == v.OffValue
	}
	if events == nil {
		return s, nil
	}
	for _, event := range events.Kids {
		for _, handlers := range handlersOf(event) {
			for _, h := range handlers.Kids {
				if !v.isOurs(h) {
					s.Others++
					continue
				}
				timeout, err := timeoutOf(h)
				if err != nil {
					return s, fmt.Errorf("hook of %s: %w", event.Key, err)
				}
				s.Ours = append(s.Ours, Entry{event.Key, h.Text("command"), time.Duration(timeout * float64(v.Unit))})
			}
		}
	}
	slices.SortStableFunc(s.Ours, func(a, b Entry) int { return strings.Compare(a.Event, b.Event) })
	return s, nil
}

// timeoutOf is a hook's timeout in the vendor's unit; 0: none is given.
func timeoutOf(hook *tree.Node) (float64, error) {
	n := hook.Get("timeout")
	if n == nil || n.Kind == tree.Null {
		return 0, nil
	}
	timeout, err := strconv.ParseFloat(n.Value, 64)
	if err != nil || n.Kind != tree.Number {
		return 0, fmt.Errorf("%w: timeout must be a number", ErrSettings)
	}
	return timeout, nil
}
