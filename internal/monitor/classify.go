package monitor

import (
	"fmt"
	"time"

	"github.com/outlive-mcp/outlive/internal/piv"
)

// Stall is S4's coarse type of a stall. "" is none.
type Stall string

// The stalls of S4, and one more: the evidence cannot be read.
const (
	Crashed  Stall = "orchestrator_crashed"
	Waiting  Stall = "agent_waiting_for_input"
	Errored  Stall = "execution_error"
	Hung     Stall = "session_hung"
	Blind    Stall = "monitor_blind"
	noStall  Stall = ""
	blindFor       = 3 // looks in a row until a human is told of Blind
)

// Confidence says how sure a verdict is.
type Confidence string

// The levels of S4.
const (
	High   Confidence = "high"
	Medium Confidence = "medium"
	Low    Confidence = "low"
)

// Policy is what the owner has set.
type Policy struct {
	Stale    time.Duration // age at which a heartbeat is stale
	Restarts int           // occurrence of a stall at which a human is asked
	Pace     time.Duration // least time between two actions on one project
}

// Life is what is known of an orchestrator's process.
type Life string

// The lives.
const (
	Alive Life = "alive"
	Dead  Life = "dead" // there is none, or the number is another's: proven
	// Unsure: a process of that number cannot be told from the orchestrator, or the system does not let us ask.
	Unsure Life = "unsure"
)

// SignKind is a way in which an agent shows that it waits for a human.
type SignKind string

// The signs, by the rules that read them.
const (
	AsksPermission SignKind = "permission"          // W1: the agent's own state, or its hook
	AsksQuestion   SignKind = "question"            // W2: an open question, plan or dialog
	Notified       SignKind = "blocking"            // W3: manifest, blocking and not acknowledged
	AsksEscalation SignKind = "escalated call"      // W4: a tool call that wants more rights, without output
	EndedAsking    SignKind = "ended with question" // W5: the turn has ended with a question
)

// Sign is one such sign.
type Sign struct {
	Kind SignKind
	Text string
}

// Evidence is everything that is known of one project at one look.
type Evidence struct {
	Project piv.Project
	Watched bool   // running, or stalled and ours to watch
	Fault   string // why the entry cannot be judged
	// Lost says why the registry no longer shows what this project does: it cannot be read. "": it does.
	Lost string
	// Vanished says that the registry is there, without this project, which was running when it was last seen.
	Vanished bool

	HasBeat bool
	BeatAge time.Duration // corrected for sleeps; negative: in the future
	// Silence is the time since the last sign of life: the heartbeat, or the start of a process that has not beaten yet.
	Silence time.Duration
	// Starting says that the process was started after the last heartbeat.
	Starting bool

	Life       Life
	LifeDetail string

	Manifest      *piv.Manifest // nil: there is none
	ManifestFault string        // why it cannot be read
	ManifestAge   time.Duration // since last_updated; meaningful if that is there
	Signs         []Sign

	// Grace is why silence is no evidence now; "" when it is. GraceDead covers processes that are not there too.
	Grace     string
	GraceDead bool
}

// Verdict is what the evidence comes to.
type Verdict struct {
	Rule       string
	Class      string // the finer type, such as startup_blocked
	Stall      Stall
	Confidence Confidence
	Details    string
}

// rule is one line of the table. The first whose when holds decides.
type rule struct {
	id         string
	class      string
	stall      Stall
	confidence Confidence
	when       func(*Evidence, Policy) bool
	details    func(*Evidence, Policy) string
}

// rules is S4's decision tree "Stall Classification", with what the field has taught since. Order is meaning.
var rules = []rule{
	{"R0", "not watched", noStall, High, func(e *Evidence, _ Policy) bool { return !e.Watched }, status},
	{"R1", "unreadable", Blind, High, func(e *Evidence, _ Policy) bool { return e.Fault != "" }, func(e *Evidence, _ Policy) string { return e.Fault }},
	{"OK", "healthy", noStall, High, fresh, beatDetails},
	{"R4", "starting", noStall, High, func(e *Evidence, p Policy) bool { return e.Starting && e.Life == Alive && e.Silence < p.Stale }, life},
	{"G", "grace", noStall, Low, func(e *Evidence, _ Policy) bool { return e.Grace != "" && (e.Life != Dead || e.GraceDead) }, func(e *Evidence, _ Policy) string { return e.Grace }},
	{"R1", "vanished", Blind, Medium, func(e *Evidence, _ Policy) bool { return e.Vanished }, vanished},
	{"R1", "lost", Blind, Medium, func(e *Evidence, _ Policy) bool { return e.Lost != "" && e.Life != Dead }, lost},
	{"E0", "human_required", Errored, High, needsHuman, failures},
	{"R2", "crashed", Crashed, High, func(e *Evidence, _ Policy) bool { return e.Life == Dead }, dead},
	{"R1", "unsure", Blind, Medium, func(e *Evidence, _ Policy) bool { return e.Life == Unsure }, life},
	{"R1", "manifest", Blind, Medium, func(e *Evidence, _ Policy) bool { return e.ManifestFault != "" }, func(e *Evidence, _ Policy) string { return e.ManifestFault }},
	{"W1", "waiting_permission", Waiting, High, shows(AsksPermission), told(AsksPermission)},
	{"W2", "waiting_question", Waiting, High, shows(AsksQuestion), told(AsksQuestion)},
	{"W3", "waiting_other", Waiting, High, shows(Notified), told(Notified)},
	{"W4", "waiting_permission", Waiting, Medium, shows(AsksEscalation), told(AsksEscalation)},
	{"E1", "execution_error", Errored, High, func(e *Evidence, _ Policy) bool { return pending(e) != nil }, failures},
	{"W5", "waiting_question", Waiting, Low, shows(EndedAsking), told(EndedAsking)},
	{"R5", "startup_blocked", Waiting, Medium, func(e *Evidence, _ Policy) bool { return e.Starting }, startup},
	{"OK", "working", noStall, Medium, manifestFresh, func(e *Evidence, _ Policy) string { return "the manifest was written " + ago(e.ManifestAge) }},
	{"H5", "heartbeat_lost", Hung, Medium, func(*Evidence, Policy) bool { return true }, hung},
}

