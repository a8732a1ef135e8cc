package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// What is shown of an agent when a test fails: the last lines of what it did and wrote, and so many bytes of each.
const (
	shownLines = 60
	shownBytes = 600
)

// explain shows what an agent did in a test that failed: when it showed what, what its commands have given, and whether the
// clock by which it is judged was set meanwhile.
func (a *agent) explain() {
	if !a.t.Failed() || a.done == nil {
		return
	}
	for _, name := range a.transcripts() {
		text, _ := os.ReadFile(name) // its CLI may have removed it
		a.t.Logf("%s, its end:\n%s", filepath.Base(name), tail(strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n"), 12))
	}
	a.t.Logf("what its model was told of its tools:\n%s", tail(a.toolOutputs(), 6))
	a.t.Logf("%s, %d turns, since the workspace began:\n%s%s", a.kind, a.model.Turns(), tail(a.timeline(), shownLines), clockSet(a.w.began, time.Now()))
}

// timeline is what the recorder has seen, without the titles, which tell each step of a spinner.
func (a *agent) timeline() (lines []string) {
	a.rec.mu.Lock()
	defer a.rec.mu.Unlock()
	offset := a.started.Sub(a.w.began).Milliseconds()
	for _, line := range a.rec.lines {
		if line.What != "title" {
			lines = append(lines, fmt.Sprintf("%6d ms %s %s\n", offset+line.MS, line.What, encoded(line.Data)))
		}
	}
	return lines
}

// toolOutputs are the results of tools in the last request to the model that has any.
func (a *agent) toolOutputs() (lines []string) {
	for _, r := range slices.Backward(a.model.Requests()) {
		var body struct {
			Input []struct { // of the Responses API
				Type   string
				Output json.RawMessage
			}
			Messages []struct{ Content json.RawMessage } // of the Messages API
		}
		if json.Unmarshal(r.Body, &body) != nil {
			continue
		}
		for _, item := range body.Input {
			if strings.HasSuffix(item.Type, "_output") {
				lines = append(lines, string(item.Output)+"\n")
			}
		}
		for _, m := range body.Messages {
			if strings.Contains(string(m.Content), `"tool_result"`) {
				lines = append(lines, string(m.Content)+"\n")
			}
		}
		if len(lines) > 0 {
			return lines
		}
	}
	return nil
}

// tail are the last lines, each shortened.
func tail(lines []string, most int) string {
	var text strings.Builder
	for _, line := range lines[max(0, len(lines)-most):] {
		if len(line) > shownBytes {
			line = strings.ToValidUTF8(line[:shownBytes], "") + "…\n"
		}
		text.WriteString(line)
	}
	return text.String()
}

func encoded(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return []byte(err.Error())
	}
	return text
}

// clockSet says by how much the wall clock went another way than the time that has passed, which a monitor takes for a sleep of
// the machine. "": it did not.
func clockSet(from, to time.Time) string {
	by := to.Round(0).Sub(from.Round(0)) - to.Sub(from)
	if by.Abs() < time.Second {
		return ""
	}
	return fmt.Sprintf("the wall clock was set by %v\n", by)
}
