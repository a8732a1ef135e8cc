package agentcli

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/testing/hostpath"
)

// told is a parser's turn after some records; each is a minute later than the previous one, from 13:00 on.
func told(p parser, records ...string) Turn {
	for i, record := range records {
		at := time.Date(2026, 11, 21, 13, i, 0, 0, time.UTC).Format(time.RFC3339)
		p.line([]byte(strings.Replace(record, "{", fmt.Sprintf(`{"timestamp":%q,`, at), 1)))
	}
	return p.now().snapshot()
}

const (
	claudePrompt  = `{"type":"user","message":{"content":"Check the shop"}}`
	claudeRequest = `{"type":"api-request","querySource":"repl_main_thread"}`
	claudeBash    = `{"type":"assistant","message":{"stop_reason":"tool_use","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"make"}}]}}`
	claudeResult  = `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]}}`
	claudeSlash   = `{"type":"user","message":{"content":"<command-message>review</command-message>\n<command-name>/review</command-name>"}}`
	claudeEnd     = `{"type":"assistant","message":{"stop_reason":"end_turn","content":[{"type":"text","text":"Done."}]}}`
)

// claudeTimes are calls of one command with the same result.
func claudeTimes(command string, n int) (records []string) {
	for i := range n {
		id := fmt.Sprint("r", i)
		call := strings.ReplaceAll(strings.ReplaceAll(claudeBash, "t1", id), `"make"`, fmt.Sprintf("%q", command))
		records = append(records, call, strings.ReplaceAll(claudeResult, "t1", id))
	}
	return records
}

// called are calls of another tool.
func called(tool string, records []string) (all []string) {
	for _, record := range records {
		all = append(all, strings.Replace(record, `"Bash"`, fmt.Sprintf("%q", tool), 1))
	}
	return all
}

// claudeErrors are calls with the same error, those of one answer at once.
func claudeErrors(answers ...string) (records []string) {
	for _, ids := range answers {
		for _, id := range ids {
			records = append(records, strings.ReplaceAll(strings.ReplaceAll(claudeBash, "t1", string(id)), `"make"`, fmt.Sprintf("%q", string(id))))
		}
		for _, id := range ids {
			result := strings.ReplaceAll(claudeResult, "t1", string(id))
			records = append(records, strings.Replace(result, `"tool_result"`, `"tool_result","is_error":true`, 1))
		}
	}
	return records
}

