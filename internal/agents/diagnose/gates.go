package diagnose

import (
	"fmt"
	"slices"
)

// later is how much newer than the end of a process a sign of life must be to contradict it. Within that time the
// order of the last write and the last look is not certain.
const later = Span(10e9)

func notWatched(e *Evidence, _ Policy) answer {
	if e.Watched {
		return no("it is watched")
	}
	return yes(0, "status %s", e.Status)
}

func complete(e *Evidence, _ Policy) answer {
	if !e.Complete {
		return no("the registry does not call it complete")
	}
	return yes(0, "the registry calls it complete")
}

func paused(e *Evidence, _ Policy) answer {
	if !e.Paused {
		return no("it is not paused")
	}
	return yes(0, "it is paused")
}

func unreadable(e *Evidence, _ Policy) answer {
	if e.Fault == "" {
		return no("its entry can be read")
	}
	return yes(0, "%s", e.Fault+e.blindFor())
}

func vanished(e *Evidence, p Policy) answer {
	if !e.Vanished {
		return no("the registry has it")
	}
	return yes(0, "the entry has vanished from the registry while the project was running; %s", e.heard())
}

func lost(e *Evidence, p Policy) answer {
	switch {
	case e.Lost == "":
		return no("the registry can be read")
	case e.Process.Life == Dead:
		return no("a dead process is dead, whatever the registry says")
	}
	return yes(0, "%s; %s", e.Lost, e.heard())
}

// graceFirst is the grace period where it precedes other rules: no process is missing on a machine that has only just
// started, and where beats decide only a dead process counts.
func graceFirst(e *Evidence, p Policy) answer {
	switch {
	case e.Grace == "":
		return no("there is no grace")
	case e.Process.Life == Dead && !e.GraceDead:
		return no("a dead process is dead, grace or not")
	case e.Process.Life != Dead && !p.BeatDecides:
		return no("what it shows counts, grace or not")
	}
	return yes(0, "%s", e.Grace)
}

// grace precedes every conclusion from silence.
func grace(e *Evidence, _ Policy) answer {
	if e.Grace == "" {
		return no("there is no grace: silence is evidence")
	}
	return yes(0, "%s", e.Grace)
}

// unheard reports whether this process has given no sign of life yet, although it should. A session that was last written before its
// start is gone on with, and shows nothing of it.
func (e *Evidence) unheard() bool {
	written := slices.ContainsFunc(e.Sessions, func(s Session) bool { return s.Unwritten || s.LastAge <= e.Process.Age })
	return e.Artefact.Expected && !e.Artefact.Seen && e.Process.AfterBeat && !written && len(e.Hooks) == 0
}

func starting(e *Evidence, p Policy) answer {
	switch {
	case e.Process.Life != Alive:
		return no("its process is not known to live")
	case !e.unheard():
		return no("it has shown itself since it was started, or nothing is expected of it")
	case e.Process.Age >= p.Startup:
		return no("it was started %s, more than %s", ago(e.Process.Age), p.Startup)
	}
	return yes(e.Process.Age, "%s", e.Process.text())
}

// startupBlocked holds for a process that lives but does not begin, most often because of a dialog that nobody sees. A script that
// prepares the work of its CLI computes or writes meanwhile.
func startupBlocked(e *Evidence, p Policy) answer {
	switch {
	case p.BeatDecides:
		return no("beats decide: without one it is silent, and nothing shows that it waits")
	case e.Process.Life != Alive:
		return no("its process is not known to live")
	case !e.unheard():
		return no("it has shown itself since it was started, or nothing is expected of it")
	case e.Process.Age < p.Startup:
		return no("it was started %s, less than %s", ago(e.Process.Age), p.Startup)
	case e.Process.Bare:
		return no("it has not shown itself since it was started, and it is a script that runs no CLI now")
	case e.CPU.Works():
		return no("it has not shown itself since it was started, and what it has started %s", e.CPU.text())
	case e.Output.Known && e.Output.text() <= p.Startup:
		return no("it has not shown itself since it was started, and has written something %s", ago(e.Output.text()))
	}
	return yes(e.Process.Age, "started %s and not one heartbeat or session since; %s%s", ago(e.Process.Age), e.Process.text(), e.onTitle())
}

// done holds when the work is done: by a mark, by the agent's own report, or by what its owner has declared. A report is outdated
// if the agent was at work long after it.
func done(e *Evidence, p Policy) answer {
	mark := ""
	exited := e.Exit.Known && e.Exit.Code == p.Done.Code && e.Exit.Signal == ""
	code := fmt.Sprintf("exit code %d", p.Done.Code)
	complete := e.Manifest.Has && e.Manifest.Complete
	finished := e.Beat.Has && e.Beat.State == Finished && !e.Process.AfterBeat && !e.overtaken(p.Stale)
	switch {
	case e.Done != "":
		mark = e.Done
	case finished:
		mark = "it says so itself"
	case p.Done.Exit && p.Done.Manifest && exited && complete:
		mark = code + ", and the manifest is complete"
	case p.Done.Exit && !p.Done.Manifest && exited:
		mark = code
	case complete && !p.Done.Exit:
		mark = "the manifest is complete"
	default:
		return no("nothing marks its work as done")
	}
	if e.Process.Life != Dead && !finished {
		return no("its work is marked as done (%s), and its process has not ended", mark)
	}
	return yes(e.Process.Gone, "its work is done: %s", mark)
}

