package agentcli

import (
	"strings"
	"testing"
	"time"
)

const (
	geminiHead    = `{"sessionId":"g1","projectHash":"h","kind":"main"}`
	geminiContext = `{"$set":{"messages":[{"id":"0","timestamp":"2026-11-21T12:59:00Z","type":"user","content":[{"text":"<session_context>\nx"}]}]}}`
	geminiPrompt  = `{"id":"1","type":"user","content":[{"text":"Check the shop"}]}`
	geminiSays    = `{"id":"2","type":"gemini","content":"I will look.","tokens":{"total":100}}`
	geminiRuns    = `{"id":"2","type":"gemini","content":"","tokens":{"total":100}}`
	geminiRan     = `{"id":"2","type":"gemini","content":"","tokens":{"total":100},"toolCalls":[{"id":"c1","name":"run_shell_command","args":{"command":"make"},"status":"success","result":[{"functionResponse":{"id":"c1","response":{"output":"ok"}}}]}]}`
	geminiReplies = `{"id":"3","type":"user","content":[{"text":"Be quick"},{"functionResponse":{"id":"c1","response":{"output":"ok"}}}]}`
	geminiDone    = `{"id":"4","type":"gemini","content":"Shall I sell it?","tokens":{"total":10}}`
)

func geminiTyped(text string) string {
	return `{"id":"5","type":"user","content":[{"text":"` + text + `"}]}`
}

func geminiSaid(kind, text string) string {
	return `{"id":"9","type":"` + kind + `","content":"` + text + `"}`
}

