package agentcli

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAsks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"Which database?":                          true,
		"**Which database should I use?**":         true,
		"Shall I go on? (y/n)":                     true,
		"Shall I go on? [Y/n].":                    true,
		"I have two ideas (would that be enough?)": true,
		"Which?\n\n":                               true,
		"どちらですか？":                                  true,
		"\"Really?\"":                              true,
		"I found two. Please let me know which one to deploy.":     true,
		"Both work.\n\nLet me know whether to delete it":           true,
		"Please confirm the deletion.":                             true,
		"Done. Let me know if you want anything else.":             false,
		"Done. Let me know what you think!":                        false,
		"Please confirm it with your team if you want. I am done.": false,
		"Done.":                                  false,
		"Why? Because.":                          false,
		"Which one? I chose the first (SQLite).": false,
		"":                                       false,
		"(a)":                                    false,
		"See https://example.com/?q=1":           false,
	} {
		if got := asks(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestInputText(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		`{"command":"go test ./...","timeout":5}`:                   "go test ./...",
		`{"command":["git","status"]}`:                              "git status",
		`{"questions":[{"question":"Which?"},{"question":"Why?"}]}`: "Which?\nWhy?",
		`{"content":"x","file_path":"/home/u/a.go"}`:                "/home/u/a.go",
		`{"a": 1, "b": [2]}`:                                        `{"a":1,"b":[2]}`,
		`{}`:                                                        "",
		`not JSON`:                                                  "not JSON",
		`{"command":{"strange":true}}`:                              `{"command":{"strange":true}}`,
	} {
		if got := inputText(json.RawMessage(args)); got != want {
			t.Errorf("%s: %q, wanted %q", args, got, want)
		}
	}
}

func TestFailureKind(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status int
		text   string
		want   FailureKind
	}{
		{529, "Overloaded", APIFailure},
		{500, "Internal server error", APIFailure},
		{0, "Connection error.", APIFailure},
		{0, "Request timed out.", APIFailure},
		{429, "", RateLimited},
		{0, "You've hit your limit · resets 3pm (Europe/Berlin)", RateLimited},
		{0, "5-hour limit reached ∙ resets 6pm", RateLimited},
		{0, "Opus weekly limit reached ∙ resets Oct 10 at 10am", RateLimited},
		{0, "exceeded retry limit, last status: 429 Too Many Requests, request id: 1f", RateLimited},
		{0, "Quota exceeded for quota metric 'Generate Content API requests per minute'", RateLimited},
		{0, "You exceeded your current quota, please check your plan and billing details. Please retry in 37.5s.", RateLimited},
		{0, "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.", RateLimited},
		{429, "API Error: Request rejected (429) · spend limit reached · resets Nov 23 · request an increase at https://go.example", RateLimited},
		{429, "You've hit your monthly spend limit · your weekly limit resets Nov 24, 9:30am (UTC)", RateLimited},
		{429, "You've hit your monthly spend limit · raise it at https://claude.ai/settings/usage", CreditEmpty},
		{0, "API Error: Usage credits ran out before the response was finished.", CreditEmpty},
		{0, "Your workspace is out of credits. Ask your workspace owner to refill in order to continue.", CreditEmpty},
		{0, "You've hit your usage limit. Visit https://chatgpt.com/settings/usage to purchase more credits or try again at 6:05 PM.", RateLimited},
		{0, "Context limit reached · /compact or /clear to continue", ContextFull},
		{0, "Your apiKeyHelper script is failing · This usually means you need to re-authenticate with your provider", AuthFailure},
		{400, "Your credit balance is too low", CreditEmpty},
		{429, "You exceeded your current quota, please check your plan and billing details. (insufficient_quota)", CreditEmpty},
		{402, "Payment Required", CreditEmpty},
		{0, "exceeded retry limit, last status: 503 Service Unavailable", APIFailure},
		{0, "exceeded retry limit, last status: 401 Unauthorized", AuthFailure},
		{0, "stream disconnected before completion: error sending request for url (https://api/v1)", APIFailure},
		{0, "API Error: Unable to connect to API (ENOTFOUND)", APIFailure},
		{0, "getaddrinfo EAI_AGAIN api.example.com", APIFailure},
		{0, "API Error: Response stalled mid-stream", APIFailure},
		{0, "read ECONNRESET", APIFailure},
		{0, "socket hang up", APIFailure},
		{0, "dns error: failed to lookup address information", APIFailure},
		{0, "Your access token could not be refreshed because your refresh token was already used. Please log out and sign in again.", AuthFailure},
		{0, "Context low · Run /compact to compact & continue", ContextFull},
		{0, "Context low (0% remaining) · Run /compact", ContextFull},
		{401, "Incorrect API key provided.", AuthFailure},
		{0, "Invalid API key · Please run /login", AuthFailure},
		{403, "OAuth token has been revoked", AuthFailure},
		{400, "prompt is too long: 214000 tokens > 200000 maximum", ContextFull},
		{400, "messages.1: unexpected role", ExecutionFailed},
		{0, "", ExecutionFailed},
	}
	for _, test := range tests {
		if got := failureKind(test.status, test.text); got != test.want {
			t.Errorf("%d %q: %q, wanted %q", test.status, test.text, got, test.want)
		}
	}
}