// contradiction holds when two sources cannot both be right. Believing the wrong one would start a second agent next
// to a living one, or treat a dead one as alive.
func contradiction(e *Evidence, _ Policy) answer {
	if e.Process.Life == Alive && e.Exit.Known {
		return yes(0, "%s, and yet %s was reported of it", e.Process.text(), e.Exit.text())
	}
	if e.Process.Life != Dead {
		return no("nothing contradicts that its process lives")
	}
	if b := e.Beat; b.Has && !e.Process.AfterBeat && b.Age >= 0 && b.Age.plus(later) < e.Process.Gone {
		return yes(b.Age, "%s since %s, and yet it has beaten %s", e.Process.text(), e.Process.Gone.brief(), ago(b.Age))
	}
	for _, s := range e.Sessions {
		if s.LastAge.plus(later) < e.Process.Gone {
			return yes(s.LastAge, "%s since %s, and yet its session %s was written %s", e.Process.text(), e.Process.Gone.brief(), s.name(), ago(s.LastAge))
		}
	}
	return no("nothing of it is younger than the end of its process")
}

func errorExit(e *Evidence, p Policy) answer {
	return exitOf(e, p.ErrorExits, "an error that a restart does not fix")
}

func limitExit(e *Evidence, p Policy) answer {
	if e.Process.Life == Dead && e.Exit.Known && e.Exit.Limit != "" {
		return yes(e.Process.Gone, "%s, at a limit of its own: %s", e.Exit.text(), e.Exit.Limit)
	}
	return exitOf(e, p.LimitExits, "a limit of its own")
}

func exitOf(e *Evidence, codes []int, means string) answer {
	if e.Process.Life != Dead || !e.Exit.Known || e.Exit.Signal != "" || !slices.Contains(codes, e.Exit.Code) {
		return no("it has not ended with a code that means %s", means)
	}
	return yes(e.Process.Gone, "%s, which means %s for this kind of agent", e.Exit.text(), means)
}

func exitedUnfinished(e *Evidence, _ Policy) answer {
	if e.Process.Life != Dead {
		return no("its process is not known to have ended")
	}
	quiet := e.Exit.Known && e.Exit.Code == 0 && e.Exit.Signal == ""
	announced := !e.Exit.Known && e.Beat.Has && e.Beat.State == Exiting && !e.Process.AfterBeat
	if !quiet && !announced {
		return no("it has not ended normally")
	}
	return yes(e.Process.Gone, "it has ended, and nothing marks its work as done; %s", e.heard())
}

func crashed(e *Evidence, _ Policy) answer {
	if e.Process.Life != Dead {
		return no("its process is not known to be dead")
	}
	why := e.heard()
	if e.Exit.Known {
		why += "; " + e.Exit.text()
	}
	if f := e.pending(); f != nil {
		why += "; manifest: " + f.text()
	}
	if e.Lost != "" {
		why += "; " + e.Lost
	}
	return yes(e.Process.Gone, "%s", why)
}

// stopped holds for a process that is stopped: it does nothing until it is continued, whatever else it has shown.
func stopped(e *Evidence, _ Policy) answer {
	if e.Process.Life != Alive || !e.Process.Stopped {
		return no("its process is not stopped")
	}
	return yes(0, "%s, and is stopped (SIGSTOP, or Ctrl-Z at its terminal); fg in that terminal, or kill -CONT, lets it go on", e.Process.text())
}

func unsure(e *Evidence, _ Policy) answer {
	if e.Process.Life != Unsure {
		return no("there is no doubt whose process it is")
	}
	return yes(0, "%s", e.Process.text()+e.blindFor())
}

func manifestFault(e *Evidence, _ Policy) answer {
	if e.Manifest.Fault == "" {
		return no("no manifest is in the way")
	}
	return yes(0, "%s", e.Manifest.Fault+e.blindFor())
}

func noEvidence(e *Evidence, _ Policy) answer {
	if e.Process.Life != Unknown {
		return no("its process is known")
	}
	return yes(0, "nothing shows what it does, and its process is not known%s", e.blindFor())
}

func unobserved(e *Evidence, _ Policy) answer {
	return yes(0, "%s, and nothing else is known of it", e.Process.text())
}

func (e *Evidence) blindFor() string {
	if e.BlindTicks == 0 {
		return ""
	}
	return fmt.Sprintf(" (look %d in a row)", e.BlindTicks+1)
}

// heard says when the agent last gave a sign, and what is known of its process.
func (e *Evidence) heard() string {
	if !e.Beat.Has && !e.Beat.Expected {
		return e.Process.text() // no beat is expected
	}
	return e.beatText() + "; " + e.Process.text()
}

// text describes what is known of the process.
func (p Proc) text() string {
	switch {
	case p.Detail != "":
		return p.Detail
	case p.Life == Unknown:
		return "its process is not known"
	}
	return "its process is " + string(p.Life)
}

func (e *Evidence) beatText() string {
	switch {
	case !e.Beat.Has:
		return "no heartbeat was ever written"
	case e.Beat.Age < 0:
		return fmt.Sprintf("the heartbeat is %s in the future: a clock is wrong", (-e.Beat.Age).brief())
	}
	return "heartbeat " + ago(e.Beat.Age)
}

func (e *Evidence) onTitle() string {
	if e.Title.Text == "" {
		return ""
	}
	return fmt.Sprintf("; its terminal's title is %q", e.Title.Text)
}

func (x Exit) text() string {
	if x.Signal != "" {
		return "ended by signal " + x.Signal
	}
	return fmt.Sprintf("exit code %d", x.Code)
}