func TestGeminiRecords(t *testing.T) {
	t.Parallel()
	prompt := []string{geminiHead, geminiContext, geminiPrompt}
	ran := append(prompt[:3:3], geminiRuns, geminiRan)
	rest := append(prompt[:3:3], geminiSays)
	and := func(records []string, more ...string) []string {
		return append(records[:len(records):len(records)], more...)
	}
	tests := map[string]struct {
		records []string
		want    string
	}{
		"only the surroundings":           {prompt[:2], "nothing"},
		"a prompt":                        {prompt, "model"},
		"an answer":                       {rest, "ended"},
		"a call runs":                     {ran[:4], "tool a tool()"},
		"a call runs, after a text":       {and(prompt, geminiSays, strings.ReplaceAll(geminiRuns, `"2"`, `"8"`)), "tool a tool()"},
		"it has ended":                    {ran, "model"},
		"its result is sent":              {and(ran, geminiReplies), "model"},
		"the end, with a question":        {and(ran, geminiReplies, geminiDone), "ended asking"},
		"nothing more to say":             {and(ran, geminiReplies, `{"id":"4","type":"gemini","content":[]}`), "ended"},
		"a document is sent":              {and(ran, geminiReplies, `{"id":"4","type":"gemini","content":[{"text":"Binary content received.","thought":true}]}`, `{"id":"5","type":"info","content":[{"inlineData":{}}]}`), "model"},
		"a call that is a part":           {and(prompt, `{"id":"2","type":"gemini","content":[{"text":"I will look."},{"functionCall":{"name":"x"}}]}`), "tool a tool()"},
		"cancelled":                       {and(prompt, geminiSaid("info", "Request cancelled.")), "ended interrupted"},
		"cancelled by its user":           {and(prompt, geminiSaid("info", "User cancelled the request.")), "ended interrupted"},
		"cancelled after a text":          {and(rest, geminiSaid("info", "Request cancelled.")), "ended interrupted"},
		"what ends behind that":           {and(ran[:4], geminiSaid("info", "Request cancelled."), strings.ReplaceAll(geminiRan, `"2"`, `"8"`), geminiReplies), "ended interrupted"},
		"another prompt behind that":      {and(ran[:4], geminiSaid("info", "Request cancelled."), geminiTyped("Go on")), "model"},
		"stopped by a hook":               {and(ran, geminiSaid("info", "Agent execution stopped: enough")), "ended"},
		"stopped as a loop":               {and(ran, geminiSaid("info", "A potential loop was detected. This can happen due to repetitive tool calls.")), "ended"},
		"its limit of turns":              {and(ran, geminiSaid("info", "The session has reached the maximum number of turns: 5. Please update this limit.")), "ended [execution 0 try 0/0]"},
		"results that do not fit":         {and(ran, geminiSaid("info", "Sending this message (5 tokens) might exceed the context window limit (3 tokens left).")), "ended [context 0 try 0/0]"},
		"a prompt that does not fit":      {and(rest, geminiSaid("info", "Sending this message (5 tokens) might exceed the context window limit (3 tokens left).")), "ended"},
		"another note":                    {and(prompt, geminiSaid("info", "Context compressed from 51% to 12%.")), "model"},
		"an error":                        {and(prompt, geminiSaid("error", `[API Error: {\"error\":{\"code\":429,\"message\":\"quota\"}}]`)), "ended [rate_limit 429 try 0/0]"},
		"an answer that was empty":        {and(prompt, geminiSaid("error", "The model returned reasoning thoughts but no final response text. If your context window is near capacity, try using /compress.")), "ended [api 0 try 0/0]"},
		"an error of a command":           {and(rest, geminiSaid("error", "Unknown command: /x")), "ended"},
		"an error of a server":            {and(prompt, geminiSaid("error", "MCP ERROR (shop): Connection closed")), "model"},
		"the prompt is taken back":        {and(prompt, geminiContext), "ended"},
		"all is taken back":               {and(prompt, `{"$set":{"messages":[]}}`), "ended"},
		"the history is shortened":        {and(ran, `{"$set":{"messages":[{"id":"0","timestamp":"2026-11-21T12:59:00Z"},{"id":"6","timestamp":"2026-11-21T13:04:30Z"}]}}`), "model"},
		"a list without times":            {and(prompt, `{"$set":{"messages":[{"id":"0"}]}}`), "model"},
		"another change of the head":      {and(prompt, `{"$set":{"lastUpdated":"2026-11-21T13:03:00Z"}}`), "model"},
		"a person goes back":              {and(rest, geminiTyped("Sell it"), geminiDone, `{"$rewindTo":"5"}`), "ended interrupted"},
		"it goes on by itself":            {and(rest, geminiTyped("Please continue.")), "model"},
		"it is told of a loop":            {and(rest, geminiTyped("System: Potential loop detected. Details: x")), "model"},
		"a command of its user's":         {and(rest, geminiTyped(`I ran the following shell command:\nls`)), "ended"},
		"another directory":               {and(rest, geminiTyped(`- **Workspace Directories:**\n  - /x`)), "ended"},
		"what a hook adds":                {and(rest, geminiTyped("<hook_context>x</hook_context>")), "ended"},
		"a prompt behind that":            {and(rest, geminiTyped(`<hook_context>x</hook_context>\n\nSell it`)), "model"},
		"the history again":               {and(ran, geminiTyped("<session_context>"), geminiTyped("Check the shop"), `{"id":"7","type":"gemini","content":[{"text":"Done?"}]}`), "model"},
		"an answer behind that":           {and(ran, geminiTyped("<session_context>"), geminiTyped("Check the shop"), geminiDone), "ended asking"},
		"records that nobody knows":       {and(prompt, `{"id":"9","type":"future"}`, `{"$rewindTo":7}`, `{"$set":7}`, `{"$set":{"messages":7}}`, `"x"`), "model"},
		"reading begins at the call":      {[]string{geminiRan}, "model"},
		"reading begins in a cut history": {[]string{`{"$set":{"messages":[{"id":"0","timestamp":"2026-11-21T12:59:00Z"}]}}`, geminiReplies}, "model"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := reading(told(newGemini(), test.records...)); got != test.want {
				t.Errorf("%q, wanted %q", got, test.want)
			}
		})
	}
}

