package serverprobe

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	agentprocess "github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/keep/child"
	"github.com/outlive-mcp/outlive/internal/keep/launcher"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// UsualGrace is how long clients let a server end after they have closed its stdin.
const UsualGrace = 2 * time.Second

// Spec says which server is looked at.
type Spec struct {
	Argv []string
	Dir  string   // "": our own
	Env  []string // the whole environment; nil: our own
	// Timeout is how long a process may take to answer the handshake. 0: 10 s.
	Timeout time.Duration
	// ProbeTimeout is how long it may be silent after server/discover, which not every server answers. 0: half of Timeout.
	ProbeTimeout time.Duration
	// InstallTime is how long a launcher such as npx may take to install the server; Timeout and ProbeTimeout begin when it
	// has. 0: launcher.InstallTime.
	InstallTime time.Duration
	// Waiting is told again and again that the launcher by installs the server, and for how long it has; nil: nobody is.
	Waiting func(by string, since time.Duration)
	// Grace is how long it may take to end after its stdin was closed. 0: [UsualGrace].
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
	// Installer is the launcher that installed the server first, if that was waited for.
	Installer string
	// ReadyAfter is the time from the start of the process that answered to its answer.
	ReadyAfter time.Duration

	// Garbage is how many lines on stdout were not messages, with the first of them in GarbageLine, cut to 200 bytes.
	Garbage     int
	GarbageLine string

	Stderr []string // the last lines of stderr when the server is not Ready

	// LeftBehind are command lines of processes that were still there after the server had ended. They have been ended.
	// Where the system does not let one look for them there are none.
	LeftBehind []string
	// Stubborn says that the server did not end when its stdin was closed, as the protocol wants.
	Stubborn bool
}

// Run looks at one server. It returns after at most InstallTime, ProbeTimeout, Timeout and four times Grace, or soon after ctx
// ends; a launcher that is ended while it installs has launcher.UndoTime besides, and what cannot be killed two seconds, once for the
// first process and once for what it leaves behind. The first process gets the handshake of the legacy era, because every server
// answers it in some way: so silence means that it is not there yet.
func Run(ctx context.Context, s Spec) Report {
	s = s.withDefaults()
	run := rand.Text() // everything the server starts inherits it, whatever session or parent it has made for itself
	s.Env = append(s.Env[:len(s.Env):len(s.Env)], agentprocess.RunVariable+"="+run)
	var r Report
	refused, unfinished := r.legacy(ctx, s)
	if r.Found && ctx.Err() == nil && !unfinished {
		r.modern(ctx, s, refused)
	}
	if r.Found {
		r.LeftBehind = endSurvivors(run)
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
	s.Timeout = cmp.Or(s.Timeout, 10*time.Second)
	s.ProbeTimeout = cmp.Or(s.ProbeTimeout, s.Timeout/2)
	s.InstallTime = cmp.Or(s.InstallTime, launcher.InstallTime)
	s.Grace = cmp.Or(s.Grace, UsualGrace)
	return s
}

// modern asks server/discover. refused says that the server has refused the legacy era.
func (r *Report) modern(ctx context.Context, s Spec, refused bool) {
	var other Report
	p := other.start(s)
	if p == nil {
		return
	}
	meta := mcp.RequestMeta([]byte(`{"name":"outlive-doctor","version":"1"}`), []byte("{}"))
	answer, _ := p.ask(ctx, mcp.DiscoverLine([]byte(askID), meta), s.ProbeTimeout)
	if answer.result == nil { // silence and an end say that it knows nothing of that era
		r.Only = r.Ready
		other.finish(p, s)
		r.heard(other)
		return
	}
	r.ready(p, answer, mcp.Modern)
	r.Only, r.Version = refused, mcp.ModernVersion
	r.finish(p, s)
}

// heard takes what another process has said where only messages belong.
func (r *Report) heard(other Report) {
	if r.Garbage = max(r.Garbage, other.Garbage); r.GarbageLine == "" {
		r.GarbageLine = other.GarbageLine
	}
}

// legacy sends initialize. unfinished says that the server was still being installed at the end.
func (r *Report) legacy(ctx context.Context, s Spec) (refused, unfinished bool) {
	p := r.start(s)
	if p == nil {
		return false, false
	}
	defer r.finish(p, s)
	version := mcp.NewestLegacy
	answer, err := p.ask(ctx, mcp.InitializeLine([]byte(askID), initializeParams, version), s.Timeout)
	switch {
	case answer.result != nil:
		r.ready(p, answer, mcp.Legacy)
		r.Version = answer.text("protocolVersion")
		p.write(mcp.InitializedLine())
	case answer.refusal != "":
		refused = true
		r.Problem = "it refused the handshake: " + answer.refusal
	case errors.Is(err, errGone):
		r.Problem = "it ended before it had answered the handshake" + p.exitText()
		r.Hint = "start the command by hand and see what it says"
		if dir := p.brokenCache(); dir != "" {
			r.Hint = launcher.CacheHint(dir)
		}
	case errors.Is(err, errInstalling):
		unfinished = true
		r.Problem = fmt.Sprintf("%s was still installing it after %s", launcher.Installs(s.Argv), s.InstallTime)
		r.Hint = "start the command by hand and let it finish; is the package's registry within reach?"
	default:
		r.Problem = fmt.Sprintf("no answer to the handshake within %s", s.Timeout)
		r.Hint = "does the command start an MCP server that speaks on stdout?"
	}
	return refused, unfinished
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
		if why, ok := errors.AsType[*child.StartError](err); ok {
			r.Problem, r.Hint = fmt.Sprintf("%v: %s: %s", why.Err, why.Command, why.Detail), why.Hint
		}
		return nil
	}
	r.Found = true
	return p
}

// finish ends the process and keeps what its streams have told.
func (r *Report) finish(p *process, s Spec) {
	if p.waited {
		r.Installer = launcher.Installs(s.Argv)
	}
	willing := p.end(s.Grace)
	r.Stubborn = r.Ready && !willing // one that is still booting may be deaf
	garbage, first, stderr := p.said()
	r.heard(Report{Garbage: garbage, GarbageLine: first})
	if !r.Ready {
		r.Stderr = stderr[max(0, len(stderr)-shownStderr):]
	}
}
