package top

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// phase is what keys are for.
type phase uint8

const (
	browsing   phase = iota // the panes
	filtering               // a filter is being typed
	confirming              // a restart waits for a yes
	answering               // one of an incident's buttons is to be chosen
	reading                 // what the selected one writes fills the screen
	helping                 // the keys are explained
)

// model is the state of the screen. Only the program's goroutine has it.
type model struct {
	ctx  context.Context
	opts Options
	news <-chan struct{}

	state  overview.State
	now    time.Time
	width  int
	height int

	phase  phase
	pane   pane
	cursor [panes]string // the key of the selected row of each pane
	filter string
	panes  [panes][]row // what passes the filter

	text    text
	asked   map[string]time.Time // whose text is being read, since when
	back    int                  // reading: how many lines from the end
	answer  string               // to the last thing that was asked for
	target  row                  // confirming, answering: of what
	pending string               // confirming: the question
}

// text is the end of what a server or an agent has written.
type text struct {
	of    string // which one
	lines []string
	err   error
	at    time.Time
}

// Messages.
type (
	seen     struct{ state overview.State } // a look, or a second without one
	read     text
	done     struct{ answer string }
	attached struct {
		name string
		said string
		err  error
	}
)

func newModel(ctx context.Context, o Options, news <-chan struct{}) *model {
	m := &model{ctx: ctx, opts: o, news: news, now: time.Now(), pane: serverPane, asked: map[string]time.Time{}}
	m.take(o.Source.State())
	if len(m.panes[incidentPane]) > 0 && m.state.Waiting > 0 {
		m.pane = incidentPane
	}
	return m
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return tea.Batch(m.await(), m.readText()) }

// await waits for the next look.
func (m *model) await() tea.Cmd {
	return func() tea.Msg {
		select {
		case <-m.ctx.Done():
			return nil
		case <-m.news:
		case <-time.After(tickEvery):
		}
		return seen{m.opts.Source.State()}
	}
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.now = time.Now()
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case seen:
		m.take(msg.state)
		return m, tea.Batch(m.await(), m.readText())
	case read:
		delete(m.asked, msg.of)
		if msg.of == m.subject() {
			m.text = text(msg)
		}
	case done:
		m.answer = msg.answer
	case attached:
		m.answer = attachedText(msg)
	case tea.PasteMsg:
		if m.phase == filtering {
			m.setFilter(m.filter + strings.Join(strings.Fields(msg.Content), " "))
		}
	case tea.KeyPressMsg:
		cmd := m.key(msg)
		return m, tea.Batch(cmd, m.readText())
	}
	return m, nil
}

// take takes what was seen.
func (m *model) take(s overview.State) {
	m.state = s
	m.sift()
}

// sift makes the rows, and keeps the selected ones selected.
func (m *model) sift() {
	all := rowsOf(m.state)
	for p := range panes {
		m.panes[p] = slices.DeleteFunc(all[p], func(r row) bool { return !r.matches(m.filter) })
		if m.at(p) < 0 {
			m.cursor[p] = ""
			if len(m.panes[p]) > 0 {
				m.cursor[p] = m.panes[p][0].key
			}
		}
	}
	if len(m.panes[m.pane]) == 0 {
		for p := range panes {
			if len(m.panes[p]) > 0 {
				m.pane = p
				break
			}
		}
	}
}

func (m *model) setFilter(text string) {
	m.filter = text
	m.sift()
}

// at is where the cursor of a pane is; -1: nowhere.
func (m *model) at(p pane) int {
	return slices.IndexFunc(m.panes[p], func(r row) bool { return r.key == m.cursor[p] })
}

// selected is the row that keys are about.
func (m *model) selected() (row, bool) {
	if n := m.at(m.pane); n >= 0 {
		return m.panes[m.pane][n], true
	}
	return row{}, false
}

// agentOf is the agent of a row: itself, or that of an incident.
func (m *model) agentOf(r row) (overview.Agent, bool) {
	if r.agent != nil {
		return *r.agent, true
	}
	for _, a := range m.state.Agents {
		if r.incident != nil && r.incident.Agent == a.Key {
			return a, true
		}
	}
	return overview.Agent{}, false
}

// subject is whose text is shown; "": nobody's.
func (m *model) subject() string {
	r, ok := m.selected()
	if !ok {
		return ""
	}
	if r.server != nil {
		return "server " + r.key
	}
	if a, ok := m.agentOf(r); ok {
		return "agent " + a.Key
	}
	return ""
}

// readText has what the selected one writes read, unless it is being read.
func (m *model) readText() tea.Cmd {
	of := m.subject()
	if of != m.text.of {
		m.text, m.back = text{of: of}, 0
	}
	if of == "" {
		return nil
	}
	if _, busy := m.asked[of]; busy {
		return nil
	}
	r, _ := m.selected()
	var from func() (string, error)
	if r.server != nil {
		from = func() (string, error) { return m.opts.ServerText(*r.server) }
	} else if a, ok := m.agentOf(r); ok {
		from = func() (string, error) { return m.opts.AgentText(a) }
	}
	if m.text.at.Add(tickEvery / 2).After(m.now) {
		return nil // it was read just now; the next tick comes
	}
	m.asked[of] = m.now
	return func() tea.Msg {
		content, err := from()
		return read{of, linesOf(content), err, time.Now()}
	}
}

// linesOf are the lines of a text, as a terminal may show them.
func linesOf(content string) (lines []string) {
	if strings.TrimSpace(content) == "" {
		return nil
	}
	for line := range strings.SplitSeq(strings.TrimRight(content, "\n"), "\n") {
		lines = append(lines, logline.Printable(strings.ReplaceAll(line, "\t", "    ")))
	}
	return lines
}

// do has something done that may take long.
func (m *model) do(begun string, act func() (string, error)) tea.Cmd {
	m.answer = begun
	return func() tea.Msg {
		answer, err := act()
		if err != nil {
			answer = "not done: " + err.Error()
		}
		return done{time.Now().Format(time.TimeOnly) + " " + oneLine(answer)}
	}
}

func oneLine(text string) string {
	return logline.Printable(strings.Join(strings.Fields(text), " "))
}

// attach joins the terminal of an agent; the screen is back when the person has left it.
func (m *model) attach(r row) tea.Cmd {
	a, ok := m.agentOf(r)
	if !ok {
		m.answer = "only an agent has a terminal that can be joined: select one"
		return nil
	}
	if m.opts.Attach == nil {
		m.answer = "terminals cannot be joined here"
		return nil
	}
	cmd := m.opts.Attach(a)
	to := cmd.Stderr
	said := logline.OpenKept("", logline.KeptOptions{Pass: func(p []byte) { _, _ = to.Write(p) }})
	cmd.Stderr = said
	return tea.ExecProcess(cmd, func(err error) tea.Msg { return attached{a.Name, strings.Join(said.Tail(1), ""), err} })
}

func attachedText(msg attached) string {
	said := strings.TrimPrefix(msg.said, "outlive: ")
	var exit *exec.ExitError
	if msg.err != nil && !errors.As(msg.err, &exit) {
		said = fmt.Sprintf("%s: %v", msg.name, msg.err)
	}
	return oneLine(said)
}
