package vendors

import (
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/pattern"
)

// failureKind is the kind of an error by its HTTP status and what is said of it. A status says more than a text, except
// that a full context and a used-up account come as all sorts of statuses.
func failureKind(status int, text string) FailureKind {
	text = strings.ToLower(text)
	switch {
	case containsAny(text, "prompt is too long", "context window", "context_window", "context length", "context_length", "too many tokens", "input token count"):
		return ContextFull
	case containsAny(text, "usage limit", "usage_limit", "rate limit", "rate_limit", "hit your limit", "session limit", "weekly limit", "quota", "resource_exhausted", "credit balance", "out of credit"), status == 429, status == 402:
		return RateLimited
	case status == 401, status == 403, containsAny(text, "unauthorized", "authentication", "please run /login", "invalid api key", "oauth token", "login expired", "not logged in"):
		return AuthFailure
	case status >= 500, status == 408, containsAny(text, "overloaded", "connection", "network", "timed out", "timeout", "fetch failed", "internal_server_error", "server error", "stream"):
		return APIFailure
	}
	return ExecutionFailed
}

// retried is the kind of an error after which the CLI tries again by itself: what the turn asked for cannot be wrong.
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
	resetEpoch = pattern.New(`\|(\d{10})\b`)
	// resetClock is Claude Code's "resets 3:30pm (Europe/Berlin)", with or without a date.
	resetClock = pattern.New(`(?i)resets (?:at )?(?:([a-z]{3,9}) (\d{1,2})(?:,| at)+ )?(\d{1,2})(?::(\d{2}))?\s?(am|pm) \(([A-Za-z_/+\-0-9]+)\)`)
	// resetIn is Codex' "try again in 2 days 3 hours 5 minutes".
	resetIn = pattern.New(`(?i)try again in ((?:(?:about )?\d+ (?:day|hour|minute|second)s?[ ,]*(?:and )?)+)`)
	resetBy = pattern.New(`(?i)(\d+) (day|hour|minute|second)`)
)

// limitLifted is when a limit is lifted that was met at some time, by what the text says; zero: it does not.
func limitLifted(text string, at time.Time) time.Time {
	if m := resetEpoch.FindStringSubmatch(text); m != nil {
		seconds, _ := strconv.ParseInt(m[1], 10, 64) // ten digits
		return time.Unix(seconds, 0).UTC()
	}
	if m := resetIn.FindStringSubmatch(text); m != nil && !at.IsZero() {
		units := map[string]time.Duration{"day": 24 * time.Hour, "hour": time.Hour, "minute": time.Minute, "second": time.Second}
		var left time.Duration
		for _, part := range resetBy.FindAllStringSubmatch(m[1]) {
			n, err := strconv.Atoi(part[1])
			if err != nil || n > 1000 {
				return time.Time{}
			}
			left += time.Duration(n) * units[strings.ToLower(part[2])]
		}
		return at.Add(left)
	}
	if m := resetClock.FindStringSubmatch(text); m != nil && !at.IsZero() {
		return nextClock(m, at)
	}
	return time.Time{}
}

// nextClock is the next time after at that a clock shows what resetClock has found.
func nextClock(m []string, at time.Time) time.Time {
	zone, err := time.LoadLocation(m[6])
	if err != nil {
		return time.Time{}
	}
	hour, _ := strconv.Atoi(m[3])
	minute, _ := strconv.Atoi("0" + m[4])
	if hour < 1 || hour > 12 || minute > 59 {
		return time.Time{}
	}
	hour %= 12
	if strings.EqualFold(m[5], "pm") {
		hour += 12
	}
	local := at.In(zone)
	if m[1] == "" {
		reset := time.Date(local.Year(), local.Month(), local.Day(), hour, minute, 0, 0, zone)
		if !reset.After(at) {
			reset = time.Date(local.Year(), local.Month(), local.Day()+1, hour, minute, 0, 0, zone)
		}
		return reset.UTC()
	}
	month, err := time.Parse("Jan", m[1][:1]+strings.ToLower(m[1][1:3]))
	if err != nil {
		return time.Time{}
	}
	day, _ := strconv.Atoi(m[2])
	reset := time.Date(local.Year(), month.Month(), day, hour, minute, 0, 0, zone)
	if reset.Before(at.AddDate(0, -6, 0)) {
		reset = reset.AddDate(1, 0, 0) // December speaks of January
	}
	return reset.UTC()
}
