package top

import (
	"context"
	"errors"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/outlive-mcp/outlive/internal/view/terminal"
)

const (
	tickEvery = time.Second     // how often the age of what is shown is told, when nothing happens
	staleFrom = 5 * time.Second // from this age on the screen says that it is old
	framesMax = 20              // in one second: enough for people, and little over a slow link
)

// Run shows the screen until the person leaves, or ctx ends.
func Run(ctx context.Context, o terminal.Options) error {
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
