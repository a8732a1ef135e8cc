package event

import (
	"log/slog"
	"time"
)

// Type names one kind of happening. The names of TP-9 are kept to the letter.
type Type string

// The life of outlive itself.
const (
	// ProxyStarted: outlive is up, nothing is spawned yet (TP-9).
	ProxyStarted Type = "proxy_started"
	// ProxyStopped: the last event of a run (TP-9). Attr: KeyExitCode.
	ProxyStopped Type = "proxy_stopped"
	// Interrupted: SIGINT or SIGTERM reached outlive. Attr: KeySignal.
	Interrupted Type = "interrupted"
	// ClientClosed: the client closed our stdin.
	ClientClosed Type = "client_closed"
	// StraysSwept: processes that an earlier outlive had left behind were ended. Attr: KeyCount.
	StraysSwept Type = "strays_swept"
	// Upgraded: another version of outlive has taken this one's place, in the same process; its server is started next.
	// Attrs: KeyOldVersion, KeyNewVersion, KeyTookMS.
	Upgraded Type = "upgraded"
	// UpgradeFailed: that was requested and is not possible, or no quiet moment came in time; everything goes on.
	// Attr: KeyReason.
	UpgradeFailed Type = "upgrade_failed"
	// FatalError: outlive itself cannot go on (WD-15 "FATAL ERROR"). Attr: KeyError.
	FatalError Type = "fatal_error"
)

// The life of one server process.
const (
	// ServerStarting: a process is about to be spawned (WD-15 "Starting MCP server").
	ServerStarting Type = "server_starting"
	// ServerSpawned: the process runs (TP-9; WD-15 "MCP server running").
	ServerSpawned Type = "server_spawned"
	// SpawnFailed: the process could not be started. Attr: KeyError.
	SpawnFailed Type = "spawn_failed"
	// ServerReady: the handshake is answered (TP-9). Attr: KeyStartupMS.
	ServerReady Type = "server_ready"
	// StartTimeout: the process lives but did not answer the handshake in time, or refused it. Attr: KeyReason.
	StartTimeout Type = "start_timeout"
	// ServerSuspect: a running server gives no answers. Attr: KeyReason.
	ServerSuspect Type = "server_suspect"
	// ServerCleared: a suspected server answers again.
	ServerCleared Type = "server_cleared"
	// ServerUnhealthy: the process no longer works, or takes too much, and is ended. Attrs: KeyReason, KeyCause.
	ServerUnhealthy Type = "server_unhealthy"
	// LimitReached: the process has taken what it may; another one takes its place. Attr: KeyReason.
	LimitReached Type = "limit_reached"
	// ServerExited: the process is gone (WD-15 "MCP server exited"). Attrs: KeyExitCode, KeySignal,
	// KeyUptimeMS, KeyMaxRSS, KeyCPUMS.
	ServerExited Type = "server_exited"
	// ServerCrashed: the exit was unexpected (WD-15 "Server crashed").
	// Attrs: KeyExitCode, KeyReason, KeyRestarting.
	ServerCrashed Type = "server_crashed"
	// CleanShutdown: the server exited 0 by itself (WD-15 "Clean shutdown requested").
	CleanShutdown Type = "clean_shutdown"
	// ServerSlept: the process was ended because nobody needed it; the next call starts it. Attr: KeyReason.
	ServerSlept Type = "server_slept"
)

