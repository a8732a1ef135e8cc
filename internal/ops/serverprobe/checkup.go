package serverprobe

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/child"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Spec says which server is looked at.
type Spec struct {
	Argv []string
	Dir  string   // "": our own
	Env  []string // the whole environment; nil: our own
	// Timeout is how long a process may take to answer the handshake. 0: 10 s.
	Timeout time.Duration
	// ProbeTimeout is how long it may be silent after server/discover, which not every server answers. 0: half of Timeout.
	ProbeTimeout time.Duration
	// Grace is how long it may take to end after its stdin was closed. 0: 2 s, as clients have it.
	Grace time.Duration
}

// Report is what was seen.
type Report struct {
	// Found says that the command exists and can be executed; Ready that the server answered a handshake.
	Found, Ready bool
	// Problem says why it is not Ready, "" when it is; Hint what may help.
	Problem, Hint string

	Era     mcp.Era // how it was greeted
	Only    bool    // it refuses the handshake of the other era
	Version string  // of the protocol, as settled
	Server  string  // name and version as it says
	// ReadyAfter is the time from the start of the process that answered to its answer.
	ReadyAfter time.Duration

	// Garbage is how many lines on stdout were not messages, with the first of them in GarbageLine, cut to 200 bytes.
	Garbage     int
	GarbageLine string

	Exit   string   // how the last process ended, if by itself before it was ready
	Stderr []string // the last lines of stderr when the server is not Ready

	// LeftBehind are command lines of processes that were still there after the server had ended. They have been killed.
	// Looked says whether this system lets one look for them.
	LeftBehind []string
	Looked     bool
	// Stubborn says that the server did not end when its stdin was closed, as the protocol wants.
	Stubborn bool
}

// cookieName is a variable that everything the server starts inherits: so it is found again, whatever session or parent
// it has made for itself.
const cookieName = "OUTLIVE_CHECKUP"

// Run looks at one server. It returns after at most ProbeTimeout, Timeout and twice Grace, or soon after ctx ends. A server
// of the modern era may be started once more, to see whether it takes the legacy one's handshake, too.
func Run(ctx context.Context, s Spec) Report {
	s = s.withDefaults()
	cookie := cookieName + "=" + rand.Text()
	s.Env = append(s.Env[:len(s.Env):len(s.Env)], cookie)
	var r Report
	r.modern(ctx, s)
	switch {
	case !r.Found || ctx.Err() != nil:
	case r.Ready:
		r.alsoLegacy(ctx, s)
	default:
		r.legacy(ctx, s)
	}
	if r.Found {
		r.LeftBehind, r.Looked = endSurvivors(cookie)
	}
	if err := ctx.Err(); err != nil && !r.Ready {
		r.Problem = "not looked at to the end: " + err.Error()
	}
	return r
}

func (s Spec) withDefaults() Spec {
	if s.Env == nil {
		s.Env = os.Environ()
	}
	if s.Timeout == 0 {
		s.Timeout = 10 * time.Second
	}
	if s.ProbeTimeout == 0 {
		s.ProbeTimeout = s.Timeout / 2
	}
	if s.Grace == 0 {
		s.Grace = 2 * time.Second
	}
	return s
}

// modern asks server/discover.
func (r *Report) modern(ctx context.Context, s Spec) {
	p := r.start(s)
	if p == nil {
		return
	}
	defer r.finish(p, s)
	answer, _ := p.ask(ctx, mcp.DiscoverLine([]byte(askID), probeMeta), s.ProbeTimeout)
	if answer.result == nil {
		return // an older server, or one that is silent or gone: the handshake will tell
	}
	r.ready(p, answer, mcp.Modern)
	r.Version = mcp.ModernVersion
}

// legacy sends initialize.
func (r *Report) legacy(ctx context.Context, s Spec) {
	p := r.start(s)
	if p == nil {
		return
	}
	defer r.finish(p, s)
	version := mcp.LegacyVersions[len(mcp.LegacyVersions)-1]
	answer, err := p.ask(ctx, mcp.InitializeLine([]byte(askID), initializeParams, version), s.Timeout)
	switch {
	case answer.result != nil:
		r.ready(p, answer, mcp.Legacy)
		r.Only = true // a process before this one was asked for the modern era
		r.Version = answer.text("protocolVersion")
		p.write(mcp.InitializedLine())
	case answer.refusal != "":
		r.Problem = "it refused the handshake: " + answer.refusal
	case errors.Is(err, errGone):
		r.Problem = "it ended before it had answered the handshake"
		r.Exit = p.exitText()
		r.Hint = "start the command by hand and see what it says"
	default:
		r.Problem = fmt.Sprintf("no answer to the handshake within %s", s.Timeout)
		r.Hint = "does the command start an MCP server that speaks on stdout?"
	}
}

// alsoLegacy sees whether a server of the modern era refuses initialize. Silence and an end say nothing.
func (r *Report) alsoLegacy(ctx context.Context, s Spec) {
	var other Report
	p := other.start(s)
	if p == nil {
		return
	}
	defer other.finish(p, s)
	version := mcp.LegacyVersions[len(mcp.LegacyVersions)-1]
	answer, _ := p.ask(ctx, mcp.InitializeLine([]byte(askID), initializeParams, version), s.ProbeTimeout)
	r.Only = answer.refusal != ""
}

func (r *Report) ready(p *process, a answer, era mcp.Era) {
	r.Ready, r.Problem, r.Hint, r.Stderr = true, "", "", nil
	r.Era, r.ReadyAfter, r.Server = era, a.at.Sub(p.started), a.serverName()
}

// start starts a process, or says why it cannot be started.
func (r *Report) start(s Spec) *process {
	p, err := startProcess(s)
	if err != nil {
		r.Problem = err.Error()
		var why *child.StartError
		if errors.As(err, &why) {
			r.Problem, r.Hint = fmt.Sprintf("%v: %s: %s", why.Err, why.Command, why.Detail), why.Hint
		}
		return nil
	}
	r.Found = true
	return p
}

// finish ends the process and keeps what its streams have told.
func (r *Report) finish(p *process, s Spec) {
	willing := p.end(s.Grace)
	r.Stubborn = r.Ready && !willing // one that is still booting may be deaf
	garbage, first := p.garbage()
	if r.Garbage = max(r.Garbage, garbage); r.GarbageLine == "" {
		r.GarbageLine = first
	}
	if !r.Ready {
		r.Stderr = p.stderrTail()
	}
}
