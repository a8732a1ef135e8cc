package e2e

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

// oddHeading is the heading of the section that a hunt writes.
const oddHeading = "## Odd servers"

// oddBoard is what came of the cells, for the document.
type oddBoard struct {
	mu   sync.Mutex
	rows map[string]*oddRow // by form
}

// oddRow is what came of a form's cells: for each kind, which.
type oddRow struct {
	oddForm
	better, fails, worse []string
	cells                int
}

// add takes the outcome of a cell.
func (b *oddBoard) add(c oddCell, direct, behind oddOutcome, worse bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rows == nil {
		b.rows = map[string]*oddRow{}
	}
	r := b.rows[c.oddForm.String()]
	if r == nil {
		r = &oddRow{oddForm: c.oddForm}
		b.rows[c.oddForm.String()] = r
	}
	r.cells++
	cell := fmt.Sprintf("%s, `%s`", oddTitles[c.client], c.lane.name)
	switch {
	case worse:
		r.worse = append(r.worse, cell)
	case direct.works() < behind.works():
		r.better = append(r.better, fmt.Sprintf("%s: %s fails", cell, oddSteps[firstFailed(direct)]))
	case direct.works() < len(oddSteps) && c.missing(direct) != "":
		r.fails = append(r.fails, cell)
	}
}

// firstFailed is the first step that failed.
func firstFailed(o oddOutcome) int {
	return slices.IndexFunc(o.steps[:], func(s oddStep) bool { return !s.ok })
}

var oddTitles = map[string]string{"": "a client of a few lines", "ts1": "TypeScript SDK", "py-legacy": "Python SDK", "go-legacy": "Go SDK"}

// document writes the section, if it is to be written and all forms were tried. It names the commit: it is not compared, because what
// SDKs make of odd servers, and how late, is not ours.
func (b *oddBoard) document(t *testing.T) {
	if tierOf() != "hunt" || !writesDocument() {
		return
	}
	if forms := len(oddForms(t)); len(b.rows) < forms {
		t.Errorf("%d of %d forms were tried, and the section is about all of them", len(b.rows), forms)
		return
	}
	commit, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	text := readDocument(t)
	before, _, after := cutSection(t, text, oddHeading)
	if err := os.WriteFile(documentPath(), []byte(before+b.render(strings.TrimSpace(string(commit)))+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (b *oddBoard) render(commit string) string {
	cells, better, worse := 0, 0, 0
	var asDirect, fails []string
	rows := slices.SortedFunc(maps.Values(b.rows), func(x, y *oddRow) int { return strings.Compare(x.String(), y.String()) })
	var gains, losses strings.Builder
	for _, r := range rows {
		cells, better, worse = cells+r.cells, better+len(r.better), worse+len(r.worse)
		name := fmt.Sprintf("`%s`", r)
		if len(r.better) > 0 {
			row(&gains, name, oddText(r.why), strings.Join(r.better, "; "))
		}
		if len(r.worse) > 0 {
			row(&losses, name, oddText(r.why), strings.Join(r.worse, "; "))
		}
		if len(r.fails) > 0 {
			fails = append(fails, name)
		}
		if len(r.better)+len(r.worse)+len(r.fails) == 0 {
			asDirect = append(asDirect, name)
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "\n%s\n\nServers that are odd in one way each, as bug reports of the field describe them ([e2e/servers/odd_server](../e2e/servers/odd_server)):\n"+
		"%d forms, each with each way through outlive that there is for it and with each SDK, %d cells, each beside its control without outlive.\n"+
		"A client connects, lists the tools and calls one twice. Better than direct: %d cells, worse: %d. `.ci/hunt odd` writes this section; it was\n"+
		"written at %s.\n\n### Better than direct\n\n", oddHeading, len(rows), cells, better, worse, commit)
	header(&out, "Server", "What is odd", "What fails direct, and works behind outlive")
	out.WriteString(gains.String())
	if losses.Len() > 0 {
		out.WriteString("\n### Worse than direct\n\n")
		header(&out, "Server", "What is odd", "Where")
		out.WriteString(losses.String())
	}
	fmt.Fprintf(&out, "\n### As direct\n\nWorks: %s.\n\nFails with and without outlive, with one of the clients or all: %s.\n", strings.Join(asDirect, ", "), strings.Join(fails, ", "))
	return out.String()
}

// oddText is a reason as a cell of a table.
func oddText(why string) string { return strings.ReplaceAll(why, "|", "\\|") }
