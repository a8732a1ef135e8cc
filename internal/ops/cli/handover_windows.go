package cli

import (
	"errors"
	"os"
)

// errNoExec says that a program cannot take another one's place in its process.
var errNoExec = errors.New("not possible on Windows: restart the client instead")

// handoverPossible says why no other program can take our place.
func handoverPossible() error { return errNoExec }

func documentFile() (*os.File, error) { return nil, errNoExec }

func inheritedFile(string) (*os.File, error) { return nil, errNoExec }

func replaceImage(string, []string, []int) error { return errNoExec }

func admitSignals() {}
