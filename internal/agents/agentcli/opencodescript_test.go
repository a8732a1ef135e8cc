package agentcli

import (
	"fmt"
	"path/filepath"
	"testing"
)

const (
	openCodeUser = `{"role":"user","time":{"created":1}}`
	openCodeStep = `{"type":"step-start"}`
)

// openCodeAnswer is a message of the model that is over. more are members of it.
func openCodeAnswer(more string) string {
	return `{"role":"assistant","time":{"created":1,"completed":1795266990000}` + more + `}`
}

// openCodeCall is a command that has returned. more are members of its part, state of its state.
func openCodeCall(more, state string) string {
	return `{"type":"tool","callID":"c1","tool":"bash"` + more + `,"state":{"input":{"command":"make"},"time":{"start":1795266900000,"end":1795266950000},` + state + `}}`
}

// openCodeTurns reads a session for each name, which do has filled.
func openCodeTurns(t *testing.T, names []string, do func(o *openCode, name string)) map[string]Turn {
	t.Helper()
	w := newWorld(t)
	shop := w.dir("shop")
	o := newOpenCode(t, filepath.Join(w.options.Places[OpenCode], openCodeDatabase))
	for _, name := range names {
		o.session(name, shop)
		do(o, name)
	}
	sessions, err := NewReader(w.options).Sessions(Query{Dirs: []string{shop}})
	if err != nil || len(sessions) != len(names) {
		t.Fatalf("%d sessions of %d: %v", len(sessions), len(names), err)
	}
	turns := map[string]Turn{}
	for _, s := range sessions {
		turns[s.ID] = s.Turn
	}
	return turns
}

// An answer ends the turn where OpenCode's own loop ends (its SessionPrompt.run).
func TestAnswersThatEndATurnOfOpenCode(t *testing.T) {
	t.Parallel()
	done, failed := `"status":"completed","output":"ok"`, `"status":"error","error":"exit 1"`
	tests := map[string]struct {
		answer, call, want string
	}{
		"it stops":                                    {openCodeAnswer(`,"finish":"stop"`), "", "ended"},
		"it is as long as it may be":                  {openCodeAnswer(`,"finish":"length"`), "", "ended"},
		"its provider does not say why":               {openCodeAnswer(`,"finish":"unknown"`), "", "ended"},
		"its provider gives an error":                 {openCodeAnswer(`,"finish":"error"`), "", "ended"},
		"it is filtered":                              {openCodeAnswer(`,"finish":"content-filter","error":{"name":"ContentFilterError","data":{"message":"blocked"}}`), "", "ended [execution 0 try 0/0]"},
		"it calls":                                    {openCodeAnswer(`,"finish":"tool-calls"`), openCodeCall("", done), "model"},
		"it says that it calls, and does not":         {openCodeAnswer(`,"finish":"tool-calls"`), "", "model"},
		"it stops beside a call":                      {openCodeAnswer(`,"finish":"stop"`), openCodeCall("", done), "model"},
		"it stops beside a call that fails":           {openCodeAnswer(`,"finish":"stop"`), openCodeCall("", failed), "model"},
		"the provider has made the call":              {openCodeAnswer(`,"finish":"stop"`), openCodeCall(`,"metadata":{"providerExecuted":true}`, done), "ended"},
		"the call was cut off":                        {openCodeAnswer(`,"finish":"length"`), openCodeCall("", `"metadata":{"interrupted":true},`+failed), "ended"},
		"a person refuses the call":                   {openCodeAnswer(`,"finish":"tool-calls"`), openCodeCall("", `"status":"error","error":"The user rejected permission to use this specific tool call."`), "ended"},
		"a person does not answer it":                 {openCodeAnswer(`,"finish":"tool-calls"`), openCodeCall("", `"status":"error","error":"The user dismissed this question"`), "ended"},
		"a person refuses it and says why":            {openCodeAnswer(`,"finish":"tool-calls"`), openCodeCall("", `"status":"error","error":"The user rejected permission to use this specific tool call with the following feedback: no"`), "model"},
		"the context is full, before it is compacted": {openCodeAnswer(""), "", "model"},
	}
	var names []string
	for name := range tests {
		names = append(names, name)
	}
	turns := openCodeTurns(t, names, func(o *openCode, name string) {
		o.message(name, name+" 1", openCodeUser, `{"type":"text","text":"go"}`)
		parts := []string{openCodeStep}
		if call := tests[name].call; call != "" {
			parts = append(parts, call)
		}
		o.message(name, name+" 2", tests[name].answer, parts...)
	})
	for name, test := range tests {
		if got := reading(turns[name]); got != test.want {
			t.Errorf("%s: %q, wanted %q", name, got, test.want)
		}
	}
}

