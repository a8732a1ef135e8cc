package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// setting is one thing that can be set: a flag, and of `outlive run` mostly a key of a server in outlive.yaml, too. A verb has a table
// of them, from which help, completion and checks come; from the table of run also policy keys and the published schema.
type setting struct {
	name  settingName
	short string // one letter; "": none
	to    any    // where it goes: a *string, *bool, *int, *time.Duration or *[]string. What stands there is the default
	usage string

	words    []string // the only values; nil: any
	optional bool     // one of words, or ""
	positive bool     // a time that has to be longer than 0
	natural  bool     // a time or number that must not be negative
	most     int      // of a number from 0 on; 0: no bound
	size     bool     // a text that is a size
	commas   bool     // a list that may stand in one text

	own     bool // of run: about outlive itself, and so no key of a server: the gateway has tools of its own for all of them
	inherit bool // of run: it means something with --mode inherit, where outlive sees no message and has no second process
}

// logLevels are the words of --log-level.
var logLevels = []string{"debug", "info", "warn", "error"}

// wordsOf is the annotation of a flag that can be one of a few words only: these words.
const wordsOf = "words"

// define adds the flags of a table, which help shows in this order.
func define(fl *pflag.FlagSet, table []setting) {
	fl.SortFlags = false
	for _, s := range table {
		name := string(s.name)
		switch to := s.to.(type) {
		case *string:
			fl.StringVarP(to, name, s.short, *to, s.usage)
		case *bool:
			fl.BoolVarP(to, name, s.short, *to, s.usage)
		case *int:
			fl.IntVarP(to, name, s.short, *to, s.usage)
		case *time.Duration:
			fl.DurationVarP(to, name, s.short, *to, s.usage)
		case *[]string:
			if s.commas {
				fl.StringSliceVarP(to, name, s.short, *to, s.usage)
			} else {
				fl.StringArrayVarP(to, name, s.short, *to, s.usage)
			}
		}
		if s.words != nil {
			_ = fl.SetAnnotation(name, wordsOf, s.words) // it fails only for a flag that there is not
		}
	}
}

// checkEach says what is wrong with a value by itself.
func checkEach(table []setting) error {
	for _, s := range table {
		if err := s.check(); err != nil {
			return err
		}
	}
	return nil
}

// check says what is wrong with the value by itself.
func (s *setting) check() error {
	switch to := s.to.(type) {
	case *string:
		if s.words != nil && !slices.Contains(s.words, *to) && (*to != "" || !s.optional) {
			return wrongSetting("%s %q: want %s", s.name, *to, strings.Join(s.words, ", "))
		}
		if s.size {
			if _, err := parseSize(*to); err != nil {
				return wrongSetting("%s: %v", s.name, err)
			}
		}
	case *int:
		switch {
		case s.most > 0 && (*to < 0 || *to > s.most):
			return wrongSetting("%s %d: want 0 to %d", s.name, *to, s.most)
		case s.natural && *to < 0:
			return wrongSetting("%s %d: it must not be negative", s.name, *to)
		}
	case *time.Duration:
		switch {
		case s.positive && *to <= 0:
			return wrongSetting("%s %s: want a positive duration such as 5s", s.name, *to)
		case s.natural && *to < 0:
			return wrongSetting("%s %s: it must not be negative", s.name, *to)
		}
	}
	return nil
}

// givenWords are the texts, lists and numbers of a table that have a value, as a command line has them.
func givenWords(table []setting) (words []string) {
	for _, s := range table {
		var values []string
		switch to := s.to.(type) {
		case *string:
			values = []string{*to}
		case *int:
			if *to != 0 {
				values = []string{strconv.Itoa(*to)}
			}
		case *[]string:
			if values = *to; s.commas {
				values = []string{strings.Join(values, ",")}
			}
		}
		for _, value := range values {
			if value != "" {
				words = append(words, s.name.String(), value)
			}
		}
	}
	return words
}

// settingName is the name of a flag. Most of those of `outlive run` are keys of a server in outlive.yaml, too.
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
