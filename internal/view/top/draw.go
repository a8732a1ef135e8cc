package top

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/outlive-mcp/outlive/internal/view/overview"
	"github.com/outlive-mcp/outlive/internal/view/terminal"
)

const (
	sideBySide  = 120 // columns from which on the selected one stands beside the panes
	detailsFrom = 14  // lines from which on it stands below them
	troubleMost = 2   // lines of what cannot be seen
)

// Styles. Each says something that also stands there as a word or a sign.
var (
	bold    = ansi.NewStyle().Bold()
	faint   = ansi.NewStyle().Faint()
	inverse = ansi.NewStyle().Reverse(true)
)

// coloured is a text in the colour of a health.
func coloured(h overview.Health, text string) string {
	switch h {
	case overview.Bad:
		return ansi.NewStyle().Bold().ForegroundColor(ansi.Red).Styled(text)
	case overview.Warn:
		return ansi.NewStyle().Bold().ForegroundColor(ansi.Yellow).Styled(text)
	case overview.Busy:
		return ansi.NewStyle().ForegroundColor(ansi.Cyan).Styled(text)
	case overview.Good:
		return ansi.NewStyle().ForegroundColor(ansi.Green).Styled(text)
	}
	return text
}

// fit makes a text as wide as it is to be.
func fit(text string, width int) string {
	if width <= 0 {
		return ""
	}
	if n := ansi.StringWidth(text); n <= width {
		return text + strings.Repeat(" ", width-n)
	}
	text = ansi.Truncate(text, width, "…")
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}

// View implements tea.Model.
func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.lines(), "\n"))
	v.AltScreen = true
	v.WindowTitle = m.title()
	return v
}

// title counts what is wrong, where a tab is all that is seen.
func (m *model) title() string {
	switch n := m.state.Wrong + m.state.Waiting; {
	case m.stale():
		return "(?) outlive"
	case n > 0:
		return fmt.Sprintf("(%d!) outlive", n)
	}
	return "outlive"
}

func (m *model) stale() bool { return m.now.Sub(m.state.At) > staleFrom }

// lines are the screen: as many as it has, each no wider than it is.
func (m *model) lines() []string {
	if m.width < 1 || m.height < 1 {
		return nil
	}
	lines := []string{m.head()}
	trouble := terminal.Trouble(m.state)
	for n, text := range trouble[:min(len(trouble), troubleMost)] {
		if n == troubleMost-1 && len(trouble) > troubleMost {
			text = fmt.Sprintf("%s (and %d more)", text, len(trouble)-troubleMost)
		}
		lines = append(lines, coloured(overview.Warn, fit("▲ "+oneLine(text), m.width)))
	}
	foot := m.foot()
	room := m.height - len(lines) - len(foot)
	switch {
	case room <= 0:
	case m.phase == helping:
		lines = append(lines, m.help(room)...)
	case m.phase == reading:
		lines = append(lines, m.wholeText(room)...)
	case m.phase == answering:
		lines = append(lines, m.choices(room)...)
	case m.width >= sideBySide:
		lines = append(lines, m.beside(room)...)
	default:
		lines = append(lines, m.below(room)...)
	}
	for len(lines)+len(foot) < m.height {
		lines = append(lines, "")
	}
	lines = append(lines, foot...)
	return lines[:min(len(lines), m.height)]
}

// head says how everything stands, and how old that is. Of what does not fit the least important goes first.
func (m *model) head() string {
	at := "as of " + m.state.At.Local().Format(time.TimeOnly)
	if m.stale() {
		at = fmt.Sprintf("▲ OLD: %s, %s ago", at, overview.Took(m.now.Sub(m.state.At).Truncate(time.Second)))
	}
	text := ""
	for _, one := range []string{"outlive: " + terminal.Summary(m.state), terminal.Wrong(m.state), fmt.Sprintf("%d!", m.state.Wrong+m.state.Waiting)} {
		if text = one; ansi.StringWidth(one)+1+ansi.StringWidth(at) <= m.width {
			break
		}
	}
	h := overview.Good
	if m.state.Wrong+m.state.Waiting > 0 {
		h = overview.Bad
	}
	space := max(0, m.width-ansi.StringWidth(at)-1)
	if m.stale() {
		at = inverse.Styled(at)
	}
	return ansi.Truncate(coloured(h, fit(text, space))+" "+at, m.width, "")
}

