package top

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/outlive-mcp/outlive/internal/view/overview"
)

const (
	tickEvery = time.Second     // how often the age of what is shown is told, when nothing happens
	staleFrom = 5 * time.Second // from this age on the screen says that it is old
	framesMax = 20              // in one second: enough for people, and little over a slow link
)

// Source is what there is to show.
type Source interface {
	// State is what was seen last; asking keeps it fresh.
	State() overview.State
	// Listen returns a channel that hears of every look, until stop is called.
	Listen() (news <-chan struct{}, stop func())
}

// Controls do what a person asks for. An answer is one line for people.
type Controls interface {
	// Restart restarts a server.
	Restart(ctx context.Context, s overview.Server) (answer string, err error)
	// RestartAgent has the monitor end an agent and start it anew.
	RestartAgent(ctx context.Context, a overview.Agent) (answer string, err error)
	// Press does what a button of an incident stands for.
	Press(ctx context.Context, incident string, b overview.Button) (answer string, err error)
}

// Options are what a screen is made of.
type Options struct {
	Source  Source
	Control Controls // nil: nothing can be changed
	// ServerText and AgentText are the end of what one has written, as lines. They may be slow.
	ServerText func(s overview.Server) (string, error)
	AgentText  func(a overview.Agent) (string, error)
	// Attach is the program that joins the terminal of an agent, with its stderr. nil: it cannot be joined here.
	Attach  func(a overview.Agent) *exec.Cmd
	Colour  bool // false: bold and reversed only
	In, Out *os.File
}

// Run shows the screen until the person leaves, or ctx ends.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	news, stop := o.Source.Listen()
	defer stop()
	profile := colorprofile.ANSI
	if !o.Colour {
		profile = colorprofile.ASCII
	}
	m := newModel(ctx, o, news)
	program := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithColorProfile(profile), tea.WithFPS(framesMax))
	_, err := program.Run()
	if err == nil || ctx.Err() != nil || errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	return fmt.Errorf("terminal: %w", err)
}
