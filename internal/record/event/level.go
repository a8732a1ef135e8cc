package event

import "log/slog"

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
