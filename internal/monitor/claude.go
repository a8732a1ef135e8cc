package monitor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"

	"github.com/outlive-mcp/outlive/internal/piv"
)

// claudeSession is what Claude Code (2.1.329, measured) writes of each session to sessions/<pid>.json. The file is not
// documented: what is missing or different is no evidence.
type claudeSession struct {
	PID        int    `json:"pid"`
	Dir        string `json:"cwd"`
	ProcStart  string `json:"procStart"` // as in /proc/PID/stat
	Status     string `json:"status"`    // idle, busy, waiting
	WaitingFor string `json:"waitingFor"`
}

// sessionsLooked bounds how many files are read.
const sessionsLooked = 256

// claudeSigns are the sessions in a project's directory that wait for a human (rules W1 and W2). The file outlives a
// killed session, so the process must still be the one that wrote it.
func claudeSigns(dir, project string, procs processes) []Sign {
	if dir == "" {
		return nil
	}
	names, err := filepath.Glob(filepath.Join(dir, "sessions", "*.json"))
	if err != nil {
		return nil
	}
	var signs []Sign
	for _, name := range names[:min(len(names), sessionsLooked)] {
		text, err := piv.ReadFile(name)
		if err != nil {
			continue
		}
		if s, ok := parseSession(text); ok && within(s.Dir, project) && s.lives(procs) {
			signs = append(signs, s.sign())
		}
	}
	return signs
}

// parseSession reads a session that waits; ok is false for any other.
func parseSession(text []byte) (s claudeSession, ok bool) {
	if json.Unmarshal(text, &s) != nil {
		return claudeSession{}, false
	}
	return s, s.Status == "waiting" && s.PID > 0 && filepath.IsAbs(s.Dir)
}

func (s claudeSession) lives(procs processes) bool {
	p, err := procs.Look(s.PID)
	return err == nil && strconv.FormatUint(p.Start, 10) == s.ProcStart
}

func (s claudeSession) sign() Sign {
	text := "Claude Code (PID " + strconv.Itoa(s.PID) + ") waits for: " + s.WaitingFor
	if s.WaitingFor == "permission prompt" {
		return Sign{AsksPermission, text}
	}
	return Sign{AsksQuestion, text}
}

// ClaudeDir is where Claude Code keeps its sessions: what CLAUDE_CONFIG_DIR says, or .claude in the home directory.
func ClaudeDir(configured string) string {
	if configured != "" {
		return configured
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".claude")
}
