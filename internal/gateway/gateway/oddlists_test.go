package gateway

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

// A list that a server never answers costs that list: its tools are shown and called at once, and status says what is missing.
func TestAListThatIsNeverAnswered(t *testing.T) {
	for _, silent := range []string{"prompts/list", "resources/list", "resources/templates/list"} {
		t.Run(silent, func(t *testing.T) {
			w := newWorld(t, Options{ListWait: 3 * time.Second})
			w.plan("a", plan{silent: []string{silent}, caps: `{"tools":{},"prompts":{},"resources":{}}`})
			w.serve(named("a"))
			c := w.legacy()
			if diff := cmp.Diff([]string{"a_do"}, toolsOf(t, c.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))); diff != "" {
				t.Error(diff)
			}
			has(t, "call", c.call("2", "a_do"), `"text":"a"`)
			late := c.ask(`{"jsonrpc":"2.0","id":3,"method":"` + silent + `"}`)
			want(t, "not yet", late)
			w.pass(3 * time.Second)
			has(t, "an empty list", late, `:[]`)
			s := w.gw.servers[0]
			if lack := w.of("a")[0].link.lists.lacking(); s.standing != usable || !strings.Contains(lack, silent+": not answered within 3s") {
				t.Errorf("%v, lacks %q", s.standing, lack)
			}
			p := w.of("a")[0]
			p.answer(p.open[0], map[string]string{
				"prompts/list": list("prompts", "name", []string{"p"}), "resources/list": list("resources", "uri", []string{"x://r"}),
				"resources/templates/list": list("resourceTemplates", "uriTemplate", []string{"x://{r}"}),
			}[silent])
			w.settle()
			w.pass(time.Second)
			kind, _, _ := strings.Cut(silent, "/")
			has(t, "told", c.general, "notifications/"+kind+"/list_changed")
			if lack := p.link.lists.lacking(); lack != "" {
				t.Errorf("lacks %q", lack)
			}
		})
	}
}

// Whether a server has a list is decided by asking it: some do not declare what they have, others never answer for what they have not.
func TestListsThatAreNotDeclared(t *testing.T) {
	w := newWorld(t, Options{ListWait: 15 * time.Second})
	w.plan("a", plan{caps: `{}`})
	w.plan("b", plan{caps: `{"resources":{}}`, silent: []string{"tools/list", "prompts/list"}})
	w.serve(named("a"), named("b"))
	c := w.legacy()
	tools := c.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	want(t, "too early", tools)
	w.pass(undeclaredFor)
	if diff := cmp.Diff([]string{"a_do"}, toolsOf(t, tools)); diff != "" {
		t.Error(diff)
	}
	has(t, "call", c.call("2", "a_do"), `"text":"a"`)
	if lack := w.of("b")[0].link.lists.lacking(); lack != "" {
		t.Errorf("lacks %q", lack)
	}
	// One that declares something is not asked for the rest, also when a client lists again.
	w.pass(lookEvery)
	for range 2 {
		c.ask(`{"jsonrpc":"2.0","id":"p","method":"prompts/list"}`)
		w.pass(lookEvery)
	}
	if a, b := w.of("a")[0].count("prompts/list"), w.of("b")[0].count("prompts/list"); a == 0 || b != 0 {
		t.Errorf("prompts: a was asked %d times, b %d", a, b)
	}
}

// A later page that is refused keeps those before, and one that leads back ends the list.
func TestPagesThatDoNotEndWell(t *testing.T) {
	for name, odd := range map[string]plan{"refused": {bad: true}, "leads back": {again: true}} {
		t.Run(name, func(t *testing.T) {
			odd.pages, odd.tools = true, []string{"do", "make", "see"}
			w := newWorld(t, Options{})
			w.plan("a", odd)
			w.serve(named("a"))
			c := w.legacy()
			want, lacks := []string{"a_do", "a_make", "a_see"}, ""
			if odd.bad {
				want, lacks = []string{"a_do"}, "tools/list: a later page is refused: Invalid cursor"
			}
			if diff := cmp.Diff(want, c.tools()); diff != "" {
				t.Error(diff)
			}
			if lack := w.of("a")[0].link.lists.lacking(); lack != lacks {
				t.Errorf("lacks %q, want %q", lack, lacks)
			}
		})
	}
}

