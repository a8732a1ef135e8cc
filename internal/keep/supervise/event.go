package supervise

// Event is something that happened. The events are the types of this file.
type Event interface {
	// about returns the generation of the process concerned; ok is false for a request, which concerns none.
	about() (gen int, ok bool)
}

// Start asks for the first process, or for one after a [Sleep]. While a process runs it asks for nothing, unless that
// process is going to sleep: then another one follows at once.
type Start struct{}

// SpawnFailed says that the process of a [Spawn] could not be started.
type SpawnFailed struct {
	Gen int
	// Status ends everything with this exit status if there never was a process: the command cannot be executed. 0: it is
	// tried again.
	Status int
}

// Handshake says that the process is being asked to show that it works: Options.StartTimeout counts from here, for a spare,
// too. A process that was up is Starting again until it answers.
type Handshake struct{ Gen int }

// Ready says that the process is up. Held messages should be sent then.
type Ready struct{ Gen int }

// Refused says that the process refused its handshake: it is ended, and did not come up.
type Refused struct {
	Gen    int
	Reason string // in words; default "it refused the handshake"
}

// Drained says, after [BeginDrain], that nothing is in flight at the process.
type Drained struct{ Gen int }

// StdoutClosed says that the process closed its stdout but did not exit in time: it is killed, and counts as crashed.
type StdoutClosed struct{ Gen int }

// Exited says that the leader of the process tree is dead.
type Exited struct {
	Gen       int
	Code      int    // 128+N for signal N
	Signalled bool   // it died by a signal
	Probe     bool   // it was being probed: its exit says nothing about its health
	Reason    string // in words; default: its exit status
}

// TreeGone says, after [Exited], that nothing is left: leader reaped, tree killed, output read to the end.
type TreeGone struct{ Gen int }

// Restart asks for a new process in place of the running one.
type Restart struct {
	Cause  Cause  // Requested; or Replace, ProbeExit: at once, and it counts as nothing
	Source Source // of a Requested one
	Reason string // in words
	// Overlap: the owner can start a second process beside the first. A Requested restart of a process that is up then
	// lets it serve until the new one can.
	Overlap bool
}

// Replayable says whether the owner can initialise a process by itself, because it knows the client's handshake. Until
// then there are no spares, and when it is no longer so, all are dismissed.
type Replayable struct{ Possible bool }

// SpareReady says that the process of a [SpawnSpare] was initialised and checked and could serve now.
type SpareReady struct{ Gen int }

// SpareFailed says that the process of a [SpawnSpare] will not come up, or was ready and has died. The owner ends the
// process itself.
type SpareFailed struct {
	Gen    int
	Reason string // in words
}

// MarkUnhealthy says that the process still runs but does not work: it is killed at once, and counts as crashed.
type MarkUnhealthy struct {
	Gen    int
	Cause  Cause  // Unhealthy or Memory
	Reason string // in words
}

// Sleep says that the process was idle for long: it is stopped until it is needed again. That is not counted. It is
// ignored while the process is coming up or ending, or a restart is under way.
type Sleep struct {
	Gen    int
	Reason string // in words
}

// Profile is how fast a [Stop] has to be.
type Profile uint8

// The profiles.
const (
	ClientEOF Profile = iota // the client closed its end: the process may finish its requests
	Signal                   // outlive itself was told to end
)

// Stop asks for the end of it all: no further process is started. A later, harder Stop overtakes a softer one.
type Stop struct{ Profile Profile }

func (Start) about() (int, bool)           { return 0, false }
func (Restart) about() (int, bool)         { return 0, false }
func (Stop) about() (int, bool)            { return 0, false }
func (Replayable) about() (int, bool)      { return 0, false }
func (e SpawnFailed) about() (int, bool)   { return e.Gen, true }
func (e Handshake) about() (int, bool)     { return e.Gen, true }
func (e Ready) about() (int, bool)         { return e.Gen, true }
func (e Refused) about() (int, bool)       { return e.Gen, true }
func (e Drained) about() (int, bool)       { return e.Gen, true }
func (e StdoutClosed) about() (int, bool)  { return e.Gen, true }
func (e Exited) about() (int, bool)        { return e.Gen, true }
func (e TreeGone) about() (int, bool)      { return e.Gen, true }
func (e SpareReady) about() (int, bool)    { return e.Gen, true }
func (e SpareFailed) about() (int, bool)   { return e.Gen, true }
func (e MarkUnhealthy) about() (int, bool) { return e.Gen, true }
func (e Sleep) about() (int, bool)         { return e.Gen, true }
