package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/secret"
	"github.com/outlive-mcp/outlive/internal/record/tap"
)

// Path is a member of an answer that is not compared, as a person writes it: names and indexes with dots between them, such as
// result.content.0.text. A * stands for one of any name, or for any index.
type Path []string

// ParsePath reads a path; [0] and .0 are the same.
func ParsePath(text string) (Path, error) {
	p := Path(strings.Split(strings.NewReplacer("[", ".", "]", "").Replace(strings.TrimPrefix(text, "$.")), "."))
	if slices.Contains(p, "") || p[0] != "result" && p[0] != "error" {
		return nil, fmt.Errorf("%q is not a path: want one such as result.content[0].text, or result.structuredContent.*.time, that begins with result or error", text)
	}
	return p, nil
}

func (p Path) matches(at []string) bool {
	return slices.EqualFunc(p, at, func(want, is string) bool { return want == "*" || want == is })
}

// Difference is where two answers differ.
type Difference struct {
	Path string `json:"path"`          // as for --ignore
	Was  string `json:"was,omitempty"` // raw JSON, as recorded; "": nothing was there
	Is   string `json:"is,omitempty"`  // likewise, now
}

// differencesMost is how many differences of one answer are told.
const differencesMost = 20

// compare compares an answer with the recorded one.
func (s *step) compare(got []byte, ignore []Path) Answer {
	a := Answer{Method: s.said.Method, Target: s.said.Target, ID: string(s.said.ID), Recorded: s.said.Timestamp}
	a.Hidden = bytes.Contains(s.said.Body, []byte(secret.Hidden))
	switch was := s.answer; {
	case was == nil:
		a.Uncompared = "no answer was recorded"
	case was.From == tap.Outlive:
		a.Uncompared = "the recorded answer is outlive's own"
	default:
		if was.Call != nil {
			a.WasMS = was.Call.DurationMS
		}
		c := comparison{ignore: ignore}
		for _, part := range []string{"result", "error"} {
			c.compare([]string{part}, member(was.Body, part), member(secret.JSON(got), part))
		}
		a.Differences = c.found
	}
	return a
}

// absent is the value of what is not there.
type absent struct{}

// member is the decoded value of a member of a message.
func member(text []byte, name string) any {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var all map[string]any
	if d.Decode(&all) != nil {
		return absent{}
	}
	return valueOf(all, name)
}

// comparison collects differences.
type comparison struct {
	ignore []Path
	found  []Difference
}

func (c *comparison) compare(at []string, was, is any) {
	if len(c.found) >= differencesMost || slices.ContainsFunc(c.ignore, func(p Path) bool { return p.matches(at) }) {
		return
	}
	switch was := was.(type) {
	case map[string]any:
		if is, ok := is.(map[string]any); ok {
			names := maps.Clone(was)
			maps.Copy(names, is)
			for _, name := range slices.Sorted(maps.Keys(names)) {
				c.compare(append(slices.Clone(at), name), valueOf(was, name), valueOf(is, name))
			}
			return
		}
	case []any:
		if is, ok := is.([]any); ok {
			for i := range max(len(was), len(is)) {
				c.compare(append(slices.Clone(at), strconv.Itoa(i)), elementOf(was, i), elementOf(is, i))
			}
			return
		}
	case json.Number:
		if is, ok := is.(json.Number); ok && sameNumber(was, is) {
			return
		}
	default: // a string, true, false, null or nothing; what it is compared with may be of a kind that cannot be compared
		if raw(was) == raw(is) {
			return
		}
	}
	c.found = append(c.found, Difference{strings.Join(at, "."), raw(was), raw(is)})
}

func valueOf(all map[string]any, name string) any {
	if v, ok := all[name]; ok {
		return v
	}
	return absent{}
}

func elementOf(all []any, i int) any {
	if i < len(all) {
		return all[i]
	}
	return absent{}
}

// sameNumber reports whether two numbers have one value: 1.0 and 1 do. Integers are compared by their digits, which a float may not hold.
func sameNumber(a, b json.Number) bool {
	if a == b || !strings.ContainsAny(string(a+b), ".eE") {
		return a == b
	}
	x, errX := a.Float64()
	y, errY := b.Float64()
	return errX == nil && errY == nil && x == y
}

func raw(v any) string {
	if _, none := v.(absent); none {
		return ""
	}
	text, _ := json.Marshal(v) // it was decoded from JSON
	return string(text)
}

// lineMost is the longest line of a server that is read, in bytes.
const lineMost = 64 << 20

// linesOf yields the lines of a server's output.
func linesOf(from io.Reader) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		lines := bufio.NewScanner(from)
		lines.Buffer(nil, lineMost)
		for lines.Scan() && yield(bytes.Clone(lines.Bytes())) {
		}
	}
}
