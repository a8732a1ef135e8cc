package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// oddSteps are what each client does with an odd server. The second call shows what is left after the first.
var oddSteps = [4]string{"connect", "list", "call", "call again"}

// oddStep is what came of one step.
type oddStep struct {
	ok   bool   // a result
	told bool   // a result or an error
	said string // the result of a call, the names of the tools, or what went wrong
}

// oddOutcome is what came of one client.
type oddOutcome struct {
	steps    [4]oddStep
	progress int // of the first call
	took     time.Duration
}

// done notes how long the client has taken, at the last step that it came to.
func (o *oddOutcome) done(began time.Time) {
	if o.took == 0 {
		o.took = time.Since(began)
	}
}

// missing is what the client did not get and the form promises; "" is nothing.
func (f oddForm) missing(o oddOutcome) string {
	if f.want == "refused" && o.steps[0].told {
		return ""
	}
	for i, s := range o.steps {
		fine := s.ok
		switch {
		case i == 1:
			fine = s.ok && strings.Contains(s.said, " echo ")
		case i == 2 && (f.is("lost") || f.is("cancel")), i == 3 && f.is("eof"):
			fine = true
		case i > 1 && f.want == "answer":
			fine = s.told
		case i > 1 && f.want == "error":
			fine = s.told && strings.Contains(s.said, "mean") && (!s.ok || strings.Contains(s.said, `"isError":true`))
		case i > 1:
			fine = s.ok && strings.Contains(s.said, f.want)
		}
		if !fine {
			return fmt.Sprintf("%s: %.400s", oddSteps[i], s.said)
		}
	}
	return ""
}

// worse is what the client got direct and did not get behind outlive; "" is nothing. Where the form promises an error, one that is
// as promised is not worse than what the most lenient SDK makes of the answer.
func (f oddForm) worse(direct, behind oddOutcome) string {
	if f.want == "error" && f.missing(behind) == "" {
		return ""
	}
	for i, d := range direct.steps {
		b := behind.steps[i]
		lost := d.ok && !b.ok
		if d.ok && b.ok && i == 1 {
			lost = slices.ContainsFunc(strings.Fields(d.said), func(tool string) bool { return !strings.Contains(b.said, " "+tool+" ") })
		} else if d.ok && b.ok && i > 1 {
			lost = d.said != b.said
		}
		if lost {
			return fmt.Sprintf("%s: direct %.200s, behind outlive %.400s", oddSteps[i], d.said, b.said)
		}
	}
	if direct.progress > 0 && behind.progress == 0 {
		return fmt.Sprintf("call: direct told of progress %d times, behind outlive never", direct.progress)
	}
	return ""
}

// works is how far the client came.
func (o oddOutcome) works() int {
	n := 0
	for _, s := range o.steps {
		if s.ok {
			n++
		}
	}
	return n
}

// oddResult is a step's outcome, without what each SDK adds or leaves out by itself.
func oddResult(result json.RawMessage, err string) oddStep {
	if err != "" {
		late := strings.Contains(err, "timed out") || strings.Contains(err, "deadline") || strings.Contains(err, "not connected after")
		return oddStep{told: !late, said: err}
	}
	var r any
	numbers := json.NewDecoder(bytes.NewReader(result))
	numbers.UseNumber()
	if e := numbers.Decode(&r); e != nil {
		return oddStep{told: true, said: e.Error()}
	}
	if m, ok := r.(map[string]any); ok {
		if list, ok := m["tools"].([]any); ok {
			return oddStep{ok: true, told: true, said: toolsOf(list)}
		}
		r = map[string]any{"content": m["content"], "structuredContent": m["structuredContent"], "isError": m["isError"] == true}
	}
	text, _ := json.Marshal(r)
	return oddStep{ok: true, told: true, said: string(text)}
}

// toolsOf are the names of what is a tool in a list, each between blanks.
func toolsOf(list []any) string {
	names := " "
	for _, tool := range list {
		if t, ok := tool.(map[string]any); ok {
			names += fmt.Sprint(t["name"], " ")
		}
	}
	return names
}

