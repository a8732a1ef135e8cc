package agentcli

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// namedStatus is an HTTP status in a text. Codex: "last status: 429 Too Many Requests", "unexpected status 400 Bad
// Request", {"type":"error","status":400,…}; Claude Code: "API Error: 400 …", "API Error (MODEL): 400 …"; Google: "code": 429.
var namedStatus = lazyregexp.New(`(?i)(?:last status:|unexpected status|api error(?: \([^()]*\))?:|"(?:code|status)\\?":) ?([45]\d\d)\b`)

// statusOf returns the HTTP status of an error, or else the one that its text names. 0: unknown.
func statusOf(status int, text string) int {
	if m := namedStatus.FindStringSubmatch(text); m != nil && status == 0 {
		status, _ = strconv.Atoi(m[1]) // three digits
	}
	return status
}

// Told is the error with which a CLI's output says that a turn has ended, as its row reads it or by the words of any.
func Told(kind Kind, text string, at time.Time) Failure {
	if read := Of(kind).told; read != nil {
		if f, ok := read(text, at); ok {
			return f
		}
	}
	f := Failure{Kind: failureKind(0, text), Status: statusOf(0, text), Text: text, At: at, Final: true}
	if f.Kind == RateLimited {
		f.Until = limitLifted(text, at, time.Local)
	}
	return f
}

// retryIn are words of errors that pass by themselves.
var retryIn = []string{"retry in ", "retry after ", "try again in "}

// exhausted are sentences about a limit of the account that come with another status than 429. The Claude API sends
// 400, Google 403.
var exhausted = []string{"specified api usage limits", "rate limit exceeded", "quota exceeded"}

// invalidKey are Google's words for a key that is not valid. Their status is 400.
var invalidKey = []string{"api key not valid", "api_key_invalid"}

// failureKind classifies an error by its HTTP status and its text. The status decides before the words do: a refusal
// quotes the request, and any word may be in that. A full context, missing credit and an exhausted account have
// various statuses, and are recognised by what only providers say.
func failureKind(status int, text string) FailureKind {
	status = statusOf(status, text)
	text = strings.ToLower(text)
	switch {
	case status != 429 && contextFull(text): // "too many tokens" with 429 is a limit of Bedrock's
		return ContextFull
	case creditEmpty(status, text):
		return CreditEmpty
	case status == 429, status == 402, status >= 400 && status < 500 && containsAny(text, exhausted...):
		return RateLimited
	case status == 401, status == 403, status == 400 && containsAny(text, invalidKey...):
		return AuthFailure
	case status >= 500, status == 408:
		return APIFailure
	case status >= 400:
		return ExecutionFailed // it fails again however often it is sent
	}
	return kindOfWords(text)
}

// kindOfWords classifies an error without a status by its text in lower case. An answer of which the CLI can make nothing
// is like none.
func kindOfWords(text string) FailureKind {
	switch {
	case containsAny(text, "disk quota", "no space left on device"):
		return ExecutionFailed // a full disk, which neither a login nor a reset frees
	case containsAny(text, "usage limit", "usage_limit", "rate limit", "rate_limit", "hit your limit", "session limit", "weekly limit",
		"limit reached", "too many requests", "quota", "resource_exhausted"):
		return RateLimited
	case containsAny(text, "unauthorized", "authentication", "please run /login", "invalid api key", "oauth token",
		"login expired", "not logged in", "sign in again", "log in again", "re-authenticate", "refresh token", "session has expired", "session expired"),
		containsAny(text, invalidKey...):
		return AuthFailure
	case containsAny(text, "overloaded", "high demand", "connection", "network", "timed out", "timeout", "fetch failed",
		"internal_server_error", "server error", "stream", "stalled", "capacity", "error: terminated", "empty response", "tool call could not be parsed"),
		containsAny(text, unreachable...):
		return APIFailure
	}
	return ExecutionFailed
}

// contextFull reports whether a text in lower case says that the conversation is too long for the model. Names that the
// text may quote, such as that of a tool "context_window", do not.
func contextFull(text string) bool {
	return containsAny(text, "prompt is too long", "context window", "context_window_exceeded", "context length", "context_length_exceeded", "context low",
		"context limit", "too many tokens", "input token count")
}

// unreachable are words for a host that cannot be reached: those of Node, of Rust's reqwest and hyper, and of
// resolvers.
var unreachable = []string{
	"unable to connect", "enotfound", "eai_again", "econnrefused", "econnreset", "econnaborted", "ehostunreach", "enetunreach", "enetdown",
	"etimedout", "epipe", "getaddrinfo", "socket hang up", "dns error", "name resolution", "no such host", "error sending request", "tls handshake",
}

// unpaid are words about usage that nobody pays for, or that an owner has switched off. It ends with the month, by payment
// or by a setting; waiting alone does not help.
var unpaid = []string{
	"spend limit", "spend cap", "usage credits", "out of usage", "extra usage is required", "your seat type doesn't include", "usage limit is set to $0",
	"usage allocation has been disabled", "usage is paused for your organization", "this service is disabled for your org", "with your chatgpt plan, upgrade",
}

// creditEmpty reports an account without credit. Unlike a limit that does not pass by itself; the two share words,
// and only a limit says when to try again.
func creditEmpty(status int, text string) bool {
	if containsAny(text, "credit balance", "out of credit", "insufficient credit", "enough credit", "credits ran out", "prepayment credits", "insufficient_quota", "billing_hard_limit") {
		return true
	}
	if containsAny(text, unpaid...) && !containsAny(text, "resets ", "will reset ", "try again ") {
		return true
	}
	return (status == 402 || strings.Contains(text, "billing details")) && !containsAny(text, retryIn...)
}

// retried is the kind of an error after which the CLI retries by itself. The request itself cannot be its cause.
func retried(kind FailureKind) FailureKind {
	if kind == ExecutionFailed {
		return APIFailure
	}
	return kind
}

func containsAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

func beginsWith(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.HasPrefix(text, part) })
}