// A later page that is never answered costs what is on it. The pages before are shown, and the rest when it comes after all.
func TestALaterPageThatIsNeverAnswered(t *testing.T) {
	w := newWorld(t, Options{ListWait: 3 * time.Second})
	w.plan("a", plan{pages: true, one: true, tools: []string{"do", "make"}})
	w.serve(named("a"))
	c := w.legacy()
	tools := c.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	w.pass(3 * time.Second)
	if diff := cmp.Diff([]string{"a_do"}, toolsOf(t, tools)); diff != "" {
		t.Error(diff)
	}
	has(t, "call", c.call("2", "a_do"), `"text":"a"`)
	p := w.of("a")[0]
	if lack := p.link.lists.lacking(); lack != "tools/list: a later page is not answered within 3s" {
		t.Errorf("lacks %q", lack)
	}
	p.answer(p.open[0], list("tools", "name", []string{"make"}))
	w.settle()
	if diff := cmp.Diff([]string{"a_do", "a_make"}, c.tools()); diff != "" {
		t.Error(diff)
	}
	if lack := p.link.lists.lacking(); lack != "" {
		t.Errorf("lacks %q", lack)
	}
}

// Not every server tells of its changes. A client that lists again sees what there is now, and a name that nobody knows makes the gateway look
// before it refuses.
func TestChangesThatNobodyTells(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{})
	w.serve(named("a"))
	c := w.legacy()
	c.tools()
	w.pass(lookEvery)
	w.plans["a"].tools = []string{"do", "new"}
	if diff := cmp.Diff([]string{"a_do", "a_new"}, c.tools()); diff != "" {
		t.Error(diff)
	}
	w.pass(lookEvery)
	w.plans["a"].tools = []string{"do", "new", "newest"}
	call := c.call("9", "a_newest")
	w.settle()
	if m, ok := w.of("a")[0].last("tools/call"); !ok || m.Params.Name != "newest" {
		t.Errorf("the new tool is not called: %q", call.lines)
	}
	// It is not asked for each wrong name.
	asked := w.of("a")[0].count("tools/list")
	for id := range 10 {
		has(t, "unknown", c.call(fmt.Sprint(20+id), "a_none"), "Unknown tool: a_none")
	}
	if now := w.of("a")[0].count("tools/list"); now > asked+1 {
		t.Errorf("asked %d times", now-asked)
	}
	// One that does not answer is not waited for.
	w.pass(lookEvery)
	w.plans["a"].silent = []string{"tools/list"}
	list := c.ask(`{"jsonrpc":"2.0","id":40,"method":"tools/list"}`)
	want(t, "too early", list)
	w.pass(lookFor)
	if diff := cmp.Diff([]string{"a_do", "a_new", "a_newest"}, toolsOf(t, list)); diff != "" {
		t.Error(diff)
	}
}

// The same without a session: then each message may come from a client that has listed before.
func TestChangesThatNobodyTellsWithoutASession(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{modern: true})
	w.serve(named("a"))
	list := func() []string { return toolsOf(t, w.client().modern("1", "tools/list", "")) }
	list()
	w.pass(lookEvery)
	w.plans["a"].tools = []string{"do", "new"}
	if diff := cmp.Diff([]string{"a_do", "a_new"}, list()); diff != "" {
		t.Error(diff)
	}
}

// A server that is slow to start has all the time for a client that it would have for the first one, also when it was started before to be asked
// for its era.
func TestTheEraStartTakesNoTimeFromAClient(t *testing.T) {
	w := newWorld(t, Options{ListWait: 15 * time.Second})
	w.plan("a", plan{mute: true})
	w.serve(named("a"))
	w.gw.Warm(w.now)
	w.pass(14 * time.Second)
	list := w.legacy().ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	w.pass(10 * time.Second)
	want(t, "not given up", list)
	for _, p := range w.of("a") {
		p.plan.mute = false
		if m, ok := p.last("initialize"); ok {
			p.greet(m)
		}
	}
	w.settle()
	if diff := cmp.Diff([]string{"a_do"}, toolsOf(t, list)); diff != "" {
		t.Error(diff)
	}
}

// messages are the texts of events.
type messages []string

// Emit implements event.Sink.
func (m *messages) Emit(e event.Event) { *m = append(*m, e.Message) }

// Resources whose URI another server has as well are named in the log, once, and in the status as long as that is so.
func TestEqualURIsAreNamed(t *testing.T) {
	var told messages
	w := newWorld(t, Options{Sink: &told})
	w.plan("a", plan{uris: []string{"config://app", "x:1"}})
	w.plan("b", plan{uris: []string{"config://app", "y:1"}})
	w.serve(named("a"), named("b"))
	for range 2 {
		w.legacy().ask(`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`)
	}
	line := "Server b is used without some of its resources: resources of other servers have the same URI and are shown in their place: config://app (of a)"
	if diff := cmp.Diff(messages{line}, told); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[int][]HiddenResource{1: {{"config://app", "a"}}}, w.gw.hiddenNow()); diff != "" {
		t.Error(diff)
	}
	w.serve(named("b"))
	w.legacy().ask(`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`)
	if hidden := w.gw.hiddenNow(); len(hidden) != 0 || len(told) != 1 {
		t.Errorf("%v, told %q", hidden, told)
	}
}