func TestClaudeRecords(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		records []string
		want    string
	}{
		"a prompt of an old version":       {[]string{claudePrompt}, "model"},
		"thinking":                         {[]string{claudePrompt, `{"type":"assistant","message":{"content":[{"type":"thinking"}]}}`}, "model"},
		"text before a call":               {[]string{claudePrompt, `{"type":"assistant","message":{"stop_reason":"tool_use","content":[{"type":"text","text":"Let me see."}]}}`}, "model"},
		"a request before the result":      {[]string{claudePrompt, claudeBash, claudeRequest, claudeResult}, "model"},
		"a title after the end":            {[]string{claudePrompt, claudeEnd, `{"type":"api-request","querySource":"generate_session_title"}`}, "ended"},
		"a compaction after the end":       {[]string{claudePrompt, claudeEnd, `{"type":"api-request","querySource":"compact"}`, `{"type":"system","subtype":"compact_boundary"}`, `{"type":"user","isCompactSummary":true,"message":{"content":"The story so far"}}`}, "ended"},
		"the main thread goes on":          {[]string{claudePrompt, claudeEnd, claudeRequest}, "model"},
		"a hook that lets it go on":        {[]string{claudePrompt, claudeEnd, `{"type":"user","isMeta":true,"message":{"content":"Stop hook feedback: not yet"}}`}, "model"},
		"a command of the CLI":             {[]string{claudePrompt, claudeEnd, `{"type":"user","message":{"content":"<command-name>/cost</command-name>"}}`, `{"type":"user","message":{"content":"<local-command-stdout>1 $</local-command-stdout>"}}`}, "ended"},
		"a command that is a prompt":       {[]string{claudePrompt, claudeEnd, claudeSlash}, "model"},
		"the prompt it stands for":         {[]string{claudePrompt, claudeEnd, claudeSlash, `{"type":"user","isMeta":true,"message":{"content":[{"type":"text","text":"Review the diff."}]}}`}, "model"},
		"one that asked no model":          {[]string{claudePrompt, claudeEnd, claudeSlash, `{"type":"user","message":{"content":"<local-command-stdout></local-command-stdout>"}}`}, "ended"},
		"a loop":                           {append([]string{claudePrompt}, claudeTimes("make", 5)...), "model repeats 5/0/0"},
		"a repetition that was ordered":    {append([]string{`{"type":"user","message":{"content":"Run make 20 times, please"}}`}, claudeTimes("make", 5)...), "model"},
		"one that was ordered before":      {append([]string{`{"type":"user","message":{"content":"Run make 20 times, please"}}`, claudeEnd, claudePrompt}, claudeTimes("make", 5)...), "model repeats 5/0/0"},
		"sleeping":                         {append([]string{claudePrompt}, claudeTimes("sleep 0.5", 5)...), "model"},
		"polling CI":                       {append([]string{claudePrompt}, claudeTimes("gh run view 7 --json status", 5)...), "model"},
		"polling by a server's tool":       {append([]string{claudePrompt}, called("mcp__ci__get_run_status", claudeTimes("7", 5))...), "model"},
		"polling in calls of its own":      {append([]string{claudePrompt}, slices.Repeat(slices.Concat(claudeTimes("curl -s shop/ready", 1), claudeTimes("sleep 30", 1)), 5)...), "model"},
		"a local one while it thinks":      {[]string{claudePrompt, claudeEnd, claudeSlash, `{"type":"user","message":{"content":"<command-name>/cost</command-name>"}}`, `{"type":"user","message":{"content":"<local-command-stdout>1 $</local-command-stdout>"}}`}, "model"},
		"interrupted while it thinks":      {[]string{claudePrompt, claudeRequest, `{"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}`}, "ended interrupted"},
		"interrupted while it tries again": {[]string{claudePrompt, `{"type":"system","subtype":"api_error","error":{"status":429},"retryAttempt":3,"maxRetries":10}`, `{"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}`}, "ended interrupted"},
		"a question and a command at once": {[]string{claudePrompt, claudeBash, `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t2","name":"AskUserQuestion","input":{"questions":[{"question":"Which?"}]}}]}}`}, "question AskUserQuestion(Which?)"},
		"a plan":                           {[]string{claudePrompt, `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t2","name":"ExitPlanMode","input":{"plan":"1. Sell"}}]}}`}, "plan ExitPlanMode(1. Sell)"},
		"one of two calls returns":         {[]string{claudePrompt, claudeBash, strings.ReplaceAll(claudeBash, "t1", "t2"), claudeResult}, "tool Bash(make)"},
		"both return":                      {[]string{claudePrompt, claudeBash, strings.ReplaceAll(claudeBash, "t1", "t2"), claudeResult, strings.ReplaceAll(claudeResult, "t1", "t2")}, "model repeats 2/0/0"},
		"one error of calls at once":       {append([]string{claudePrompt}, claudeErrors("abc")...), "model"},
		"one error of calls in turn":       {append([]string{claudePrompt}, claudeErrors("a", "b", "c")...), "model repeats 0/3/0"},
		"a subagent's lines":               {[]string{claudePrompt, claudeEnd, `{"isSidechain":true,"type":"user","message":{"content":"look"}}`}, "ended"},
		"reading begins at a result":       {[]string{claudeResult}, "model"},
		"a limit":                          {[]string{claudePrompt, `{"type":"assistant","isApiErrorMessage":true,"error":"rate_limit","apiErrorStatus":429,"message":{"content":[{"type":"text","text":"You've hit your limit · resets 3pm (UTC)"}]}}`}, "ended [rate_limit 429 try 0/0]"},
		"a login that has expired":         {[]string{claudePrompt, `{"type":"assistant","isApiErrorMessage":true,"error":"authentication_failed","message":{"content":[{"type":"text","text":"Please run /login"}]}}`}, "ended [auth 0 try 0/0]"},
		"an account on hold":               {[]string{claudePrompt, `{"type":"assistant","isApiErrorMessage":true,"error":"account_on_hold","message":{"content":[{"type":"text","text":"Your account is on hold"}]}}`}, "ended [auth 0 try 0/0]"},
		"no login at the cloud":            {[]string{claudePrompt, `{"type":"assistant","isApiErrorMessage":true,"error":"cloud_credential_error","message":{"content":[{"type":"text","text":"API Error: Could not load AWS credentials"}]}}`}, "ended [auth 0 try 0/0]"},
		"an error, and then an answer":     {[]string{claudePrompt, `{"type":"system","subtype":"api_error","error":{"status":529},"retryAttempt":1,"maxRetries":10}`, claudeEnd}, "ended"},
		"an error that is only a text":     {[]string{claudePrompt, `{"type":"system","subtype":"api_error","error":"odd"}`}, "model [api 0 try 0/0]"},
		"members of other types":           {[]string{claudePrompt, `{"type":"assistant","cwd":7,"isMeta":"no","message":{"stop_reason":"end_turn","usage":"many","content":[{"type":"text","text":"Done?"}]}}`}, "ended asking"},
		"records that nobody knows":        {[]string{claudePrompt, `{"type":"future","message":{"stop_reason":"end_turn"}}`, `{"type":"user"}`, `{"broken`, `[]`, `7`}, "model"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := reading(told(newClaude(), test.records...)); got != test.want {
				t.Errorf("%q, wanted %q", got, test.want)
			}
		})
	}
}

