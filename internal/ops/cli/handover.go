package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/line/proxy"
	"github.com/outlive-mcp/outlive/internal/protocol/session"
)

// handoverVar is the environment variable that tells a new image the descriptor of what its predecessor left.
const handoverVar = "OUTLIVE_HANDOVER"

// tryPatience is how long a program may take to say that it can take over.
const tryPatience = 5 * time.Second

// legacy is what an image of this program leaves to the next one in the same process.
type legacy struct {
	PID      int // of both
	Version  string
	Started  time.Time     // the first image
	Begun    time.Time     // the upgrade
	Upgrades int           // including this one
	Proxy    *proxy.Saved  // of `outlive run`
	Gateway  *savedGateway // of `outlive gateway`
}

// ability is what a program answers that is asked whether it could take over.
type ability struct {
	Format  int    `json:"handover_format"`
	Version string `json:"version"`
}

// askedVar in the environment makes `outlive run …` and `outlive gateway …` check its command line, print its ability and end.
const askedVar = "OUTLIVE_HANDOVER_ASKED"

// handoverVerb asks a program whether it knows what askedVar means.
const handoverVerb = "handover-ability"

func newHandoverAbility(io streams) *cobra.Command {
	return &cobra.Command{
		Use:    handoverVerb,
		Short:  "Say whether this program could take over from a running one (outlive upgrade asks this)",
		Hidden: true,
		Args:   takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			return json.NewEncoder(io.out).Encode(ability{session.RecordVersion, version()})
		},
	}
}

// asked reports whether this is such a run, and answers it.
func asked(out io.Writer) (bool, error) {
	if os.Getenv(askedVar) == "" {
		return false, nil
	}
	return true, json.NewEncoder(out).Encode(ability{session.RecordVersion, version()})
}

// tryProgram asks the program at path whether it could take over from us, with our own command line args. First it must
// know the question: an older version would take the command line for an order.
func tryProgram(ctx context.Context, path string, args []string) error {
	ctx, cancel := context.WithTimeout(ctx, tryPatience)
	defer cancel()
	for _, argv := range [][]string{{handoverVerb}, args} {
		var out, problem bytes.Buffer
		cmd := exec.CommandContext(ctx, path, argv...)
		cmd.Env = append(os.Environ(), askedVar+"=1")
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &problem, time.Second
		if err := cmd.Run(); err != nil {
			first, _, _ := strings.Cut(strings.TrimSpace(problem.String()), "\n")
			return fmt.Errorf("%s does not run: %w%s", path, errors.Join(err, ctx.Err()), prefixed(": ", first))
		}
		var a ability
		if err := json.Unmarshal(out.Bytes(), &a); err != nil {
			return fmt.Errorf("%s does not say that it can take over: %w", path, err)
		}
		if a.Format != session.RecordVersion {
			return fmt.Errorf("%s (outlive %s) takes over sessions of version %d only, this one (%s) has version %d: restart the client instead",
				path, a.Version, a.Format, version(), session.RecordVersion)
		}
	}
	return nil
}

// programPath is where the running program is on disk, to be found there again when another version has taken its
// place. A symbolic link by which it was started is kept: that is what an installer changes. Call it at the start.
func programPath() (string, error) {
	real, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find our own program: %w", err)
	}
	named, err := exec.LookPath(os.Args[0])
	if err == nil {
		named, err = filepath.Abs(named)
	}
	if err != nil || !sameFile(named, real) {
		return real, nil
	}
	return named, nil
}

// sameFile reports whether two paths are of one file.
func sameFile(a, b string) bool {
	is, err := os.Stat(a)
	other, otherErr := os.Stat(b)
	return err == nil && otherErr == nil && os.SameFile(is, other)
}

// execute lets the program at path take our place, with what we leave, and the descriptors that belong to it. It returns only if that
// fails.
func execute(path string, l *legacy, fds []int) error {
	f, err := documentFile()
	if err != nil {
		return fmt.Errorf("keep what is to be handed over: %w", err)
	}
	defer f.Close()
	if err = json.NewEncoder(f).Encode(l); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("keep what is to be handed over: %w", err)
	}
	fd := int(f.Fd())
	env := append(withoutVars(os.Environ(), []string{handoverVar}), fmt.Sprintf("%s=%d", handoverVar, fd))
	return replaceImage(path, env, append(fds, fd))
}

// predecessor returns what an earlier image in this process has left, nil if this is the first. It is nobody else's: the
// variable is removed, and one that came from another process is not believed.
func predecessor() (*legacy, error) {
	text := os.Getenv(handoverVar)
	if text == "" {
		return nil, nil
	}
	if err := os.Unsetenv(handoverVar); err != nil {
		return nil, fmt.Errorf("take over: %w", err)
	}
	f, err := inheritedFile(text)
	if err != nil {
		return nil, fmt.Errorf("take over: %w", err)
	}
	defer f.Close()
	var l legacy
	if err := json.NewDecoder(f).Decode(&l); err != nil {
		return nil, fmt.Errorf("take over: %w", err)
	}
	if l.PID != os.Getpid() {
		return nil, nil
	}
	if l.Gateway == nil && (l.Proxy == nil || l.Proxy.Session.Format != session.RecordVersion) {
		return nil, fmt.Errorf("take over: outlive %s has left no session of version %d", l.Version, session.RecordVersion)
	}
	return &l, nil
}