func TestLimitLifted(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC) // a Saturday; 14:00 in Berlin
	for text, want := range map[string]string{
		"Claude AI usage limit reached|1795280400":                                "2026-11-21T17:00:00Z",
		"You've hit your limit · resets 3:30pm (Europe/Berlin)":                   "2026-11-21T14:30:00Z",
		"You've hit your limit · resets 2pm (Europe/Berlin)":                      "2026-11-22T13:00:00Z",
		"You've hit your limit · resets 12am (UTC)":                               "2026-11-22T00:00:00Z",
		"Weekly limit · resets Nov 25 at 9am (UTC)":                               "2026-11-25T09:00:00Z",
		"Weekly limit · resets Jan 2, 9am (UTC)":                                  "2027-01-02T09:00:00Z",
		"You've hit your usage limit. Try again in 2 days 3 hours.":               "2026-11-23T16:00:00Z",
		"You've hit your usage limit. Try again in about 5 minutes.":              "2026-11-21T13:05:00Z",
		"5-hour limit reached ∙ resets 6pm":                                       "2026-11-21T18:00:00Z",
		"Your limit will reset at 7pm (Asia/Tokyo)":                               "2026-11-22T10:00:00Z",
		"Weekly limit reached ∙ resets Mon 12:00am":                               "2026-11-23T00:00:00Z",
		"You've hit your usage limit. Visit the page, or try again at 3:05 PM.":   "2026-11-21T15:05:00Z",
		"You've hit your usage limit, try again at Nov 25th, 2026 3:05 PM.":       "2026-11-25T15:05:00Z",
		"Rate limit reached for m in organization o. Please try again in 1m3.5s.": "2026-11-21T13:01:03Z",
		"Please retry in 37.5s.":                                                  "2026-11-21T13:00:37Z",
		"Please try again in 250ms.":                                              "2026-11-21T13:00:00Z",
		"You will regain access on 2026-12-01 at 00:00 UTC.":                      "2026-12-01T00:00:00Z",
		"resets 13pm (UTC)":                                                       "", "resets 3pm (Nowhere/Atall)": "", "Overloaded": "", "try again in 99999999999999999999 days": "",
	} {
		got := ""
		if until := limitLifted(text, at, time.UTC); !until.IsZero() {
			got = until.UTC().Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("%q: %q, wanted %q", text, got, want)
		}
	}
}

func TestLoop(t *testing.T) {
	t.Parallel()
	type step struct {
		call, result string
		failed       bool
	}
	ok := func(names string) (steps []step) {
		for _, name := range names {
			steps = append(steps, step{call: string(name)})
		}
		return steps
	}
	tests := map[string]struct {
		steps []step
		want  Repeats
	}{
		"nothing":                   {nil, Repeats{}},
		"once":                      {ok("a"), Repeats{}},
		"the same four times":       {ok("aaaa"), Repeats{SameCall: 4}},
		"something between":         {ok("aaab"), Repeats{}},
		"two in turn":               {ok("ababab"), Repeats{Alternating: 3}},
		"two in turn, an odd one":   {ok("xababa"), Repeats{Alternating: 2}},
		"then the same":             {ok("abaa"), Repeats{SameCall: 2}},
		"the same with new results": {[]step{{"a", "1", false}, {"a", "2", false}}, Repeats{}},
		"only the time differs":     {[]step{{"a", "Chunk ID: 1\nWall time: 0.1 seconds\nx", false}, {"a", "Chunk ID: 2\nWall time: 0.2 seconds\nx", false}}, Repeats{SameCall: 2}},
		"one error of several calls": {[]step{{"a", "no", true}, {"b", "no", true}, {"c", "no", true}},
			Repeats{SameError: 3}},
		"a success between errors": {[]step{{"a", "no", true}, {"b", "no", true}, {"c", "", false}}, Repeats{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var l loop
			for _, s := range test.steps {
				l.add(digest(s.call), resultOf(s.result), s.failed)
			}
			if diff := cmp.Diff(test.want, l.repeats()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
