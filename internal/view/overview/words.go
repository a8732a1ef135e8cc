package overview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/gateway/gateway"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// TroubleOf is why a server behind a gateway, or one of its processes, cannot be used; "" if it can.
func TroubleOf(s gateway.ServerStatus) string {
	for _, l := range s.Links {
		if l.Phase != "ready" && l.HandshakeError != "" {
			return l.HandshakeError
		}
		if l.Phase == "greeting" && l.State == "backoff" && l.LastExit != nil && s.Trouble == "" {
			return l.LastExit.Why // it has not been given up yet
		}
	}
	return s.Trouble
}

// FailingOf is why the last request to a server elsewhere failed on its way, where it could be used all the same; "": none did.
func FailingOf(s gateway.ServerStatus) string {
	for _, l := range s.Links {
		if failing(l) {
			return l.Failing
		}
	}
	return ""
}

// failing reports that a server elsewhere could be used, and that its last request failed on its way.
func failing(l gateway.LinkStatus) bool { return l.Phase == "ready" && l.Failing != "" }

// RestartsOf is how often a server behind a gateway was restarted since that started, also as processes that are not kept any more.
func RestartsOf(s gateway.ServerStatus) (n int) {
	for cause, one := range s.Counted().Restarts {
		if !ofAProbe(cause) {
			n += int(one)
		}
	}
	return n
}

// ofAProbe reports whether a restart with that cause (a supervise.Cause) was none for the server: outlive has found out which era it speaks, before anybody used it.
func ofAProbe(cause string) bool {
	return cause == "probe" || cause == "replace"
}

// Eras are what a client and its server speak: one word, or two if they are translated for each other; "" if that is not
// known.
func Eras(s backend.Status) string {
	switch {
	case s.Bridge != "":
		return s.Era + ">" + s.ServerEra
	case s.Era == mcp.EraUnknown.String():
		return ""
	}
	return s.Era
}

// RunState is one word for how the server of a run stands. One elsewhere whose last request failed on its way is not ready.
func RunState(s backend.Status) string {
	if s.State == "ready" && s.Failing != "" {
		return "failing"
	}
	return s.State
}

// downWords are those for processes of a server that cannot be used.
var downWords = []string{"unusable", "backoff", "failed", "starting"}

// StateOf is one word for how a server behind a gateway stands, or how many of its processes stand how.
func StateOf(s gateway.ServerStatus) string {
	switch {
	case len(s.Links) > 0:
	case s.Standing == "unusable":
		return s.Standing
	default:
		return "idle" // nobody needs it now
	}
	count := map[string]int{}
	var words []string
	for _, l := range s.Links {
		word := l.State
		switch {
		case l.State == "backoff", l.State == "failed":
		case l.Phase == "failed", l.Phase == "greeting" && s.Standing == "unusable":
			word = "unusable" // it may run, or be tried again just now
		case l.Phase == "greeting" && l.State == "ready":
			word = "starting" // it runs, and has not answered the handshake
		case l.Phase == "retired":
			word = "leaving"
		case word == "ready" && failing(l):
			word = "failing"
		}
		if count[word]++; count[word] == 1 {
			words = append(words, word)
		}
	}
	if len(words) == 1 {
		return words[0]
	}
	if s.Standing == "unusable" && !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(downWords, w) }) {
		return s.Standing // how many processes are how is outlive's affair
	}
	for i, word := range words {
		words[i] = fmt.Sprintf("%d %s", count[word], word)
	}
	return strings.Join(words, ", ")
}