// A person is there who types while the model works, or a command of the CLI: it is recorded otherwise than a prompt.
func TestClaudeTypedWithoutATurn(t *testing.T) {
	t.Parallel()
	queue := func(operation, text string) string {
		return fmt.Sprintf(`{"type":"queue-operation","operation":%q,"content":%q}`, operation, text)
	}
	said := func(text string) string { return fmt.Sprintf(`{"type":"user","message":{"content":%q}}`, text) }
	minute := func(m int) time.Time { return time.Date(2026, 11, 21, 13, m, 0, 0, time.UTC) }
	for name, test := range map[string]struct {
		record string
		want   time.Time
	}{
		"a prompt while it works": {queue("enqueue", "And the cellar"), minute(2)},
		"it is handed over":       {queue("remove", "And the cellar"), minute(0)},
		"a task has ended":        {queue("enqueue", "<task-notification>\n<task-id>b1</task-id>"), minute(0)},
		"a command of the CLI":    {said("<command-name>/status</command-name>"), minute(2)},
		"one of the shell":        {said("<bash-input>ls</bash-input>"), minute(2)},
		"what a command says":     {said("<local-command-stdout>1 $</local-command-stdout>"), minute(0)},
	} {
		got := told(newClaude(), claudePrompt, claudeBash, test.record)
		if !got.TypedAt.Equal(test.want) || got.Open != Tool {
			t.Errorf("%s: typed at %v, wanted %v; open: %v", name, got.TypedAt, test.want, got.Open)
		}
	}
	order := queue("enqueue", "Look every 5 minutes")
	if got := reading(told(newClaude(), append([]string{claudePrompt, order}, claudeTimes("make", 5)...)...)); got != "model" {
		t.Errorf("a repetition that was ordered meanwhile: %q", got)
	}
}

// A session that has asked to be woken lives on at rest, however long.
func TestClaudeWakesItself(t *testing.T) {
	t.Parallel()
	for tool, want := range map[string]bool{"ScheduleWakeup": true, "CronCreate": true, "Bash": false} {
		records := []string{claudePrompt, strings.Replace(claudeBash, "Bash", tool, 1), claudeResult, claudeEnd}
		if got := told(newClaude(), records...); !got.Ended || got.WakesItself != want {
			t.Errorf("after %s: ended %v, wakes itself %v", tool, got.Ended, got.WakesItself)
		}
	}
}