// A call that changes files is progress, also if its result is an old one. The names are those of OpenCode's tools.
func TestToolsOfOpenCodeThatEdit(t *testing.T) {
	t.Parallel()
	const first, second = 1795266901000, 1795266909000
	edits := map[string]bool{"edit": true, "write": true, "apply_patch": true, "read": false, "task": false, "patch": false, "multiedit": false}
	var names []string
	for name := range edits {
		names = append(names, name)
	}
	turns := openCodeTurns(t, names, func(o *openCode, name string) {
		call := func(id string, end int64) string {
			return fmt.Sprintf(`{"type":"tool","callID":%q,"tool":%q,"state":{"status":"completed","input":{},"output":"ok","time":{"start":%d,"end":%d}}}`, id, name, end-500, end)
		}
		o.message(name, name+" 1", openCodeUser, `{"type":"text","text":"go"}`)
		o.message(name, name+" 2", openCodeAnswer(`,"finish":"tool-calls"`), openCodeStep, call("c1", first), call("c2", second))
	})
	for name, edit := range edits {
		want := int64(first)
		if edit {
			want = second
		}
		if got := turns[name].ProgressAt.UnixMilli(); got != want {
			t.Errorf("%s: %d, wanted %d", name, got, want)
		}
	}
}

// OpenCode writes messages of its user, too. Only what a person has written counts as one who types.
func TestPromptsOfOpenCodeThatAPersonTypes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		parts []string
		typed bool
	}{
		"a text":                     {[]string{`{"type":"text","text":"go on"}`}, true},
		"a file, and then a text":    {[]string{`{"type":"text","text":"Called the Read tool","synthetic":true}`, `{"type":"file","mime":"text/plain","url":"file:///a"}`, `{"type":"text","text":"go on"}`}, true},
		"an order to compact":        {[]string{`{"type":"compaction","auto":false}`}, true},
		"OpenCode's own":             {[]string{`{"type":"compaction","auto":true,"overflow":true}`}, false},
		"to continue after that":     {[]string{`{"type":"text","text":"Continue if you have next steps","synthetic":true,"metadata":{"compaction_continue":true}}`}, false},
		"before its parts are there": {nil, false},
	}
	var names []string
	for name := range tests {
		names = append(names, name)
	}
	first, second := map[string]int64{}, map[string]int64{}
	turns := openCodeTurns(t, names, func(o *openCode, name string) {
		o.message(name, name+" 1", openCodeUser, `{"type":"text","text":"go"}`)
		first[name] = o.at
		o.message(name, name+" 2", openCodeAnswer(`,"finish":"stop"`), openCodeStep, `{"type":"text","text":"done"}`)
		o.message(name, name+" 3", openCodeUser, tests[name].parts...)
		second[name] = o.at
	})
	for name, test := range tests {
		want := first[name]
		if test.typed {
			want = second[name]
		}
		turn := turns[name]
		if got := turn.TypedAt.UnixMilli(); got != want {
			t.Errorf("%s: typed at %d, wanted %d", name, got, want)
		}
		if got := reading(turn); got != "model" || turn.OpenAt.UnixMilli() != second[name] {
			t.Errorf("%s: %q since %v", name, got, turn.OpenAt)
		}
	}
}

