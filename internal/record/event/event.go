package event

import (
	"log/slog"
	"time"
)

// Type is a kind of event. The names are exactly those of TP-9.
type Type string

// Events of outlive itself.
const (
	// ProxyStarted: outlive has started, no process is spawned yet (TP-9).
	ProxyStarted Type = "proxy_started"
	// ProxyStopped: the last event of a run (TP-9). Attr: KeyExitCode.
	ProxyStopped Type = "proxy_stopped"
	// Interrupted: SIGINT or SIGTERM reached outlive. Attr: KeySignal.
	Interrupted Type = "interrupted"
	// ClientClosed: the client closed our stdin.
	ClientClosed Type = "client_closed"
	// StraysSwept: processes that an earlier outlive had left were ended. Attr: KeyCount.
	StraysSwept Type = "strays_swept"
	// Upgraded: another version of outlive has replaced this one, in the same process; its server is started next.
	// Attrs: KeyOldVersion, KeyNewVersion, KeyTookMS.
	Upgraded Type = "upgraded"
	// UpgradeFailed: an upgrade was requested and is not possible, or there was no moment without requests in time;
	// everything continues. Attr: KeyReason.
	UpgradeFailed Type = "upgrade_failed"
	// FatalError: outlive itself cannot continue (WD-15 "FATAL ERROR"). Attr: KeyError.
	FatalError Type = "fatal_error"
)

// Events of one server process.
const (
	// ServerStarting: a process is about to be spawned (WD-15 "Starting MCP server").
	ServerStarting Type = "server_starting"
	// ServerSpawned: the process runs (TP-9; WD-15 "MCP server running").
	ServerSpawned Type = "server_spawned"
	// SpawnFailed: the process could not be started. Attr: KeyError.
	SpawnFailed Type = "spawn_failed"
	// ServerReady: the server has answered the handshake (TP-9). Attr: KeyStartupMS.
	ServerReady Type = "server_ready"
	// StartTimeout: the process lives but did not answer the handshake in time, or refused it. Attr: KeyReason.
	StartTimeout Type = "start_timeout"
	// ServerSuspect: a running server does not answer. Attr: KeyReason.
	ServerSuspect Type = "server_suspect"
	// ServerCleared: a suspected server answers again.
	ServerCleared Type = "server_cleared"
	// ServerUnhealthy: the process no longer works, or uses too much, and is ended. Attrs: KeyReason, KeyCause.
	ServerUnhealthy Type = "server_unhealthy"
	// LimitReached: the process has reached a limit of its use; another one replaces it. Attr: KeyReason.
	LimitReached Type = "limit_reached"
	// ServerExited: the process has ended (WD-15 "MCP server exited"). Attrs: KeyExitCode, KeySignal, KeyUptimeMS,
	// KeyMaxRSS, KeyCPUMS.
	ServerExited Type = "server_exited"
	// ServerCrashed: the exit was unexpected (WD-15 "Server crashed").
	// Attrs: KeyExitCode, KeyReason, KeyRestarting.
	ServerCrashed Type = "server_crashed"
	// ServerStuck: the process was killed and has not ended. It is waited for no longer, and may still be at work.
	ServerStuck Type = "server_stuck"
	// CleanShutdown: the server exited 0 by itself (WD-15 "Clean shutdown requested").
	CleanShutdown Type = "clean_shutdown"
	// ServerSlept: the process was ended because it was not needed; the next call starts it. Attr: KeyReason.
	ServerSlept Type = "server_slept"
	// ConnectionLost: a connection to a remote server has ended, or did not come about; the next one is opened. It is no
	// crash, and no restart. Attrs: KeyReason, KeyDelayMS until the next one.
	ConnectionLost Type = "connection_lost"
)