// A resumed session is informed of the tasks that its previous process has left, and its model is not called: it
// continues when a person types, and only then is the task no longer waited for.
func TestTasksOfTheRunBefore(t *testing.T) {
	t.Parallel()
	const (
		bash  = `{"type":"assistant","message":{"stop_reason":"tool_use","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"make","run_in_background":true}}]}}`
		runs  = `{"type":"user","toolUseResult":{"backgroundTaskId":"b1"},"message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"Command running in background with ID: b1."}]}}`
		head  = `<task-notification>\n<task-id>b1</task-id>\n<status>stopped</status>\n<summary>`
		left  = head + `Background shell command didn't finish before the previous session ended</summary>\n</task-notification>`
		ended = head + `Background command \"make\" was stopped</summary>\n</task-notification>`
		user  = head + `Task \"make\" was stopped by the user</summary>\n</task-notification>`
	)
	queued := func(text string) string {
		return `{"type":"queue-operation","operation":"enqueue","content":"` + text + `"}`
	}
	delivered := func(text string) string {
		return `{"type":"user","origin":{"kind":"task-notification"},"message":{"content":"` + text + `"}}`
	}
	for name, test := range map[string]struct {
		more []string
		want string
	}{
		"it runs":                     {nil, "ended +Bash(make)"},
		"its end waits for the model": {[]string{queued(ended)}, "ended"},
		"its end is told":             {[]string{queued(ended), delivered(ended)}, "model"},
		"a person has stopped it":     {[]string{queued(user)}, "ended"},
		"left behind":                 {[]string{queued(left)}, "ended +Bash(make)"},
		"left behind, and told":       {[]string{queued(left), delivered(left)}, "ended +Bash(make)"},
		"ended by a signal":           {[]string{queued(ended), queued(left), delivered(left)}, "ended +Bash(make)"},
		"stopped by a person before":  {[]string{queued(user), queued(left), delivered(left)}, "ended"},
		"resumed with a prompt":       {[]string{queued(left), delivered(left), claudePrompt}, "model"},
		"the model was asked":         {[]string{delivered(left), claudeRequest, claudeEnd}, "ended"},
	} {
		got := told(newClaude(), append([]string{claudePrompt, bash, runs, claudeEnd}, test.more...)...)
		if text := reading(got); text != test.want {
			t.Errorf("%s: %q, wanted %q", name, text, test.want)
		}
	}
	when := time.Date(2026, 11, 21, 13, 4, 0, 0, time.UTC)
	got := told(newClaude(), claudePrompt, bash, runs, claudeEnd, delivered(left))
	if !got.Tasks[0].Left || !got.TypedAt.Equal(when) || !got.LastAt.Equal(when) {
		t.Errorf("whoever resumed it was there at %v, and the task is to be left behind: %+v", when, got)
	}
}

func TestOpenIsSinceTheFirstRequest(t *testing.T) {
	t.Parallel()
	got := told(newClaude(), claudePrompt, claudeResult, claudeRequest, claudeRequest, claudeRequest)
	if want := time.Date(2026, 11, 21, 13, 1, 0, 0, time.UTC); !got.OpenAt.Equal(want) || got.Error.Attempt != 2 {
		t.Errorf("open since %v, retry %d", got.OpenAt, got.Error.Attempt)
	}
}

func TestClaudeFigures(t *testing.T) {
	t.Parallel()
	got := told(newClaude(), claudePrompt, claudeBash, claudeResult,
		`{"type":"assistant","message":{"id":"m1","usage":{"input_tokens":1,"cache_read_input_tokens":10,"output_tokens":100},"content":[{"type":"text","text":"a"}]}}`,
		`{"type":"assistant","message":{"id":"m1","usage":{"input_tokens":1,"cache_read_input_tokens":10,"output_tokens":100},"content":[{"type":"text","text":"b"}]}}`,
		`{"type":"assistant","message":{"id":"m2","usage":{"output_tokens":-5,"input_tokens":1000},"stop_reason":"end_turn","content":"c"}}`,
		`{"type":"cost-state","totalCostUSD":1.5}`, claudePrompt)
	if got.Tokens != 1111 || got.CostUSD != 1.5 || got.Turns != 2 {
		t.Errorf("%d tokens, $%v, %d turns", got.Tokens, got.CostUSD, got.Turns)
	}
	if want := time.Date(2026, 11, 21, 13, 7, 0, 0, time.UTC); !got.ProgressAt.Equal(want) {
		t.Errorf("a command of a minute is progress, and a prompt gives it time anew: %v", got.ProgressAt)
	}
}

