package agentcli

import "testing"

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
		{429, "You've hit your spend limit. It will reset after 3h.", RateLimited},
		{429, "You've hit your monthly spend limit · raise it at https://claude.ai/settings/usage", CreditEmpty},
		{0, "API Error: Usage credits ran out before the response was finished.", CreditEmpty},
		{0, "Your workspace is out of credits. Ask your workspace owner to refill in order to continue.", CreditEmpty},
		{0, "You've hit your usage limit. Visit https://chatgpt.com/settings/usage to purchase more credits or try again at 6:05 PM.", RateLimited},
		{429, "Your org is out of usage · add funds to continue", CreditEmpty},
		{429, "Your seat type doesn't include usage", CreditEmpty},
		{429, "Your usage allocation has been disabled by your admin · ask your admin for a higher limit", CreditEmpty},
		{429, "Your group's usage limit is set to $0 · ask your admin for a higher limit", CreditEmpty},
		{429, "Usage is paused for your organization. For help, please contact support.", CreditEmpty},
		{429, "This service is disabled for your org", CreditEmpty},
		{429, "API Error: Extra usage is required for 1M context · enable extra usage at claude.ai/settings/usage", CreditEmpty},
		{0, "To use Codex with your ChatGPT plan, upgrade to Plus: https://chatgpt.com/explore/plus.", CreditEmpty},
		{429, "You're out of extra usage · resets 5pm (Europe/Brussels)", RateLimited},
		{429, "You're out of usage credits · resets 6pm (UTC)", RateLimited},
		{429, "You've hit your org's monthly usage limit", RateLimited},
		{0, "Context limit reached · /compact or /clear to continue", ContextFull},
		{0, "Your apiKeyHelper script is failing · This usually means you need to re-authenticate with your provider", AuthFailure},
		{400, "Your credit balance is too low", CreditEmpty},
		{429, "You exceeded your current quota, please check your plan and billing details. (insufficient_quota)", CreditEmpty},
		{429, "You exceeded your current quota, please check your plan and billing details.\nSuggested retry after 60s.", RateLimited},
		{429, "Your prepayment credits are depleted.", CreditEmpty},
		{0, "Your prepayment credits are depleted.", CreditEmpty},
		{0, "This model is currently experiencing high demand. Spikes in demand are usually temporary. Please try again later.", APIFailure},
		{400, "API key not valid. Please pass a valid API key.", AuthFailure},
		{0, "API key not valid. Please pass a valid API key. (Status: INVALID_ARGUMENT)", AuthFailure},
		{0, `{"error":{"code":400,"message":"x","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`, AuthFailure},
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
		{0, "Selected model is at capacity. Please try a different model.", APIFailure},
		{0, "API Error: terminated", APIFailure},
		{0, "The model returned an empty response (retry also failed).", APIFailure},
		{0, "The model's tool call could not be parsed (retry also failed).", APIFailure},
		{0, "Could not refresh your login: the disk that holds the Claude Code config directory, or your disk quota on it, is full", ExecutionFailed},
		{0, "EDQUOT: disk quota exceeded, write", ExecutionFailed},
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

// What a status says holds, whatever the text quotes. A request that is refused for good is not sent again for hours, and a
// provider that is down is no login that has expired.
func TestTheStatusDecides(t *testing.T) {
	t.Parallel()
	const (
		thinking = "API Error: 400 messages.1.content.5: `thinking` blocks in the latest assistant message cannot be modified."
		image    = "API Error: 400 messages.3.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes"
		bedrock  = "API Error (us.anthropic.claude-opus-5): 400 Operation InvokeModelWithResponseStream: The provided model identifier is invalid."
		tool     = `API Error: 400 {"type":"error","error":{"type":"invalid_request_error","message":"tools.14.custom.input_schema: JSON schema is invalid (mcp__network__set_connection_timeout)"}}`
		usage    = `API Error: 400 {"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}}`
	)
	for _, test := range []struct {
		status int
		text   string
		want   FailureKind
	}{
		{400, thinking, ExecutionFailed}, {400, image, ExecutionFailed}, {400, bedrock, ExecutionFailed}, {400, tool, ExecutionFailed},
		{0, thinking, ExecutionFailed}, {0, image, ExecutionFailed}, {0, bedrock, ExecutionFailed}, {0, tool, ExecutionFailed},
		{400, usage, RateLimited}, {0, usage, RateLimited},
		{400, "tools.3.name: mcp__limits__rate_limit_status", ExecutionFailed},
		{400, "tools.4.name: mcp__billing__quota", ExecutionFailed},
		{400, "tools.5.name: mcp__vault__authentication", ExecutionFailed},
		{400, "tools.6.name: mcp__stats__context_window", ExecutionFailed},
		{404, "model: upstream-1 was not found", ExecutionFailed},
		{413, "Request exceeds the maximum size of this connection", ExecutionFailed},
		{422, "stream_options: extra fields are not permitted", ExecutionFailed},
		{0, `unexpected status 400 Bad Request: {"error":{"message":"Unsupported parameter: stream_options"}}, url: https://api/v1`, ExecutionFailed},
		{0, `[API Error: [{ "error": { "code": 400, "message": "Invalid network name" } }]]`, ExecutionFailed},
		{0, `{"type":"error","status":400,"error":{"type":"invalid_request_error","message":"Unsupported parameter: stream_options"}}`, ExecutionFailed},
		{0, `{"type":"error","status":429,"error":{"message":"Slow down"}}`, RateLimited},
		{0, `{\"error\":{\"code\": 503,\"message\":\"authentication backend\"}}`, APIFailure},
		{500, "authentication service is not available", APIFailure},
		{503, "the quota service does not answer", APIFailure},
		{529, "Overloaded: no login could be checked, sign in again later", APIFailure},
		{408, "", APIFailure},
		{401, "upstream connection: token has expired", AuthFailure},
		{403, "the network policy does not permit it", AuthFailure},
		{403, "User Rate Limit Exceeded", RateLimited},
		{402, "Please retry in 20 seconds.", RateLimited},
		{429, "Too many tokens, please wait before trying again.", RateLimited},
		{429, "stream timeout", RateLimited},
		{500, "This model's maximum context length is 131072 tokens (context_length_exceeded)", ContextFull},
		{400, "The input token count (1200000) exceeds the maximum", ContextFull},
		{0, "the connection was lost", APIFailure},
	} {
		if got := failureKind(test.status, test.text); got != test.want {
			t.Errorf("%d %q: %q, wanted %q", test.status, test.text, got, test.want)
		}
	}
}

// Codex has a word for a request that was refused, or writes the status into the text.
func TestCodexRefusals(t *testing.T) {
	t.Parallel()
	const started = `{"type":"event_msg","payload":{"type":"task_started"}}`
	for end, want := range map[string]string{
		`{"message":"Unsupported parameter: stream","codex_error_info":"bad_request"}`:                                                          "ended [execution 400 try 0/0]",
		`{"message":"unexpected status 400 Bad Request: x","codex_error_info":{"response_stream_connection_failed":{"http_status_code":null}}}`: "ended [execution 0 try 0/0]",
		`{"message":"x","codex_error_info":{"response_stream_connection_failed":{"http_status_code":null}}}`:                                    "ended [api 0 try 0/0]",
	} {
		if got := reading(told(newCodex(), started, `{"type":"event_msg","payload":{"type":"task_complete","error":`+end+`}}`)); got != want {
			t.Errorf("%s: %q, wanted %q", end, got, want)
		}
	}
}
