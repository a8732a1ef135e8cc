package event

import (
	"log/slog"
	"testing"
)

// Who reads the levels alone knows whether somebody has to do something.
func TestLevels(t *testing.T) {
	crash := func(restarting bool) []slog.Attr { return []slog.Attr{slog.Bool(KeyRestarting, restarting)} }
	for _, tt := range []struct {
		what  string
		event Event
		want  string
	}{
		{"a server that keeps failing", Event{Type: BreakerOpened, Level: slog.LevelError}, "ERROR"},
		{"a command that cannot be started", Event{Type: SpawnFailed, Level: slog.LevelError}, "ERROR"},
		{"a crash after which nothing is started", Event{Type: ServerCrashed, Level: slog.LevelError, Attrs: crash(false)}, "ERROR"},
		{"new code that does not come up", Event{Type: ReloadFailed, Level: slog.LevelError}, "ERROR"},
		{"a server of a gateway that cannot be used", Event{Type: ServerUnusable, Level: slog.LevelWarn}, "ERROR"},
		{"a mistake in outlive.yaml", Event{Type: ConfigRejected, Level: slog.LevelError}, "ERROR"},
		{"a server that cannot be killed", Event{Type: ServerStuck, Level: slog.LevelWarn}, "ERROR"},
		{"an incident", Event{Type: IncidentOpened, Level: slog.LevelWarn}, "ERROR"},
		{"a defect of outlive", Event{Type: FatalError, Level: slog.LevelError}, "ERROR"},

		{"a crash after which it is restarted", Event{Type: ServerCrashed, Level: slog.LevelError, Attrs: crash(true)}, "WARNING"},
		{"a start that took too long", Event{Type: StartTimeout, Level: slog.LevelError}, "WARNING"},
		{"a server that hung, and was ended", Event{Type: ServerUnhealthy, Level: slog.LevelError}, "WARNING"},
		{"a message that was refused", Event{Type: ValidationBlocked, Level: slog.LevelError}, "WARNING"},
		{"a call of unknown outcome", Event{Type: RequestLost, Level: slog.LevelWarn}, "WARNING"},
		{"a machine that is tried again", Event{Type: HostLost, Level: slog.LevelWarn}, "WARNING"},

		{"a restart", Event{Type: RestartInitiated, Level: slog.LevelInfo}, "INFO"},
		{"a server that is ready", Event{Type: ServerReady, Level: slog.LevelInfo}, "INFO"},
		{"the end of an incident", Event{Type: IncidentResolved, Level: slog.LevelInfo}, "INFO"},

		{"for debugging", Event{Type: MessageDropped, Level: slog.LevelDebug}, "DEBUG"},
	} {
		if got := LevelName(LevelOf(tt.event)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.what, got, tt.want)
		}
	}
}