// What an agent finds out is progress, too: the same call with the same result again is not, unless its user has
// ordered that.
func TestWhatIsNewIsProgress(t *testing.T) {
	t.Parallel()
	call := func(minute int, command, result string) []string {
		return []string{
			fmt.Sprintf(`{"type":"assistant","timestamp":"2026-11-21T13:%02d:00Z","message":{"content":[{"type":"tool_use","id":"t%d","name":"Bash","input":{"command":%q}}]}}`, minute, minute, command),
			fmt.Sprintf(`{"type":"user","timestamp":"2026-11-21T13:%02d:01Z","message":{"content":[{"type":"tool_result","tool_use_id":"t%d","content":%q}]}}`, minute, minute, result),
		}
	}
	for name, test := range map[string]struct {
		prompt string
		calls  [][]string
		want   int // minute of the last progress
	}{
		"another file":     {"Look at it", [][]string{call(1, "cat a", "x"), call(20, "cat b", "y")}, 20},
		"the same again":   {"Look at it", [][]string{call(1, "cat a", "x"), call(20, "cat a", "x")}, 1},
		"in turns":         {"Look at it", [][]string{call(1, "cat a", "x"), call(2, "cat b", "y"), call(20, "cat a", "x")}, 2},
		"a poll":           {"Look at it", [][]string{call(1, "gh run view 1", "waits"), call(20, "gh run view 1", "waits")}, 1},
		"a poll that ends": {"Look at it", [][]string{call(1, "gh run view 1", "waits"), call(20, "gh run view 1", "done")}, 20},
		"as was ordered":   {"Look at it every 5 minutes", [][]string{call(1, "cat a", "x"), call(20, "cat a", "x")}, 20},
	} {
		t.Run(name, func(t *testing.T) {
			p := newClaude()
			p.line([]byte(fmt.Sprintf(`{"type":"user","timestamp":"2026-11-21T13:00:00Z","message":{"role":"user","content":%q}}`, test.prompt)))
			for _, c := range test.calls {
				for _, record := range c {
					p.line([]byte(record))
				}
			}
			if got := p.now().ProgressAt.Minute(); got != test.want {
				t.Errorf("progress at 13:%02d, want 13:%02d", got, test.want)
			}
		})
	}
}

// After a compaction the model has as long as any answer may take.
func TestACompactionIsAnAnswer(t *testing.T) {
	t.Parallel()
	p := newClaude()
	for _, record := range []string{
		`{"type":"user","timestamp":"2026-11-21T13:00:00Z","message":{"role":"user","content":"go on"}}`,
		`{"type":"api-request","timestamp":"2026-11-21T13:00:00Z"}`,
		`{"type":"system","subtype":"compact_boundary","timestamp":"2026-11-21T13:05:00Z"}`,
		`{"type":"api-request","timestamp":"2026-11-21T13:05:01Z"}`,
	} {
		p.line([]byte(record))
	}
	if got := p.now().snapshot(); got.Open != Model || got.OpenAt.Minute() != 5 {
		t.Errorf("%s is open since %v", got.Open, got.OpenAt)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	edit := func(tool, input, result string) []string {
		return []string{claudePrompt,
			`{"type":"assistant","timestamp":"2026-11-21T13:01:00Z","message":{"content":[{"type":"tool_use","id":"t1","name":"` + tool + `","input":` + input + `}]}}`,
			`{"type":"user","timestamp":"2026-11-21T13:01:01Z","message":{"content":[{"type":"tool_result","tool_use_id":"t1",` + result + `}]}}`}
	}
	for name, test := range map[string]struct {
		records []string
		want    bool
	}{
		"an edit":                {edit("Edit", `{"file_path":"a"}`, `"content":"ok"`), true},
		"an edit that failed":    {edit("Edit", `{"file_path":"a"}`, `"is_error":true`), false},
		"a commit":               {edit("Bash", `{"command":"git commit -m x"}`, `"content":"ok"`), true},
		"a short command":        {edit("Bash", `{"command":"ls"}`, `"content":"ok"`), true},
		"an answer, after long":  {[]string{claudePrompt, strings.Replace(claudeBash, "Bash", "AskUserQuestion", 1), claudeResult}, true},
		"waiting for background": {[]string{claudePrompt, strings.Replace(claudeBash, "Bash", "TaskOutput", 1), claudeResult}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newClaude()
			for _, r := range test.records {
				if strings.Contains(r, "timestamp") {
					p.line([]byte(r))
				} else {
					told(p, r)
				}
			}
			if got := !p.now().ProgressAt.IsZero(); got != test.want {
				t.Errorf("progress: %v", got)
			}
		})
	}
}