// foot is the last lines: what came of the last key, and which keys there are.
func (m *model) foot() []string {
	var keys string
	switch m.phase {
	case filtering:
		return []string{bold.Styled(fit("Filter: "+oneLine(m.filter)+"▏ Enter: keep it, Esc: show all", m.width))}
	case confirming:
		return []string{inverse.Styled(fit(oneLine(m.pending)+" y: yes, any other key: no", m.width))}
	case answering:
		keys = "a number: do it, any other key: nothing"
	case reading:
		keys = "↑↓ PgUp PgDn g G: move, any other key: back"
	case helping:
		keys = "any key: back"
	default:
		var list []string
		for _, b := range bindings() {
			if b.short != "" && m.useful(b) {
				list = append(list, b.short)
			}
		}
		keys = m.shorten(list)
		if m.filter != "" {
			keys = "filter: " + oneLine(m.filter) + " (Esc: all)  " + keys
		}
	}
	var foot []string
	if m.answer != "" && m.height > 4 {
		said := wrap(oneLine(m.answer), m.width)
		for _, line := range said[:min(len(said), max(1, m.height/4))] {
			foot = append(foot, bold.Styled(fit(line, m.width)))
		}
	}
	return append(foot, faint.Styled(fit(keys, m.width)))
}

// useful reports whether a key does anything for the selected row.
func (m *model) useful(b binding) bool {
	r, ok := m.selected()
	_, isAgent := m.agentOf(r)
	switch b.keys[0] {
	case "r":
		return ok && m.opts.Control != nil && (isAgent || r.server != nil && !r.server.Gateway && !r.server.Gone)
	case "a":
		return ok && m.opts.Control != nil && (r.incident != nil && r.incident.Waits())
	case "t":
		return ok && isAgent && m.opts.Attach != nil
	case "l":
		return m.subject() != ""
	case "n":
		return m.state.Wrong+m.state.Waiting > 0
	}
	return true
}

// shorten joins what fits; help and the way out always do.
func (m *model) shorten(list []string) string {
	const between = "  "
	for len(list) > 2 && ansi.StringWidth(strings.Join(list, between)) > m.width {
		list = append(list[:len(list)-3], list[len(list)-2:]...)
	}
	return strings.Join(list, between)
}

// below are the panes, and the selected one below them.
func (m *model) below(room int) []string {
	details := 0
	if room >= detailsFrom {
		details = max(room-m.wanted(), room*2/5)
	}
	lines := m.lists(m.width, room-details)
	return append(lines, m.details(m.width, room-len(lines))...)
}

// beside are the panes, and the selected one on their right.
func (m *model) beside(room int) []string {
	width := m.width * 11 / 20
	left, right := m.lists(width, room), m.details(m.width-width-3, room)
	lines := make([]string, room)
	for n := range lines {
		one := ""
		if n < len(left) {
			one = left[n]
		}
		lines[n] = fit(one, width) + " │ "
		if n < len(right) {
			lines[n] += right[n]
		}
	}
	return lines
}

// wanted is how many lines the panes would like to have.
func (m *model) wanted() int {
	n := int(panes)
	for p := range panes {
		n += len(m.panes[p])
	}
	return n
}

// lists are the panes. Each has its heading, and rows as far as there is room; with too little the selected pane is all.
func (m *model) lists(width, room int) (lines []string) {
	if room < min(m.wanted(), int(panes)+2) {
		return m.list(m.pane, width, room)
	}
	var share [panes]int
	left := room - int(panes)
	for given := true; given && left > 0; {
		given = false
		for p := range panes {
			if left > 0 && share[p] < len(m.panes[p]) {
				share[p]++
				left--
				given = true
			}
		}
	}
	for p := range panes {
		lines = append(lines, m.list(p, width, share[p]+1)...)
	}
	return lines
}

var paneNames = [panes]string{"Incidents", "Servers", "Agents"}

// nothing is what stands in a pane without rows.
var nothing = [panes]string{"none in the last 24 hours", "none runs; put one behind outlive: outlive run -- COMMAND", "none is declared; find those that run: outlive agent scan"}