// Restarts.
const (
	// RestartMarkerDetected: the marker was seen on the server's stderr (TP-9).
	RestartMarkerDetected Type = "restart_marker_detected"
	// ServerRestartRequested: the restart_server tool was called (RT-4). Attrs: KeyReason, KeyMarkerPath, KeyExitCode.
	ServerRestartRequested Type = "server_restart_requested"
	// LauncherResolved: the real command behind a launcher is known; restarts use it. Attr: KeyCommand.
	LauncherResolved Type = "launcher_resolved"
	// LauncherKept: restarts go through the launcher. Attr: KeyError.
	LauncherKept Type = "launcher_kept"
	// FilesChanged: watched files changed. Attr: KeyFiles.
	FilesChanged Type = "files_changed"
	// RestartInitiated: a new process will take the place of one that is gone (TP-9). Attrs: KeyCause, KeySource, KeyReason.
	RestartInitiated Type = "restart_initiated"
	// RestartThrottled: a requested restart waits for the one-a-second floor (WD-11). Attr: KeyDelayMS.
	RestartThrottled Type = "restart_throttled"
	// RestartDelayed: a crashed server waits for its backoff (WD-15 "Crash recovery delay"). Attr: KeyDelayMS.
	RestartDelayed Type = "restart_delayed"
	// RestartCompleted: the new process answers (TP-9). Attrs: KeyRestartMS, KeyCause.
	RestartCompleted Type = "restart_completed"
	// SpareReady: a process beside the serving one could take over now. Attr: KeyStartupMS.
	SpareReady Type = "standby_ready"
	// ReloadFailed: the new process of a planned restart did not come up; the old one goes on serving.
	// Attrs: KeyReason and KeySource of the restart, KeyError, KeyStderr, KeyHint.
	ReloadFailed Type = "reload_failed"
	// BreakerOpened: the restart budget is spent. Attrs: KeyDelayMS until the next try (0: none), KeyReason.
	BreakerOpened Type = "breaker_opened"
	// BreakerClosed: the server came up again after BreakerOpened.
	BreakerClosed Type = "breaker_closed"
)

// What the protocol carried.
const (
	// InitializeCaptured: the client's handshake is known (TP-9). Attr: KeyProtocol.
	InitializeCaptured Type = "initialize_captured"
	// InitializeReplayed: a new process was told the handshake (TP-9). Attr: KeyProtocol.
	InitializeReplayed Type = "initialize_replayed"
	// CallReplayed: a tool call was repeated to a new process before it serves. Attrs: KeyTool, KeyError.
	CallReplayed Type = "call_replayed"
	// ProbeAnswered: a server/discover probe was answered on the server's behalf. Attr: KeyReason.
	ProbeAnswered Type = "probe_answered"
	// BridgeEngaged: client and server speak different eras of the protocol, and are translated. Attr: KeyReason.
	BridgeEngaged Type = "bridge_engaged"
	// BridgeReleased: the server speaks its client's era again, and nothing is translated any more. Attr: KeyReason.
	BridgeReleased Type = "bridge_released"
	// AnsweredFromMemory: the client was told what an earlier run of the command has shown. Attr: KeyMethod.
	AnsweredFromMemory Type = "answered_from_memory"
	// ValidationBlocked: a client line never reached the server (TP-9). Attrs: KeyRawLine, KeyReason, KeyRequestID.
	ValidationBlocked Type = "validation_blocked"
	// StdoutNoise: the server wrote something to stdout that is not a message. Attrs: KeyRawLine, KeyCount.
	StdoutNoise Type = "stdout_noise"
	// TextRepaired: invalid UTF-8 or a lone surrogate of the server was replaced by U+FFFD.
	TextRepaired Type = "text_repaired"
	// MessageDropped: a message had nobody to go to (a late, double or unknown answer). Attrs: KeyReason, KeyRequestID.
	MessageDropped Type = "message_dropped"
	// MessageTooLarge: a line was over the limit and was answered with an error. Attrs: KeyDirection, KeyRequestID.
	MessageTooLarge Type = "message_too_large"
	// RequestResent: a request was sent again to a new process. Attrs: KeyMethod, KeyRequestID, KeyReason.
	RequestResent Type = "request_resent"
	// RequestLost: a request was answered "outcome unknown". Attrs: KeyMethod, KeyRequestID, KeyReason.
	RequestLost Type = "request_lost"
	// CallTimedOut: a call was ended by its time limit. Attrs: KeyMethod, KeyRequestID.
	CallTimedOut Type = "call_timed_out"
	// RequestRefused: a request was answered with an error without having reached a server.
	// Attrs: KeyMethod, KeyRequestID, KeyReason.
	RequestRefused Type = "request_refused"
	// ListenGivenUp: the server answered nothing any more after subscriptions/listen and is not asked for that again.
	// Attr: KeyReason.
	ListenGivenUp Type = "listen_given_up"
	// DriftDetected: the new process differs from what the client knows. Attrs: KeyKind, KeyNotified.
	DriftDetected Type = "drift_detected"
)

