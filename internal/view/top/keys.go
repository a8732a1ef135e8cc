package top

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// binding is what keys do, while panes are shown.
type binding struct {
	keys  []string
	shown string // as the help has them
	short string // below the panes; "": not there
	help  string
	do    func(m *model) tea.Cmd
}

// bindings are all keys of the panes, in the order of the help. It is a function: it refers to what refers to it.
func bindings() []binding {
	return []binding{
		{[]string{"up", "k"}, "↑ k", "", "the row above", func(m *model) tea.Cmd { return m.move(-1) }},
		{[]string{"down", "j"}, "↓ j", "", "the row below", func(m *model) tea.Cmd { return m.move(1) }},
		{[]string{"tab", "right"}, "Tab →", "", "the next pane; Shift-Tab ←: the one before", func(m *model) tea.Cmd { return m.turn(1) }},
		{[]string{"shift+tab", "left"}, "", "", "", func(m *model) tea.Cmd { return m.turn(-1) }},
		{[]string{"1"}, "1 2 3", "", "incidents, servers, agents", func(m *model) tea.Cmd { return m.show(incidentPane) }},
		{[]string{"2"}, "", "", "", func(m *model) tea.Cmd { return m.show(serverPane) }},
		{[]string{"3"}, "", "", "", func(m *model) tea.Cmd { return m.show(agentPane) }},
		{[]string{"home", "g"}, "g G", "", "the first row, the last row", func(m *model) tea.Cmd { return m.move(-len(m.panes[m.pane])) }},
		{[]string{"end", "G", "shift+g"}, "", "", "", func(m *model) tea.Cmd { return m.move(len(m.panes[m.pane])) }},
		{[]string{"n"}, "n", "n next wrong", "the next row with which something is wrong", (*model).nextWrong},
		{[]string{"l"}, "l", "l log", "what it writes, on the whole screen", (*model).readAll},
		{[]string{"enter"}, "Enter", "", "answer the incident; of a server or an agent what it writes", (*model).enter},
		{[]string{"r"}, "r", "r restart", "restart the server, or the agent, after a question", (*model).askRestart},
		{[]string{"a"}, "a", "a acknowledge", "acknowledge the incident: you deal with it", (*model).acknowledge},
		{[]string{"t"}, "t", "t attach", `join the agent's terminal; Ctrl-\ comes back`, func(m *model) tea.Cmd {
			r, _ := m.selected()
			return m.attach(r)
		}},
		{[]string{"/"}, "/", "/ filter", "show only rows that have these words; Esc shows all again", func(m *model) tea.Cmd { m.phase = filtering; return nil }},
		{[]string{"esc"}, "", "", "", func(m *model) tea.Cmd { m.setFilter(""); m.answer = ""; return nil }},
		{[]string{"?", "h", "f1"}, "?", "? help", "this help", func(m *model) tea.Cmd { m.phase = helping; return nil }},
		{[]string{"ctrl+z"}, "", "", "", func(*model) tea.Cmd { return tea.Suspend }},
		{[]string{"q"}, "q", "q quit", "leave; nothing ends but this screen", func(*model) tea.Cmd { return tea.Quit }},
	}
}

// key handles a key press.
func (m *model) key(msg tea.KeyPressMsg) tea.Cmd {
	name := msg.String()
	if name == "ctrl+c" {
		return tea.Quit
	}
	switch m.phase {
	case filtering:
		m.typeFilter(name, msg.Text)
		return nil
	case confirming:
		return m.confirm(name)
	case answering:
		return m.choose(name)
	case reading:
		return m.scroll(name)
	case helping:
		m.phase = browsing
		return nil
	}
	for _, b := range bindings() {
		if slices.Contains(b.keys, name) {
			return b.do(m)
		}
	}
	return nil
}

func (m *model) typeFilter(name, typed string) {
	switch {
	case name == "enter":
		m.phase = browsing
	case name == "esc":
		m.phase = browsing
		m.setFilter("")
	case name == "ctrl+u":
		m.setFilter("")
	case name == "backspace" && m.filter != "":
		runes := []rune(m.filter)
		m.setFilter(string(runes[:len(runes)-1]))
	case typed != "":
		m.setFilter(m.filter + oneLineTyped(typed))
	}
}

// oneLineTyped is typed text without what would not be a character of one line.
func oneLineTyped(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, text)
}

// move moves the cursor; beyond an end of a pane it goes to the pane there, by single steps.
func (m *model) move(by int) tea.Cmd {
	n, rows := m.at(m.pane), m.panes[m.pane]
	if len(rows) == 0 {
		return m.turn(by)
	}
	to := min(max(n+by, 0), len(rows)-1)
	if to == n && (by == 1 || by == -1) {
		next := int(m.pane) + by
		for ; next >= 0 && next < int(panes); next += by {
			if list := m.panes[next]; len(list) > 0 {
				m.pane = pane(next)
				m.cursor[m.pane] = list[0].key
				if by < 0 {
					m.cursor[m.pane] = list[len(list)-1].key
				}
				break
			}
		}
		return nil
	}
	m.cursor[m.pane] = rows[to].key
	return nil
}