// Restarts.
const (
	// RestartMarkerDetected: the marker was seen on the server's stderr (TP-9).
	RestartMarkerDetected Type = "restart_marker_detected"
	// ServerRestartRequested: the restart_server tool was called (RT-4). Attrs: KeyReason, KeyMarkerPath, KeyExitCode.
	ServerRestartRequested Type = "server_restart_requested"
	// LauncherResolved: the real command behind a launcher is known; after a crash it is started. Attr: KeyCommand.
	LauncherResolved Type = "launcher_resolved"
	// LauncherKept: restarts go through the launcher. Attr: KeyError.
	LauncherKept Type = "launcher_kept"
	// FilesChanged: watched files changed. Attr: KeyFiles.
	FilesChanged Type = "files_changed"
	// RestartInitiated: a new process will replace one that has ended (TP-9). Attrs: KeyCause, KeySource, KeyReason.
	RestartInitiated Type = "restart_initiated"
	// RestartThrottled: a requested restart is delayed to keep one second between restarts (WD-11). Attr: KeyDelayMS.
	RestartThrottled Type = "restart_throttled"
	// RestartDelayed: a crashed server waits for its backoff (WD-15 "Crash recovery delay"). Attr: KeyDelayMS.
	RestartDelayed Type = "restart_delayed"
	// RestartCompleted: the new process answers (TP-9). Attrs: KeyRestartMS, KeyCause.
	RestartCompleted Type = "restart_completed"
	// SpareReady: a spare process is ready to take over. Attr: KeyStartupMS.
	SpareReady Type = "standby_ready"
	// ReloadFailed: the new process of a planned restart did not come up; the old one continues. Attrs: KeyReason and
	// KeySource of the restart, KeyError, KeyStderr, KeyHint.
	ReloadFailed Type = "reload_failed"
	// BreakerOpened: the restart budget is used up. Attrs: KeyDelayMS until the next attempt (0: none), KeyReason.
	BreakerOpened Type = "breaker_opened"
	// BreakerClosed: the server came up again after BreakerOpened.
	BreakerClosed Type = "breaker_closed"
)

// Events of the protocol.
const (
	// InitializeCaptured: the client's handshake is known (TP-9). Attr: KeyProtocol.
	InitializeCaptured Type = "initialize_captured"
	// InitializeReplayed: the handshake was repeated for a new process (TP-9). Attr: KeyProtocol.
	InitializeReplayed Type = "initialize_replayed"
	// CallReplayed: a tool call was repeated for a new process before it serves. Attrs: KeyTool, KeyError.
	CallReplayed Type = "call_replayed"
	// ProbeAnswered: a server/discover probe was answered on the server's behalf. Attr: KeyReason.
	ProbeAnswered Type = "probe_answered"
	// BridgeEngaged: client and server use different eras of the protocol, and messages are translated. Attr:
	// KeyReason.
	BridgeEngaged Type = "bridge_engaged"
	// BridgeReleased: the server uses its client's era again, and messages are no longer translated. Attr: KeyReason.
	BridgeReleased Type = "bridge_released"
	// AnsweredFromMemory: the client was answered with what an earlier run of the command has shown. Attr: KeyMethod.
	AnsweredFromMemory Type = "answered_from_memory"
	// ValidationBlocked: a line of the client was not forwarded to the server (TP-9). Attrs: KeyRawLine, KeyReason,
	// KeyRequestID.
	ValidationBlocked Type = "validation_blocked"
	// StdoutNoise: the server wrote something to stdout that is not a message. Attrs: KeyRawLine, KeyCount.
	StdoutNoise Type = "stdout_noise"
	// TextRepaired: a message of the server was mended: invalid UTF-8 or a lone surrogate was replaced by U+FFFD, text by
	// the number of a request, or a member that was there twice by its last one. Attr: KeyRawLine, but not for the first.
	TextRepaired Type = "text_repaired"
	// MessageDropped: a message had no recipient (a late, duplicate or unknown answer). Attrs: KeyReason,
	// KeyRequestID.
	MessageDropped Type = "message_dropped"
	// MessageTooLarge: a line was over the limit and was answered with an error. Attrs: KeyDirection, KeyRequestID.
	MessageTooLarge Type = "message_too_large"
	// RequestResent: a request was sent again to a new process. Attrs: KeyMethod, KeyRequestID, KeyReason.
	RequestResent Type = "request_resent"
	// RequestLost: a request was answered "outcome unknown". Attrs: KeyMethod, KeyRequestID, KeyReason.
	RequestLost Type = "request_lost"
	// CallTimedOut: a call was ended by its time limit. Attrs: KeyMethod, KeyRequestID.
	CallTimedOut Type = "call_timed_out"
	// RequestRefused: a request was answered with an error without reaching a server. Attrs: KeyMethod, KeyRequestID,
	// KeyReason.
	RequestRefused Type = "request_refused"
	// ListenGivenUp: the server stopped answering after subscriptions/listen and does not get that request any more.
	// Attr: KeyReason.
	ListenGivenUp Type = "listen_given_up"
	// DriftDetected: the new process differs from what the client knows. Attrs: KeyKind, KeyNotified.
	DriftDetected Type = "drift_detected"
)

