package agentcli

import (
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // Windows and small containers have no zones of their own

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// lastStatus is Codex' "exceeded retry limit, last status: 429 Too Many Requests".
var lastStatus = lazyregexp.New(`last status: (\d{3})\b`)

// retryIn are words of errors that pass by themselves.
var retryIn = []string{"retry in ", "try again in "}

// failureKind classifies an error by its HTTP status and its text. The status is decisive, except for a full context,
// missing credit and an exhausted account, which have various statuses.
func failureKind(status int, text string) FailureKind {
	text = strings.ToLower(text)
	if m := lastStatus.FindStringSubmatch(text); m != nil && status == 0 {
		status, _ = strconv.Atoi(m[1]) // three digits
	}
	switch {
	case containsAny(text, "prompt is too long", "context window", "context_window", "context length", "context_length", "context low", "context limit",
		"too many tokens", "input token count"):
		return ContextFull
	case creditEmpty(status, text):
		return CreditEmpty
	case containsAny(text, "usage limit", "usage_limit", "rate limit", "rate_limit", "hit your limit", "session limit", "weekly limit",
		"limit reached", "too many requests", "quota", "resource_exhausted"), status == 429:
		return RateLimited
	case status == 401, status == 403, containsAny(text, "unauthorized", "authentication", "please run /login", "invalid api key", "oauth token",
		"login expired", "not logged in", "sign in again", "log in again", "re-authenticate", "refresh token", "session has expired", "session expired"):
		return AuthFailure
	case status >= 500, status == 408, containsAny(text, "overloaded", "connection", "network", "timed out", "timeout", "fetch failed",
		"internal_server_error", "server error", "stream", "stalled"), containsAny(text, unreachable...):
		return APIFailure
	}
	return ExecutionFailed
}

// unreachable are words for a host that cannot be reached: those of Node, of Rust's reqwest and hyper, and of
// resolvers.
var unreachable = []string{
	"unable to connect", "enotfound", "eai_again", "econnrefused", "econnreset", "econnaborted", "ehostunreach", "enetunreach", "enetdown",
	"etimedout", "epipe", "getaddrinfo", "socket hang up", "dns error", "name resolution", "no such host", "error sending request", "tls handshake",
}

// creditEmpty reports an account without credit. Unlike a limit that does not pass by itself; the two share words,
// and only a limit says when to try again.
func creditEmpty(status int, text string) bool {
	if containsAny(text, "credit balance", "out of credit", "insufficient credit", "enough credit", "credits ran out", "insufficient_quota", "billing_hard_limit") {
		return true
	}
	if containsAny(text, "spend limit", "spend cap", "usage credits") && !strings.Contains(text, "resets ") && !containsAny(text, "try again ") {
		return true // such a limit ends with the month, or by payment
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
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

var (
	// resetEpoch is Claude Code's "…limit reached|1760000000".
	resetEpoch = lazyregexp.New(`\|(\d{10})\b`)
	// resetClock is Claude Code's "resets 3:30pm (Europe/Berlin)" and "will reset at 7pm", and Codex' "try again at
	// Nov 25th, 2026 3:05 PM": with or without a zone, a day of the week or a date.
	resetClock = lazyregexp.New(`(?i)(?:resets?|try again) (?:at |on )?` +
		`(?:(mon|tue|wed|thu|fri|sat|sun)[a-z]*,? (?:at )?)?` +
		`(?:(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* (\d{1,2})(?:st|nd|rd|th)?(?:, (\d{4}))?,? (?:at )?)?` +
		`(\d{1,2})(?::(\d{2}))?\s?(am|pm)\b(?: \(([A-Za-z_/+\-0-9]+)\))?`)
	// resetDay is the Claude API's "You will regain access on 2026-12-01 at 00:00 UTC".
	resetDay = lazyregexp.New(`(?i)regain access on (\d{4}-\d{2}-\d{2}) at (\d{2}:\d{2}) UTC`)
	// resetDate is a gateway's "spend limit reached · resets Nov 23": a day of UTC, without a time.
	resetDate = lazyregexp.New(`(?i)resets (jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* (\d{1,2})\b(?:$|[^,:\d]|,? \D)`)
	// resetIn is Codex' "try again in 2 days 3 hours 5 minutes".
	resetIn = lazyregexp.New(`(?i)try again in ((?:(?:about )?\d+ (?:day|hour|minute|second)s?[ ,]*(?:and )?)+)`)
	resetBy = lazyregexp.New(`(?i)(\d+) (day|hour|minute|second)`)
	// resetShort is OpenAI's "try again in 1m3.5s" and Gemini's "retry in 37.5s".
	resetShort = lazyregexp.New(`(?i)(?:try again|retry) in ((?:\d{1,6}(?:\.\d{1,9})?(?:ms|h|m|s))+)\b`)
)

// limitLifted returns when a limit that was reached at at ends, according to the text; zero: the text does not say. A
// clock time without a zone is in here.
func limitLifted(text string, at time.Time, here *time.Location) time.Time {
	if m := resetEpoch.FindStringSubmatch(text); m != nil {
		seconds, _ := strconv.ParseInt(m[1], 10, 64) // ten digits
		return time.Unix(seconds, 0).UTC()
	}
	if m := resetDay.FindStringSubmatch(text); m != nil {
		day, err := time.Parse("2006-01-02 15:04", m[1]+" "+m[2])
		if err != nil || !at.IsZero() && day.Sub(at) > 366*24*time.Hour {
			return time.Time{}
		}
		return day
	}
	if at.IsZero() {
		return time.Time{}
	}
	if m := resetIn.FindStringSubmatch(text); m != nil {
		return liftedAfter(m[1], at)
	}
	if m := resetShort.FindStringSubmatch(text); m != nil {
		left, err := time.ParseDuration(strings.ToLower(m[1]))
		if err != nil || left > 1000*24*time.Hour {
			return time.Time{}
		}
		return at.Add(left)
	}
	if m := resetClock.FindStringSubmatch(text); m != nil {
		return nextClock(m, at, here)
	}
	if m := resetDate.FindStringSubmatch(text); m != nil {
		return nextClock([]string{"", "", m[1], m[2], "", "12", "", "am", ""}, at, time.UTC)
	}
	return time.Time{}
}

// liftedAfter adds the duration in words, matched by resetIn.
func liftedAfter(words string, at time.Time) time.Time {
	units := map[string]time.Duration{"day": 24 * time.Hour, "hour": time.Hour, "minute": time.Minute, "second": time.Second}
	var left time.Duration
	for _, part := range resetBy.FindAllStringSubmatch(words) {
		n, err := strconv.Atoi(part[1])
		if err != nil || n > 1000 {
			return time.Time{}
		}
		left += time.Duration(n) * units[strings.ToLower(part[2])]
	}
	return at.Add(left)
}

// nextClock returns the next time after at for the clock time in m, matched by resetClock.
func nextClock(m []string, at time.Time, zone *time.Location) time.Time {
	weekday, month, day, year, half, name := strings.ToLower(m[1]), m[2], m[3], m[4], m[7], m[8]
	if name != "" {
		var err error
		if zone, err = time.LoadLocation(name); err != nil {
			return time.Time{}
		}
	}
	hour, _ := strconv.Atoi(m[5])
	minute, _ := strconv.Atoi("0" + m[6])
	if hour < 1 || hour > 12 || minute > 59 {
		return time.Time{}
	}
	hour %= 12
	if strings.EqualFold(half, "pm") {
		hour += 12
	}
	local := at.In(zone)
	if month == "" {
		reset := time.Date(local.Year(), local.Month(), local.Day(), hour, minute, 0, 0, zone)
		for !reset.After(at) || weekday != "" && strings.ToLower(reset.Weekday().String()[:3]) != weekday {
			reset = time.Date(reset.Year(), reset.Month(), reset.Day()+1, hour, minute, 0, 0, zone)
		}
		return reset.UTC()
	}
	of, err := time.Parse("Jan", month[:1]+strings.ToLower(month[1:3]))
	if err != nil {
		return time.Time{}
	}
	on, _ := strconv.Atoi(day)
	reset := time.Date(local.Year(), of.Month(), on, hour, minute, 0, 0, zone)
	switch n, _ := strconv.Atoi("0" + year); {
	case n != 0 && (n < local.Year() || n > local.Year()+2):
		return time.Time{}
	case n != 0:
		reset = reset.AddDate(n-local.Year(), 0, 0)
	case reset.Before(at.AddDate(0, -6, 0)):
		reset = reset.AddDate(1, 0, 0) // in December, a date in January is in the next year
	}
	return reset.UTC()
}