func TestCodexRecords(t *testing.T) {
	t.Parallel()
	const started = `{"type":"event_msg","payload":{"type":"task_started"}}`
	call := func(name, args string) string {
		return fmt.Sprintf(`{"type":"response_item","payload":{"type":"function_call","name":%q,"call_id":"c1","arguments":%q}}`, name, args)
	}
	output := func(text string) string {
		return fmt.Sprintf(`{"type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":%s}}`, text)
	}
	const escalate = `{"cmd":"rm x","sandbox_permissions":"require_escalated"}`
	const plan = `{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"Plan","id":"p1","text":"1. Sell"}}}`
	tests := map[string]struct {
		records []string
		want    string
	}{
		"escalation":              {[]string{started, call("exec_command", escalate)}, "permission exec_command(rm x)"},
		"an older escalation":     {[]string{started, call("shell", `{"command":["rm","x"],"with_escalated_permissions":true}`)}, "permission shell(rm x)"},
		"nobody is asked":         {[]string{started, `{"type":"turn_context","payload":{"approval_policy":"never"}}`, call("exec_command", escalate)}, "tool exec_command(rm x)"},
		"a program is asked":      {[]string{started, `{"type":"turn_context","payload":{"approval_policy":"on-request","approvals_reviewer":"auto_review"}}`, call("exec_command", escalate)}, "tool exec_command(rm x)"},
		"a shell call":            {[]string{started, `{"type":"response_item","payload":{"type":"local_shell_call","call_id":"c1","action":{"command":["go","test"]}}}`}, "tool local_shell(go test)"},
		"a search needs no reply": {[]string{started, `{"type":"response_item","payload":{"type":"web_search_call","status":"completed"}}`}, "model"},
		"aborted":                 {[]string{started, call("exec_command", `{"cmd":"x"}`), `{"type":"event_msg","payload":{"type":"turn_aborted"}}`}, "ended interrupted"},
		"it tries again":          {[]string{started, `{"type":"event_msg","payload":{"type":"stream_error","message":"Reconnecting... 2/5"}}`}, "model [api 0 try 2/5]"},
		"failing again and again": {[]string{started, call("a", "1"), output(`"Process exited with code 2\nOutput:\nno such file"`), call("b", "2"), output(`"Process exited with code 2\nOutput:\nno such file"`)}, "model repeats 0/2/0"},
		"a plan to accept":        {[]string{started, plan, `{"type":"event_msg","payload":{"type":"task_complete","last_agent_message":"1. Sell"}}`}, "ended asking"},
		"the plan is accepted":    {[]string{started, plan, `{"type":"event_msg","payload":{"type":"task_complete"}}`, started, `{"type":"event_msg","payload":{"type":"task_complete","last_agent_message":"Sold."}}`}, "ended"},
		"parts of an output":      {[]string{started, call("a", "1"), output(`[{"type":"input_text","text":"ok"}]`)}, "model"},
		"an object as an output":  {[]string{started, call("a", "1"), output(`{"content":"ok","success":true}`)}, "model"},
		"a limit":                 {[]string{started, `{"type":"event_msg","payload":{"type":"task_complete","error":{"message":"You've hit your usage limit.","codex_error_info":"usage_limit_exceeded"}}}`}, "ended [rate_limit 0 try 0/0]"},
		"an empty account":        {[]string{started, `{"type":"event_msg","payload":{"type":"task_complete","error":{"message":"Quota exceeded. Check your plan and billing details.","codex_error_info":"usage_limit_exceeded"}}}`}, "ended [credit 0 try 0/0]"},
		"the connection":          {[]string{started, `{"type":"event_msg","payload":{"type":"task_complete","error":{"message":"x","codex_error_info":{"response_stream_disconnected":{"http_status_code":null}}}}}`}, "ended [api 0 try 0/0]"},
		"members of other types":  {[]string{started, `{"type":"event_msg","payload":{"type":"task_complete","last_agent_message":"Which?","duration_ms":"long","error":null,"id":7}}`}, "ended asking"},
		"records nobody knows":    {[]string{started, `{"type":"future","payload":{"type":"task_complete"}}`, `{"type":"event_msg","payload":7}`, `null`}, "model"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := reading(told(newCodex(), test.records...)); got != test.want {
				t.Errorf("%q, wanted %q", got, test.want)
			}
		})
	}
	limited := told(newCodex(), started,
		`{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":5,"output_tokens":2}},"rate_limits":{"primary":{"used_percent":100,"resets_at":1795280400}}}}`,
		`{"type":"event_msg","payload":{"type":"task_complete","error":{"message":"limit","codex_error_info":"usage_limit_exceeded"}}}`)
	if want := time.Unix(1795280400, 0); !limited.Error.Until.Equal(want) || limited.Tokens != 7 {
		t.Errorf("%+v", limited)
	}
}