// Events of the gateway.
const (
	// GatewayListening: the endpoint is ready. Attr: KeyURL.
	GatewayListening Type = "gateway_listening"
	// ServerUnusable: the handshake with a server failed; it will be tried again. Attrs: KeyServer, KeyError,
	// KeyDelayMS.
	ServerUnusable Type = "server_unusable"
	// ListMissing: a server is used without a list that it has not answered for, or of which it refused a page, or without
	// resources whose URIs another server has. Attrs: KeyServer, KeyReason.
	ListMissing Type = "list_missing"
	// ConfigLoaded: the configuration was read again. Attrs: KeyFiles, KeyCount.
	ConfigLoaded Type = "config_loaded"
	// ConfigRejected: the configuration has mistakes; the previous one stays in use. Attrs: KeyFiles, KeyError.
	ConfigRejected Type = "config_rejected"
	// PeerRefused: somebody at the address for other gateways does not have the secret. Attr: KeyError.
	PeerRefused Type = "peer_refused"
	// PeerEnded: another gateway has ended, whose sessions were asked for here.
	PeerEnded Type = "peer_ended"
	// SessionsAway: no sessions of the fleet can be had here; others may have them. Attr: KeyError.
	SessionsAway Type = "sessions_away"
	// SessionsBack: they can again.
	SessionsBack Type = "sessions_back"
)

// Events of the monitor. They are concluded from two looks at its home, and are in no audit log.
const (
	// AgentChanged: an agent is in another state.
	AgentChanged Type = "agent_changed"
	// AgentActed: something was done about an agent.
	AgentActed Type = "agent_acted"
	// IncidentOpened: a person is to be told of something.
	IncidentOpened Type = "incident_opened"
	// IncidentAcknowledged: somebody deals with it.
	IncidentAcknowledged Type = "incident_acknowledged"
	// IncidentResolved: it is over.
	IncidentResolved Type = "incident_resolved"
)

// Events of other machines that are looked at. They are in no audit log.
const (
	// HostConnected: outlive on a host answers.
	HostConnected Type = "host_connected"
	// HostLost: a host does not answer, or not any more; it is tried again.
	HostLost Type = "host_lost"
)

// ProxyLost: a running outlive that is looked at is not there any more, and has not said that it ends. It is in no audit log.
const ProxyLost Type = "proxy_lost"

// ServerLogLost: stderr or audit output could not be kept (full disk, slow reader); the message has the details. In the audit log,
// in place of events that are missing there, it has KeyCount.
const ServerLogLost Type = "log_lost"

