package monitor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/outlive-mcp/outlive/internal/piv"
)

// Finding is what a monitor would do about one project.
type Finding struct {
	Project piv.Project
	Verdict Verdict
	Action  Action
}

// String is one line for people.
func (f Finding) String() string {
	s := fmt.Sprintf("%s (Phase %s): ", f.Project.Name, piv.PhaseName(f.Project.ResumePhase()))
	if f.Verdict.Stall == noStall {
		return s + f.Verdict.Class + ": " + f.Verdict.Details
	}
	s += fmt.Sprintf("%s [%s %s, %s confidence]: %s -> %s", f.Verdict.Stall, f.Verdict.Rule, f.Verdict.Class, f.Verdict.Confidence, f.Verdict.Details, f.Action.Kind)
	if f.Action.Kind == Skip {
		return s + " (" + f.Action.Reason + ")"
	}
	return s + fmt.Sprintf(" (%d of %d restarts used)", f.Action.Count, f.Action.Max)
}

// Preview says what a cycle would do now (--dry-run), and does nothing: no signal, no message, no file is touched, and
// a monitor may run beside it. lost says why the registry cannot be used; "" when it can.
func Preview(ctx context.Context, opts Options) (list []Finding, lost string, err error) {
	opts = opts.withDefaults()
	dir, err := os.MkdirTemp("", "outlive-monitor-")
	if err != nil {
		return nil, "", fmt.Errorf("dry run: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	// What is known from earlier cycles is looked at in a copy.
	copied := filepath.Join(dir, "monitor.db")
	for _, suffix := range []string{"", "-wal"} {
		if err := copyFile(opts.Database()+suffix, copied+suffix); err != nil {
			return nil, "", fmt.Errorf("dry run: %w", err)
		}
	}
	m := &Monitor{opts: opts, posted: make(chan struct{}, 1)}
	if err := m.load(ctx, copied); err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, m.store.close()) }()
	r, err := m.begin(ctx)
	if err != nil {
		return nil, "", err
	}
	for _, p := range r.projects() {
		e, _ := r.setting.gather(p, r.known(p))
		v := Classify(e, opts.policy())
		list = append(list, Finding{p, v, Decide(v, p.ResumePhase(), r.history(p, v), opts.policy(), r.now.Wall)})
	}
	return list, r.page.Lost, nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