// Classify says what the evidence comes to. It is pure.
func Classify(e Evidence, p Policy) Verdict {
	for _, r := range rules {
		if r.when(&e, p) {
			return Verdict{Rule: r.id, Class: r.class, Stall: r.stall, Confidence: r.confidence, Details: r.details(&e, p)}
		}
	}
	panic("monitor: the last rule always holds")
}

// fresh: a heartbeat of exactly the threshold's age is not stale, one of the future is not either (S4).
func fresh(e *Evidence, p Policy) bool { return e.HasBeat && !e.Starting && e.Silence <= p.Stale }

func manifestFresh(e *Evidence, p Policy) bool {
	return e.Manifest != nil && !e.Manifest.LastUpdated.IsZero() && e.ManifestAge <= p.Stale
}

// humanRequired are categories of failures that no restart can cure, whether the orchestrator lives or not (S4 SC-007).
var humanRequired = map[string]bool{"integration_auth": true}

func needsHuman(e *Evidence, _ Policy) bool {
	f := pending(e)
	return f != nil && humanRequired[f.Category]
}

// pending is the failure to tell of: one that needs a human before others.
func pending(e *Evidence) *piv.Failure {
	if e.Manifest == nil {
		return nil
	}
	var found *piv.Failure
	for i := range e.Manifest.Failures {
		f := &e.Manifest.Failures[i]
		if f.Pending() && (found == nil || humanRequired[f.Category] && !humanRequired[found.Category]) {
			found = f
		}
	}
	return found
}

func shows(kind SignKind) func(*Evidence, Policy) bool {
	return func(e *Evidence, _ Policy) bool { return sign(e, kind) != nil }
}

func sign(e *Evidence, kind SignKind) *Sign {
	for i := range e.Signs {
		if e.Signs[i].Kind == kind {
			return &e.Signs[i]
		}
	}
	return nil
}

func told(kind SignKind) func(*Evidence, Policy) string {
	return func(e *Evidence, p Policy) string {
		return fmt.Sprintf("%s; %s; %s", sign(e, kind).Text, beatDetails(e, p), life(e, p))
	}
}

func status(e *Evidence, _ Policy) string { return "status " + string(e.Project.Status) }

func life(e *Evidence, _ Policy) string { return e.LifeDetail }

func beatDetails(e *Evidence, _ Policy) string {
	switch {
	case !e.HasBeat:
		return "no heartbeat was ever written"
	case e.BeatAge < 0:
		return fmt.Sprintf("the heartbeat is %s in the future: a clock is wrong", (-e.BeatAge).Round(time.Second))
	}
	return "heartbeat " + ago(e.BeatAge)
}

func ago(d time.Duration) string { return d.Round(time.Second).String() + " ago" }

func dead(e *Evidence, p Policy) string {
	s := beatDetails(e, p) + "; " + e.LifeDetail
	if f := pending(e); f != nil {
		s += "; manifest: " + failureText(f)
	}
	if e.Lost != "" {
		s += "; " + e.Lost
	}
	return s
}

func hung(e *Evidence, p Policy) string {
	s := beatDetails(e, p) + "; " + e.LifeDetail
	if e.Manifest != nil && !e.Manifest.LastUpdated.IsZero() {
		s += "; manifest written " + ago(e.ManifestAge)
	}
	return s
}

func startup(e *Evidence, p Policy) string {
	return fmt.Sprintf("started %s and not one heartbeat since; %s", ago(e.Silence), e.LifeDetail)
}

func lost(e *Evidence, p Policy) string {
	return e.Lost + "; " + beatDetails(e, p) + "; " + e.LifeDetail
}

func vanished(e *Evidence, p Policy) string {
	return "the entry has vanished from the registry while the project was running; " + beatDetails(e, p) + "; " + e.LifeDetail
}

func failures(e *Evidence, _ Policy) string {
	return failureText(pending(e)) + "; " + e.LifeDetail
}

func failureText(f *piv.Failure) string {
	s := f.Category
	if s == "" {
		s = "failure"
	}
	if f.Command != "" {
		s += " in " + f.Command
	}
	if f.Phase != piv.NoPhase {
		s += fmt.Sprintf(", phase %d", f.Phase)
	}
	if f.MaxRetries > 0 {
		s += fmt.Sprintf(", retried %d of %d times", f.Retries, f.MaxRetries)
	}
	if f.Details != "" {
		s += ": " + f.Details
	}
	return s
}