// Attribute keys. They are the field names of the audit log; durations are whole milliseconds.
const (
	KeyStartupMS  = "startup_time_ms"     // int: spawn to ready (TP-8)
	KeyRestartMS  = "restart_duration_ms" // int: restart initiated to ready (TP-8)
	KeyExitCode   = "exit_code"           // int: 128+N for signal N
	KeySignal     = "signal"              // string: "killed", "terminated", …
	KeyReason     = "reason"              // string: in words
	KeyCause      = "cause"               // string: a supervise.Cause
	KeySource     = "source"              // string: a supervise.Source: who asked for a restart
	KeyError      = "error"               // string
	KeyStderr     = "stderr"              // []string: the last lines
	KeyTool       = "tool"                // string: its name
	KeyCommand    = "command"             // []string: argv
	KeyFiles      = "files"               // []string: paths
	KeyHint       = "hint"                // string: what may help
	KeyDelayMS    = "delay_ms"            // int
	KeyUptimeMS   = "uptime_ms"           // int: spawn to exit
	KeyMaxRSS     = "max_rss_bytes"       // int
	KeyCPUMS      = "cpu_ms"              // int: user and system
	KeyProtocol   = "protocol_version"    // string
	KeyRawLine    = "raw_line"            // string: cut at 1 KiB (TP-10)
	KeyRequestID  = "request_id"          // string: the raw JSON id
	KeyMethod     = "method"              // string
	KeyCount      = "count"               // int
	KeyRestarting = "restarting"          // bool: a restart follows
	KeyKind       = "kind"                // string: tools, prompts, resources, serverInfo, …
	KeyNotified   = "notified"            // bool: the client was notified
	KeyDirection  = "direction"           // string: "client_to_server" or "server_to_client"
	KeyMarkerPath = "marker_path"         // string
	KeyOldVersion = "old_version"         // string: of outlive
	KeyNewVersion = "new_version"         // string: of outlive
	KeyTookMS     = "took_ms"             // int
	KeyServer     = "server"              // string: its name in the gateway's configuration
	KeyURL        = "url"                 // string
)

// Event is one thing that has happened.
type Event struct {
	Type    Type
	Time    time.Time // wall clock
	Level   slog.Level
	Message string // one line for people, in the contract's wording if there is one

	Generation   int // of the server process this is about: 0, 1, …
	ServerPID    int // 0: none runs
	RestartCount int // restarts for any cause since outlive started

	Attrs []slog.Attr // keys of this package only; whole numbers, texts, booleans and lists of texts: others are not written in a form of their own
}

// Attr returns the attribute named key and whether the event carries it.
func (e Event) Attr(key string) (slog.Value, bool) {
	for _, a := range e.Attrs {
		if a.Key == key {
			return a.Value, true
		}
	}
	return slog.Value{}, false
}

// Sink receives events. It must return at once and must not keep e.Attrs' backing array.
type Sink interface {
	Emit(e Event)
}

// Tee passes each event to every sink in order.
type Tee []Sink

// Emit implements [Sink].
func (t Tee) Emit(e Event) {
	for _, s := range t {
		s.Emit(e)
	}
}

// Grade is the rule for levels: what needs a person is an ERROR; what is wrong and needs nobody, since outlive mends it or it is over,
// is a WARNING; all else is news, INFO.
func Grade(person, wrong bool) slog.Level {
	switch {
	case person:
		return slog.LevelError
	case wrong:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// LevelOf is the level of an event by that rule. Who emits it says with its level whether something is wrong; what kind of event it is
// says whether that needs a person. What is for debugging stays so.
func LevelOf(e Event) slog.Level {
	if e.Level < slog.LevelInfo {
		return e.Level
	}
	return Grade(e.needsPerson(), e.Level >= slog.LevelWarn)
}

// needsPerson reports whether nothing goes on, or nothing new is used, until somebody does something.
func (e Event) needsPerson() bool {
	switch e.Type {
	case FatalError, SpawnFailed, ServerStuck, BreakerOpened, ServerUnusable, ReloadFailed, ConfigRejected, IncidentOpened:
		return true
	case ServerCrashed:
		restarting, known := e.Attr(KeyRestarting)
		return known && restarting.Kind() == slog.KindBool && !restarting.Bool()
	}
	return false
}

// LevelName is a level as the audit log names it: as Python does (TP-8).
func LevelName(l slog.Level) string {
	switch {
	case l < slog.LevelInfo:
		return "DEBUG"
	case l < slog.LevelWarn:
		return "INFO"
	case l < slog.LevelError:
		return "WARNING"
	}
	return "ERROR"
}