// What the gateway does.
const (
	// GatewayListening: the endpoint can be reached. Attr: KeyURL.
	GatewayListening Type = "gateway_listening"
	// ServerUnusable: the handshake with a server failed; it is tried again. Attrs: KeyServer, KeyError, KeyDelayMS.
	ServerUnusable Type = "server_unusable"
	// ConfigLoaded: the configuration was read again. Attrs: KeyFiles, KeyCount.
	ConfigLoaded Type = "config_loaded"
	// ConfigRejected: it has mistakes; what was there before goes on. Attrs: KeyFiles, KeyError.
	ConfigRejected Type = "config_rejected"
)

// ServerLogLost: stderr or audit output could not be kept (full disk, slow reader); the message says what.
const ServerLogLost Type = "log_lost"

// Types is the whole vocabulary, in the order of a run's life.
func Types() []Type {
	return []Type{
		ProxyStarted, ProxyStopped, Interrupted, ClientClosed, Upgraded, UpgradeFailed, StraysSwept, FatalError,
		ServerStarting, ServerSpawned, SpawnFailed, ServerReady, StartTimeout,
		ServerSuspect, ServerCleared, ServerUnhealthy, LimitReached, ServerExited, ServerCrashed, CleanShutdown, ServerSlept,
		RestartMarkerDetected, ServerRestartRequested, LauncherResolved, LauncherKept, FilesChanged, RestartInitiated, RestartThrottled, RestartDelayed,
		RestartCompleted, SpareReady, ReloadFailed, BreakerOpened, BreakerClosed,
		InitializeCaptured, InitializeReplayed, CallReplayed, ProbeAnswered, BridgeEngaged, BridgeReleased, AnsweredFromMemory, ValidationBlocked, StdoutNoise, TextRepaired,
		MessageDropped, MessageTooLarge, RequestResent, RequestLost, CallTimedOut, RequestRefused, ListenGivenUp, DriftDetected,
		GatewayListening, ServerUnusable, ConfigLoaded, ConfigRejected, ServerLogLost,
	}
}

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
	KeyNotified   = "notified"            // bool: the client was told
	KeyDirection  = "direction"           // string: "client_to_server" or "server_to_client"
	KeyMarkerPath = "marker_path"         // string
	KeyOldVersion = "old_version"         // string: of outlive
	KeyNewVersion = "new_version"         // string: of outlive
	KeyTookMS     = "took_ms"             // int
	KeyServer     = "server"              // string: its name in the gateway's configuration
	KeyURL        = "url"                 // string
)

// Event is one happening.
type Event struct {
	Type    Type
	Time    time.Time // wall clock
	Level   slog.Level
	Message string // one line for people, in the contract's wording where it has one

	Generation   int // of the server process this is about: 0, 1, …
	ServerPID    int // 0: none runs
	RestartCount int // restarts of any cause since outlive started

	Attrs []slog.Attr // keys of this package only
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

// Sink takes events. It must return at once and must not keep e.Attrs' backing array.
type Sink interface {
	Emit(e Event)
}

// Tee hands each event to every sink in order.
type Tee []Sink

// Emit implements [Sink].
func (t Tee) Emit(e Event) {
	for _, s := range t {
		s.Emit(e)
	}
}
