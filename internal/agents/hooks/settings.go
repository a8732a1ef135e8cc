package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tailscale/hujson"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// byteOrderMark begins files that Windows editors wrote.
const byteOrderMark = "\ufeff"

// ErrSettings is wrapped by the errors about a settings file that is not as its CLI writes it.
var ErrSettings = errors.New("not the settings of this CLI")

// ErrUnsafe is returned when undoing an edit would not give back what was there. It would be a mistake in this package;
// the file is then better left alone.
var ErrUnsafe = errors.New("the edit could not be undone exactly")

// Install puts our hooks into the text of a settings file, behind those of others, in place of any that we have there.
// Everything else stays byte for byte. The text returned is the one given when it has exactly these hooks already. A
// text without anything but white space becomes a new one.
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

// add puts in one hook.
func (v *Vendor) add(text []byte, e Entry) ([]byte, error) {
	d, err := parseSettings(text)
	if err != nil {
		return nil, err
	}
	handler := object(
		member("type", literal("command")), member("command", literal(e.Command)),
		member("timeout", number(int64(e.Timeout/v.Unit))))
	group := object(member("hooks", array(handler)))
	if d == nil {
		whole := object(member("hooks", object(member(e.Event, array(group)))))
		return append(whole.render(style{newline: "\n", step: "  "}), '\n'), nil
	}
	hooks, ok := d.root.member("hooks")
	if !ok {
		return d.insert(d.root, member("hooks", object(member(e.Event, array(group))))), nil
	}
	events, err := d.object(hooks, "hooks")
	if err != nil {
		return nil, err
	}
	list, ok := events.member(e.Event)
	if !ok {
		return d.insert(events, member(e.Event, array(group))), nil
	}
	groups, err := d.array(list, "hooks."+e.Event)
	if err != nil {
		return nil, err
	}
	return d.insert(groups, group), nil
}

// Remove takes our hooks out of the text of a settings file, and what was made to hold them. Whatever else has been changed
// since they were put in is kept; when nothing has been, the text is what it was, byte for byte. Nothing is returned
// for a text that we had made from nothing.
func (v *Vendor) Remove(text []byte) ([]byte, error) {
	d, err := parseSettings(text)
	if err != nil {
		return nil, fmt.Errorf("remove hooks of %s: %w", v.Title, err)
	}
	if d == nil {
		return text, nil
	}
	hooks, ok := d.root.member("hooks")
	if !ok {
		return text, nil
	}
	events, err := d.object(hooks, "hooks")
	if err != nil {
		return nil, fmt.Errorf("remove hooks of %s: %w", v.Title, err)
	}
	var r removal
	gone := r.from(events, func(m element) bool {
		list, err := d.array(m.value, "")
		return err == nil && r.from(list, func(g element) bool { return v.removeGroup(d, &r, g) })
	})
	if gone {
		r.spans = nil
		gone = r.from(d.root, func(m element) bool { return m.name == "hooks" })
		if gone && strings.TrimSpace(d.around()) == "" {
			return nil, nil
		}
	}
	left := d.without(r.spans)
	if _, err := parseSettings(left); err != nil {
		return nil, fmt.Errorf("remove hooks of %s: %w: %w", v.Title, ErrUnsafe, err)
	}
	return left, nil
}

// blank reports whether a text has white space only.
func blank(text []byte) bool {
	return len(bytes.TrimSpace(bytes.TrimPrefix(text, []byte(byteOrderMark)))) == 0
}

// removeGroup takes our handlers out of a group and reports whether nothing is left of it.
func (v *Vendor) removeGroup(d *document, r *removal, g element) bool {
	group, ok := d.container(g.value)
	if !ok {
		return false
	}
	hooks, ok := group.member("hooks")
	if !ok {
		return false
	}
	handlers, err := d.array(hooks, "")
	if err != nil || len(handlers.elements) == 0 {
		return false
	}
	ours := 0
	for _, h := range handlers.elements {
		if v.isOurs(d, h.value) {
			ours++
		}
	}
	if ours == len(handlers.elements) {
		return true
	}
	r.from(handlers, func(h element) bool { return v.isOurs(d, h.value) })
	return false
}

// ourCommand is a command that runs a hook of outlive, however the program is quoted.
var ourCommand = lazyregexp.New(`^\s*(?:'(?:[^']*[/\\])?outlive(?:\.exe)?'|"(?:[^"]*[/\\])?outlive(?:\.exe)?"|(?:[^\s'"]*[/\\])?outlive(?:\.exe)?)\s+hook\s+(\w+)(?:\s|$)`)

func (v *Vendor) isOurs(d *document, handler hujson.Value) bool {
	body, ok := d.container(handler)
	if !ok {
		return false
	}
	command, _ := body.member("command")
	m := ourCommand.FindStringSubmatch(textOf(command))
	return m != nil && m[1] == v.Name
}

// HookCommand is the command line that runs the hook of a vendor with this program and flags, for the shell that CLIs
// give it to.
func (v *Vendor) HookCommand(program string, flags ...string) string {
	words := []string{quoteWord(program), "hook", v.Name}
	for _, f := range flags {
		words = append(words, quoteWord(f))
	}
	return strings.Join(words, " ")
}

var plainWord = lazyregexp.New(`^[A-Za-z0-9_@%+=:,./-]+$`)

// Status is what a settings file has of hooks.
type Status struct {
	Ours   []Entry
	Others int  // hooks of other people
	Off    bool // the file switches all hooks off
}

// Inspect reads which hooks a settings file has.
func (v *Vendor) Inspect(text []byte) (s Status, err error) {
	d, err := parseSettings(text)
	if err != nil || d == nil {
		return s, err
	}
	s.Off = d.isOff(v.Off, v.OffValue)
	hooks, ok := d.root.member("hooks")
	if !ok {
		return s, nil
	}
	events, err := d.object(hooks, "hooks")
	if err != nil {
		return s, err
	}
	for _, event := range events.elements {
		for _, h := range d.handlers(event.value) {
			if !v.isOurs(d, h) {
				s.Others++
				continue
			}
			var body struct {
				Command string
				Timeout float64
			}
			standard := h.Clone()
			standard.Standardize()
			if err := json.Unmarshal(standard.Pack(), &body); err != nil {
				return s, fmt.Errorf("hook of %s: %w: %w", event.name, ErrSettings, err)
			}
			s.Ours = append(s.Ours, Entry{event.name, body.Command, time.Duration(body.Timeout * float64(v.Unit))})
		}
	}
	slices.SortStableFunc(s.Ours, func(a, b Entry) int { return strings.Compare(a.Event, b.Event) })
	return s, nil
}