func TestGeminiFigures(t *testing.T) {
	t.Parallel()
	got := told(newGemini(), geminiHead, geminiPrompt, geminiRuns, geminiRan, geminiReplies, geminiDone)
	if got.Tokens != 110 || got.Turns != 1 {
		t.Errorf("%d tokens, %d turns", got.Tokens, got.Turns)
	}
	minute := func(m int) time.Time { return time.Date(2026, 11, 21, 13, m, 0, 0, time.UTC) }
	if !got.ProgressAt.Equal(minute(3)) {
		t.Errorf("progress at %v", got.ProgressAt)
	}
	asked := `{"id":"2","type":"gemini","content":"","toolCalls":[{"id":"c1","name":"ask_user","status":"success","timestamp":"2026-11-21T13:09:00Z"}]}`
	for name, test := range map[string]struct {
		records []string
		want    time.Time
	}{
		"a prompt":          {[]string{geminiHead, geminiPrompt, geminiSays, geminiTyped("Go on")}, minute(3)},
		"the CLI's own":     {[]string{geminiHead, geminiPrompt, geminiSays, geminiTyped("Please continue.")}, minute(1)},
		"the history again": {[]string{geminiHead, geminiPrompt, geminiRuns, geminiTyped("<session_context>"), geminiTyped("Go on")}, minute(1)},
		"an answer":         {[]string{geminiHead, geminiPrompt, geminiRuns, asked}, minute(9)},
	} {
		if got := told(newGemini(), test.records...); !got.TypedAt.Equal(test.want) {
			t.Errorf("%s: typed at %v, wanted %v", name, got.TypedAt, test.want)
		}
	}
}

// The texts of errors as parseAndFormatApiError of the CLI makes them from the provider's answers.
func TestGeminiFailures(t *testing.T) {
	t.Parallel()
	const (
		demand = "This model is currently experiencing high demand. Spikes in demand are usually temporary. Please try again later."
		key    = "API key not valid. Please pass a valid API key."
		credit = "Your prepayment credits are depleted."
		wait   = "\nPlease wait and try again later. To increase your limits, request a quota increase through AI Studio, or switch to another /auth method"
		flash  = "\nPossible quota limitations in place or slow response times detected. Switching to the gemini-2.5-flash model for the rest of this session."
	)
	at := time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		text   string
		kind   FailureKind
		status int
		said   string        // "": all of it
		until  time.Duration // 0: unknown
	}{
		"a key":              {`[API Error: {"error":{"code":400,"message":"` + key + `","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]`, AuthFailure, 400, key, 0},
		"a key, in words":    {"[API Error: " + key + " (Status: INVALID_ARGUMENT)]", AuthFailure, 0, "", 0},
		"streamed":           {`[API Error: {"error":{"message":"{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"` + demand + `\",\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n","code":503,"status":"Service Unavailable"}}]`, APIFailure, 503, demand, 0},
		"tried again before": {"[API Error: " + demand + "]", APIFailure, 0, "", 0},
		"credit":             {`[API Error: {"error":{"code":429,"message":"` + credit + `","status":"RESOURCE_EXHAUSTED"}}]` + wait, CreditEmpty, 429, credit, 0},
		"the day's quota":    {"[API Error: You have exhausted your daily quota on this model.]" + wait, RateLimited, 0, "", 0},
		"the minute's":       {"[API Error: You exceeded your current quota, please check your plan and billing details.\nSuggested retry after 60s.]" + wait, RateLimited, 0, "", time.Minute},
		"the capacity":       {"[API Error: No capacity available for model gemini-2.5-pro on the server]" + flash, RateLimited, 0, "", 0},
		"a bad request":      {`[API Error: {"error":{"code":400,"message":"Invalid {name}","status":"INVALID_ARGUMENT"}}]`, ExecutionFailed, 400, "Invalid {name}", 0},
		"nothing known":      {"[API Error: An unknown error occurred.]", ExecutionFailed, 0, "", 0},
	} {
		got := geminiFailure(test.text, at)
		want := Failure{Kind: test.kind, Status: test.status, Text: test.said, At: at, Final: true}
		if test.said == "" {
			want.Text = test.text
		}
		if test.until > 0 {
			want.Until = at.Add(test.until)
		}
		if got != want {
			t.Errorf("%s: %+v, wanted %+v", name, got, want)
		}
	}
}