// bySDK has a client of an SDK do the steps, each within limit.
func (f oddForm) bySDK(w *workspace, c client, limit time.Duration, target []string) (o oddOutcome) {
	began := time.Now()
	defer o.done(began)
	s := &session{workspace: w, client: c.name, connecting: limit}
	d, hello := c.start(s, target)
	s.driver = d
	o.steps[0] = oddReply(hello)
	if hello.Error != nil {
		return o
	}
	begin := func(st step) (int, func() oddStep) {
		st["timeout"] = limit.Milliseconds()
		n, ch := s.begin(st)
		return n, func() oddStep {
			select {
			case r := <-ch:
				o.progress += len(r.Progress)
				return oddReply(r)
			case <-time.After(limit):
				return oddStep{said: "no answer"}
			}
		}
	}
	call := func(args map[string]any) (int, func() oddStep) {
		return begin(step{"op": "call", "tool": "echo", "args": args, "progress": f.is("progress")})
	}
	_, listed := begin(step{"op": "list"})
	o.steps[1] = listed()
	n, called := call(map[string]any{"hold": f.is("cancel")})
	switch {
	case f.is("cancel"):
		_, done := begin(step{"op": "cancel", "target": n})
		done()
	case !f.is("lost"):
		o.steps[2] = called()
	}
	_, again := call(map[string]any{})
	o.steps[3] = again()
	o.done(began)
	_, closed := s.begin(step{"op": "close"})
	select {
	case <-closed:
	case <-time.After(5 * time.Second): // the workspace sweeps
	}
	return o
}

func oddReply(r reply) oddStep {
	if r.Error != nil {
		return oddResult(nil, "error "+r.Error.Message)
	}
	return oddResult(r.Result, "")
}

// byRaw has a client of a few lines do the steps on a command line. It reads ids as the SDKs do if it talks to the server itself.
func (f oddForm) byRaw(t *testing.T, w *workspace, limit time.Duration, lenient bool, argv []string) (o oddOutcome) {
	began := time.Now()
	defer o.done(began)
	c := startRaw(t, w, argv)
	c.mu.Lock()
	c.replies = true
	if lenient {
		c.idOf = lenientID
	}
	if f.is("big") {
		c.next = 1 << 53
	}
	c.mu.Unlock()
	hello := map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "raw", "version": "1"}}
	if f.is("old") {
		hello["protocolVersion"] = "2025-06-18"
	}
	if o.steps[0] = c.oddAwait(c.send("initialize", hello), limit); !o.steps[0].ok {
		return o
	}
	c.tell(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	o.steps[1] = c.oddAwait(c.send("tools/list", map[string]any{}), limit)
	params := map[string]any{"name": "echo", "arguments": map[string]any{"hold": f.is("cancel")}}
	if f.is("progress") {
		params["_meta"] = map[string]any{"progressToken": 77}
	}
	called := c.send("tools/call", params)
	switch {
	case f.is("cancel"):
		c.tell(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, c.next))
	case f.is("eof"):
		_ = c.in.Close() // that is what is tried
		o.steps[2] = c.oddAwait(called, limit)
		return o
	case !f.is("lost"):
		o.steps[2] = c.oddAwait(called, limit)
	}
	o.steps[3] = c.oddAwait(c.send("tools/call", map[string]any{"name": "echo", "arguments": map[string]any{}}), limit)
	o.done(began)
	c.mu.Lock()
	for _, line := range c.heard {
		if f.is("progress") && strings.Contains(line, `"notifications/progress"`) { // nobody misses what nobody has asked for
			o.progress++
		}
	}
	c.mu.Unlock()
	_ = c.in.Close() // the test leaves: what it wanted to see it has seen
	select {
	case <-c.ended:
	case <-time.After(limit):
		o.steps[3] = oddStep{said: "it does not end with its stdin"}
	}
	return o
}

// tell writes a notification.
func (c *raw) tell(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = fmt.Fprintln(c.in, line) // an end of the process shows in what is asked next
}

// oddAwait waits for an answer; what does not come is an outcome, too.
func (c *raw) oddAwait(ch <-chan answer, limit time.Duration) oddStep {
	take := func(a answer) oddStep {
		if a.Result != nil && string(a.Result) != "null" {
			return oddResult(a.Result, "")
		}
		return oddResult(nil, "error "+string(a.Error))
	}
	select {
	case a := <-ch:
		return take(a)
	case <-c.ended:
		select {
		case a := <-ch:
			return take(a)
		default:
			return oddStep{said: "the connection has ended"}
		}
	case <-time.After(limit):
		return oddStep{said: "no answer"}
	}
}

// lenientID reads an id as the TypeScript SDK does: by Number().
func lenientID(id json.RawMessage) int {
	n, _ := strconv.ParseFloat(strings.Trim(string(id), `"`), 64) // 0 is nobody's
	return int(n)
}