// A compaction is part of the turn: the agent goes on after it.
func TestCompactionOfOpenCode(t *testing.T) {
	t.Parallel()
	var typed int64
	turn := openCodeTurns(t, []string{"s"}, func(o *openCode, _ string) {
		o.message("s", "m1", openCodeUser, `{"type":"text","text":"go"}`)
		typed = o.at
		o.message("s", "m2", openCodeAnswer(""), openCodeStep)
		o.message("s", "m3", openCodeUser, `{"type":"compaction","auto":true,"overflow":true}`)
		o.message("s", "m4", openCodeAnswer(`,"summary":true,"finish":"stop"`), openCodeStep, `{"type":"text","text":"## Goal"}`)
		o.message("s", "m5", openCodeUser, `{"type":"text","text":"Continue if you have next steps","synthetic":true}`)
		o.message("s", "m6", `{"role":"assistant","time":{"created":1}}`, openCodeStep, openCodeCall("", `"status":"running"`))
	})["s"]
	if got := reading(turn); got != "tool bash(make)" || turn.TypedAt.UnixMilli() != typed {
		t.Errorf("%q, typed at %v", got, turn.TypedAt)
	}
}

// A command that a person runs with "!" is a message of its own, in which no model takes part.
func TestCommandThatAPersonRunsInOpenCode(t *testing.T) {
	t.Parallel()
	turns := openCodeTurns(t, []string{"runs", "over"}, func(o *openCode, name string) {
		o.message(name, name+" 1", openCodeUser, `{"type":"text","text":"The following tool was executed by the user","synthetic":true}`)
		if name == "runs" {
			o.message(name, name+" 2", `{"role":"assistant","time":{"created":1}}`, openCodeCall("", `"status":"running"`))
			return
		}
		o.message(name, name+" 2", openCodeAnswer(""), openCodeCall("", `"status":"completed","output":"ok"`))
	})
	if got := reading(turns["runs"]); got != "tool bash(make)" {
		t.Errorf("while it runs: %q", got)
	}
	if got := turns["over"]; reading(got) != "ended" || got.TypedAt.IsZero() {
		t.Errorf("when it is over: %q, typed at %v", reading(got), got.TypedAt)
	}
}

// A prompt during an answer waits for its end. The call that is open then is what the agent waits for.
func TestPromptDuringAnAnswerOfOpenCode(t *testing.T) {
	t.Parallel()
	names := []string{"open", "over", "two", "ended", "killed"}
	typed := map[string]int64{}
	turns := openCodeTurns(t, names, func(o *openCode, name string) {
		o.message(name, name+" 1", openCodeUser, `{"type":"text","text":"go"}`)
		state, data := `"status":"running"`, `{"role":"assistant","time":{"created":1}}`
		switch name {
		case "over":
			state = `"status":"completed","output":"ok"`
		case "ended":
			state, data = `"status":"completed","output":"ok"`, openCodeAnswer(`,"finish":"tool-calls"`)
		}
		o.message(name, name+" 2", data, openCodeStep, openCodeCall("", state))
		o.message(name, name+" 3", openCodeUser, `{"type":"text","text":"and test it"}`)
		typed[name] = o.at
		switch name {
		case "two":
			o.message(name, name+" 4", openCodeUser, `{"type":"text","text":"twice"}`)
			typed[name] = o.at
		case "killed": // and gone on with
			o.message(name, name+" 4", data, openCodeStep)
		}
	})
	for name, want := range map[string]string{"open": "tool bash(make)", "over": "model", "two": "tool bash(make)", "ended": "model", "killed": "model"} {
		if got := turns[name]; reading(got) != want || got.TypedAt.UnixMilli() != typed[name] {
			t.Errorf("%s: %q, wanted %q; typed at %d, wanted %d", name, reading(got), want, got.TypedAt.UnixMilli(), typed[name])
		}
	}
}