func TestClaudeStateFile(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want Session
		ok   bool
	}{
		"waits": {`{"pid":7,"sessionId":"s","cwd":"/home/u/shop","procStart":"155160","pidDomain":"linux:x","version":"2.1.330","status":"waiting","waitingFor":"permission prompt","statusUpdatedAt":1795266902750}`,
			Session{ID: "s", Dir: hostpath.Abs("/home/u/shop"), PID: 7, Start: 155160, Status: Waiting, WaitingFor: ForPermission, StatusAt: time.UnixMilli(1795266902750).UTC()}, true},
		"waits for what nobody knows": {`{"pid":7,"cwd":"/x","status":"waiting","waitingFor":"the weather"}`, Session{Dir: hostpath.Abs("/x"), PID: 7, Status: Waiting, WaitingFor: ForDialog}, true},
		"a status that nobody knows":  {`{"pid":7,"cwd":"/x","status":"dreaming","procStart":"Sat Nov 21"}`, Session{Dir: hostpath.Abs("/x"), PID: 7}, true},
		"half of it":                  {`{"pid":7,"cwd":"/x","sta`, Session{}, false},
		"no process":                  {`{"cwd":"/x","status":"idle"}`, Session{}, false},
		"no directory":                {`{"pid":7,"cwd":"x","status":"idle"}`, Session{}, false},
		"something else":              {`[1]`, Session{}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file, ok := parseClaudeSession([]byte(hostpath.InText(test.text, "/home/u", "/x")))
			var got Session
			if ok {
				file.show(&got)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || ok != test.ok {
				t.Errorf("%v %s", ok, diff)
			}
		})
	}
}

// A model of Codex that sleeps for two hours has asked for that: its call is not overdue before.
func TestCodexSleeps(t *testing.T) {
	t.Parallel()
	for _, call := range []string{
		`{"type":"response_item","payload":{"type":"function_call","name":"sleep","namespace":"clock","call_id":"c1","arguments":"{\"duration_ms\":7200000}"}}`,
		`{"type":"response_item","payload":{"type":"function_call","name":"clock.sleep","call_id":"c1","arguments":"{ \"duration_ms\": 7200000 }"}}`,
		`{"type":"response_item","payload":{"type":"custom_tool_call","name":"exec","call_id":"c1","input":"await tools.clock.sleep({ duration_ms: 7200000 });"}}`,
	} {
		turn := told(newCodex(), `{"type":"event_msg","payload":{"type":"task_started"}}`, call)
		if want := time.Date(2026, 11, 21, 15, 1, 0, 0, time.UTC); turn.Open != Tool || !turn.OpenAt.Equal(want) {
			t.Errorf("%s: %q is open since %s, want %s", call, turn.Open, turn.OpenAt, want)
		}
	}
}