// turn goes to the next pane that has rows.
func (m *model) turn(by int) tea.Cmd {
	step := 1
	if by < 0 {
		step = int(panes) - 1
	}
	for range panes {
		m.pane = pane((int(m.pane) + step) % int(panes))
		if len(m.panes[m.pane]) > 0 {
			break
		}
	}
	return nil
}

func (m *model) show(p pane) tea.Cmd {
	m.pane = p
	return nil
}

// nextWrong goes to the next row with which something is wrong.
func (m *model) nextWrong() tea.Cmd {
	type place struct {
		p pane
		n int
	}
	var all []place
	here := 0
	for p := range panes {
		for n := range m.panes[p] {
			if p == m.pane && n == m.at(p) {
				here = len(all)
			}
			all = append(all, place{p, n})
		}
	}
	for step := range all {
		at := all[(here+1+step)%len(all)]
		if r := m.panes[at.p][at.n]; r.health.Wrong() {
			m.pane, m.cursor[at.p] = at.p, r.key
			return nil
		}
	}
	m.answer = "nothing is wrong"
	return nil
}

func (m *model) enter() tea.Cmd {
	r, ok := m.selected()
	if !ok {
		return nil
	}
	if r.incident != nil && len(r.incident.Buttons) > 0 && m.mayChange() {
		m.phase, m.target = answering, r
		return nil
	}
	return m.readAll()
}

// readAll shows what the selected one writes on the whole screen.
func (m *model) readAll() tea.Cmd {
	if m.subject() == "" {
		m.answer = "nothing is written by it"
		return nil
	}
	m.phase, m.back = reading, 0
	return nil
}

// mayChange reports whether something may be done, and says so if not.
func (m *model) mayChange() bool {
	if m.opts.Control == nil {
		m.answer = "only looking: --read-only was given"
	}
	return m.opts.Control != nil
}

func (m *model) askRestart() tea.Cmd {
	r, ok := m.selected()
	if !ok || !m.mayChange() {
		return nil
	}
	a, isAgent := m.agentOf(r)
	switch {
	case r.server != nil && r.server.Gone:
		m.answer = r.name + " has ended: there is nothing to restart"
	case r.server != nil && r.server.Gateway:
		m.answer = "select one of its servers; the whole gateway: outlive restart " + r.name
	case r.server != nil:
		m.phase, m.target, m.pending = confirming, r, "Restart "+r.server.Name+"? Its clients stay connected."
	case isAgent:
		r.agent = &a
		m.phase, m.target, m.pending = confirming, r, "End the agent "+a.Name+" and start it anew?"
	default:
		m.answer = "select a server or an agent to restart it"
	}
	return nil
}

func (m *model) confirm(name string) tea.Cmd {
	m.phase = browsing
	if name != "y" && name != "Y" && name != "shift+y" {
		m.answer = "nothing was done"
		return nil
	}
	r := m.target
	if r.agent != nil {
		a := *r.agent
		return m.do("asking the monitor to restart "+oneLine(a.Name)+" …", func() (string, error) { return m.opts.Control.RestartAgent(m.ctx, a) })
	}
	s := *r.server
	return m.do("restarting "+oneLine(s.Name)+" …", func() (string, error) { return m.opts.Control.Restart(m.ctx, s) })
}

// acknowledge acknowledges the incident, or the selected agent's.
func (m *model) acknowledge() tea.Cmd {
	r, ok := m.selected()
	if !ok || !m.mayChange() {
		return nil
	}
	for _, i := range m.state.Incidents {
		mine := r.incident != nil && r.incident.ID == i.ID || r.agent != nil && i.About(r.agent.Key)
		if !mine || !i.Waits() {
			continue
		}
		for _, b := range i.Buttons {
			if b.Verb == "ack" {
				return m.press(i, b)
			}
		}
	}
	m.answer = "no incident of it waits for you"
	return nil
}

func (m *model) press(i overview.Incident, b overview.Button) tea.Cmd {
	return m.do(fmt.Sprintf("%s: %s …", oneLine(b.Label), oneLine(i.Title)), func() (string, error) {
		ctx, cancel := context.WithCancel(m.ctx)
		defer cancel()
		return m.opts.Control.Press(ctx, i.ID, b)
	})
}

// choose presses a button of the incident as it was shown: if something else is asked by then, whoever is asked refuses it.
func (m *model) choose(name string) tea.Cmd {
	m.phase = browsing
	n, err := strconv.Atoi(name)
	buttons := m.target.incident.Buttons
	if err != nil || n < 1 || n > len(buttons) {
		m.answer = "nothing was done"
		return nil
	}
	return m.press(*m.target.incident, buttons[n-1])
}

// scroll is for the text on the whole screen.
func (m *model) scroll(name string) tea.Cmd {
	page := max(1, m.height-3)
	switch name {
	case "up", "k":
		m.back++
	case "down", "j":
		m.back--
	case "pgup", "ctrl+b", "b":
		m.back += page
	case "pgdown", "ctrl+f", "space":
		m.back -= page
	case "home", "g":
		m.back = len(m.text.lines) * 100
	case "end", "G", "shift+g":
		m.back = 0
	default:
		m.phase = browsing
		m.back = 0
	}
	m.back = min(max(m.back, 0), max(0, len(m.wrapped())-page))
	return nil
}