// list is one pane in so many lines.
func (m *model) list(p pane, width, room int) []string {
	rows := m.panes[p]
	marker := " "
	if p == m.pane {
		marker = "▶"
	}
	head := fmt.Sprintf("%s %d %s: ", marker, p+1, paneNames[p])
	switch {
	case len(rows) > 0:
		head += m.counted(p, room-1)
	case m.filter != "":
		head += "none that the filter lets through"
	default:
		head += nothing[p]
	}
	lines := []string{bold.Styled(fit(head, width))}
	if len(rows) == 0 || room < 2 {
		return lines[:min(len(lines), max(room, 0))]
	}
	from := m.from(p, room-1)
	c := columnsOf(rows, width)
	if m.width < sideBySide {
		c.counts, c.spark = 0, 0
	}
	for n := from; n < min(len(rows), from+room-1); n++ {
		lines = append(lines, m.row(rows[n], c, width, p == m.pane && rows[n].key == m.cursor[p]))
	}
	return lines
}

// from is the first row that is shown of a pane with so much room.
func (m *model) from(p pane, room int) int {
	return max(0, min(m.at(p)-room/2, len(m.panes[p])-room))
}

// counted says how many rows a pane has, how many of them are wrong, and which are shown.
func (m *model) counted(p pane, room int) string {
	rows := m.panes[p]
	wrong, below, gateways := 0, 0, 0
	from := m.from(p, room)
	for n, r := range rows {
		if r.server != nil && r.server.Gateway {
			gateways++
		}
		if !r.health.Wrong() {
			continue
		}
		wrong++
		if n < from || n >= from+room {
			below++
		}
	}
	text := strconv.Itoa(len(rows) - gateways) // as the first line counts
	switch {
	case gateways == 1:
		text += " and 1 gateway"
	case gateways > 1:
		text += " and " + strconv.Itoa(gateways) + " gateways"
	}
	switch {
	case wrong > 0 && p == incidentPane:
		text += ", " + strconv.Itoa(wrong) + " open"
	case wrong > 0:
		text += ", " + strconv.Itoa(wrong) + " wrong"
	}
	if room > 0 && len(rows) > room {
		text += fmt.Sprintf(" (%d–%d shown", from+1, min(len(rows), from+room))
		if below > 0 {
			text += fmt.Sprintf(", %d wrong not shown: n", below)
		}
		text += ")"
	}
	return text
}

// sparkFrom is how wide a pane has to be for the small curve of calls.
const sparkFrom = 100

// columns are how wide the columns of a pane are.
type columns struct{ name, state, since, counts, spark int }

func columnsOf(rows []row, width int) (c columns) {
	for _, r := range rows {
		c.name = max(c.name, ansi.StringWidth(oneLine0(r.name)))
		c.state = max(c.state, ansi.StringWidth(r.state))
		c.since = max(c.since, ansi.StringWidth(r.since))
		c.counts, c.spark = max(c.counts, ansi.StringWidth(r.counts)), max(c.spark, ansi.StringWidth(r.spark))
	}
	c.name, c.state = min(c.name, width*3/8), min(c.state, width*3/8)
	if width < 50 {
		c.since = 0
	}
	if width < sparkFrom {
		c.spark = 0
	}
	return c
}

// oneLine0 is a name with its indentation, as a terminal may show it.
func oneLine0(name string) string {
	text := strings.TrimLeft(name, " ")
	return name[:len(name)-len(text)] + oneLine(text)
}

func (m *model) row(r row, c columns, width int, selected bool) string {
	marker := " "
	if selected {
		marker = ">"
	}
	text := fit(oneLine0(r.name), c.name) + "  "
	state := fit(oneLine(r.state), c.state)
	rest := ""
	if c.since > 0 {
		rest = "  " + fit(r.since, c.since)
	}
	if c.spark > 0 {
		rest += "  " + fit(r.spark, c.spark)
	}
	if c.counts > 0 {
		rest += "  " + fit(r.counts, c.counts)
	}
	if r.more != "" {
		rest += "  " + r.more
	}
	sign := r.health.Shape()
	if selected {
		return inverse.Styled(fit(marker+sign+" "+text+state+rest, width))
	}
	return fit(marker+coloured(r.health, sign)+" "+text+coloured(r.health, state)+rest, width)
}

