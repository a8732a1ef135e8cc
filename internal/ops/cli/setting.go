package cli

import (
	"fmt"
	"slices"
	"strings"
)

// settingName is the name of a flag of `outlive run`, most of which are keys of a server in outlive.yaml, too.
type settingName string

// String is how the command line spells it.
func (s settingName) String() string { return "--" + string(s) }

// key is how outlive.yaml spells it.
func (s settingName) key() string { return strings.ReplaceAll(string(s), "-", "_") }

// settingError is a mistake in one or more settings. They stand among the arguments of its format, so that each caller
// spells them as they were written.
type settingError struct {
	format string
	args   []any
}

// wrongSetting takes a format of fmt without %w.
func wrongSetting(format string, args ...any) error { return &settingError{format, args} }

// Error speaks of flags.
func (e *settingError) Error() string { return e.spelt(settingName.String) }

func (e *settingError) spelt(spell func(settingName) string) string {
	args := slices.Clone(e.args)
	for i, a := range args {
		if s, ok := a.(settingName); ok {
			args[i] = spell(s)
		}
	}
	return fmt.Sprintf(e.format, args...)
}

// settings are those that the error names, in its order.
func (e *settingError) settings() (named []settingName) {
	for _, a := range e.args {
		if s, ok := a.(settingName); ok {
			named = append(named, s)
		}
	}
	return named
}