// details are what there is to say of the selected one, and the end of what it writes.
func (m *model) details(width, room int) []string {
	r, ok := m.selected()
	if !ok || room < 2 {
		return nil
	}
	lines := []string{rule(oneLine(r.name)+": "+oneLine(r.state), width)}
	var facts []string
	for _, f := range r.facts {
		facts = append(facts, wrap(f, width)...)
	}
	if r.incident != nil && len(r.incident.Buttons) > 0 && m.opts.Control != nil {
		facts = append(facts, wrap("Enter: "+strconv.Itoa(len(r.incident.Buttons))+" ways to answer; a: acknowledge", width)...)
	}
	most := room - 1
	if m.subject() != "" && room > 6 {
		most = room - 4 // its heading, and some lines of what it writes
	}
	if len(facts) > most {
		facts = append(facts[:most-1:most-1], fit("… (a larger window shows more)", width))
	}
	lines = append(lines, facts...)
	if m.subject() == "" || room-len(lines) < 2 {
		return lines
	}
	lines = append(lines, rule(m.textTitle(), width))
	return append(lines, m.tail(width, room-len(lines))...)
}

// textTitle says whose text is shown.
func (m *model) textTitle() string {
	title := "what it writes to stderr"
	if strings.HasPrefix(m.subject(), "agent ") {
		title = "what it writes"
	}
	if since, busy := m.asked[m.subject()]; busy && m.now.Sub(since) > 2*time.Second {
		title += ": ▲ not read for " + overview.Took(m.now.Sub(since))
	}
	return title
}

// tail is the end of the text, one line each.
func (m *model) tail(width, room int) []string {
	switch {
	case room < 1:
		return nil
	case m.text.err != nil:
		return []string{fit("it cannot be read: "+oneLine(m.text.err.Error()), width)}
	case m.text.at.IsZero():
		return []string{"…"}
	case len(m.text.lines) == 0:
		return []string{faint.Styled(fit("nothing is kept of it", width))}
	}
	list := m.text.lines[max(0, len(m.text.lines)-room):]
	lines := make([]string, len(list))
	for n, line := range list {
		lines[n] = fit(line, width)
	}
	return lines
}

// wrapped is the text, as wide as the screen.
func (m *model) wrapped() (lines []string) {
	for _, line := range m.text.lines {
		lines = append(lines, wrap(line, m.width)...)
	}
	return lines
}

// wholeText is the text on the whole screen.
func (m *model) wholeText(room int) []string {
	name := ""
	if r, ok := m.selected(); ok {
		name = oneLine(r.name) + ": "
	}
	all := m.wrapped()
	end := max(0, len(all)-m.back)
	from := max(0, end-(room-1))
	title := name + m.textTitle()
	if m.back > 0 {
		title += fmt.Sprintf(" (%d lines below; G: the end)", m.back)
	}
	lines := []string{rule(title, m.width)}
	if len(all) == 0 {
		return append(lines, m.tail(m.width, room-1)...)
	}
	return append(lines, all[from:end]...)
}

// choices are the ways to answer an incident.
func (m *model) choices(room int) []string {
	i := m.target.incident
	lines := []string{rule("Answer: "+oneLine(i.Title), m.width)}
	for _, f := range m.target.facts {
		lines = append(lines, wrap(f, m.width)...)
	}
	lines = append(lines[:min(len(lines), max(1, room-len(i.Buttons)-1))], "")
	for n, b := range i.Buttons {
		lines = append(lines, fit(fmt.Sprintf("  %d  %s", n+1, oneLine(b.Label)), m.width))
	}
	return lines[:min(len(lines), room)]
}

// help explains keys and signs.
func (m *model) help(room int) []string {
	lines := []string{rule("Keys", m.width)}
	for _, b := range bindings() {
		if b.help != "" {
			lines = append(lines, fit(" "+fit(b.shown, 9)+b.help, m.width))
		}
	}
	signs := "● well  ○ not needed  ◐ starting  ▲ trouble  ✖ broken, or waits for you  ? not known"
	lines = append(lines, rule("Signs", m.width))
	lines = append(lines, wrap(signs, m.width)...)
	lines = append(lines, wrap("The mouse is left to the terminal: select and copy as always.", m.width)...)
	return lines[:min(len(lines), room)]
}

// rule is a line with a heading.
func rule(title string, width int) string {
	text := fit("─ "+title+" ", min(width, ansi.StringWidth(title)+3))
	return bold.Styled(text) + faint.Styled(strings.Repeat("─", max(0, width-ansi.StringWidth(text))))
}

// wrap breaks a text into lines, at words where that is possible. Hard breaks are for what the first step leaves too wide.
func wrap(text string, width int) []string {
	width = max(1, width)
	return strings.Split(ansi.Hardwrap(ansi.Wordwrap(text, width, ""), width, true), "\n")
}
