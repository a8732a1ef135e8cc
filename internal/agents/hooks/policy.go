package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// Policy is what the user has decided in advance. With the zero value no request is passed on or allowed.
type Policy struct {
	// Ask sends permission requests to the program that has called [Announce], like --ask.
	Ask bool `json:"ask"`
	// Allow names tools that are allowed without asking, exactly as the CLI names them. Only tools that read are
	// accepted, for Claude Code Glob, Grep, LS, NotebookRead and Read. They may read secrets, too.
	Allow []string `json:"allow"`
}

// PolicyPath is the user's policy: JSON with comments.
func PolicyPath(dir string) string { return filepath.Join(dir, "policy.json") }

// ReadPolicy reads the user's policy; without a file it is the zero value. A file with any mistake is ignored as a
// whole, and the error says what is wrong.
func ReadPolicy(dir string) (Policy, error) {
	text, err := atomicfile.ReadPlain(PolicyPath(dir), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Policy{}, nil
	}
	if err != nil {
		return Policy{}, fmt.Errorf("policy for hooks: %w", err)
	}
	p, err := parsePolicy(text)
	if err != nil {
		return Policy{}, fmt.Errorf("policy for hooks %s: %w", PolicyPath(dir), err)
	}
	return p, nil
}

func parsePolicy(text []byte) (p Policy, err error) {
	plain, err := hujson.Standardize(bytes.TrimPrefix(text, []byte(byteOrderMark)))
	if err != nil {
		return Policy{}, err
	}
	d := json.NewDecoder(bytes.NewReader(plain))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return Policy{}, err
	}
	for _, tool := range p.Allow {
		known := slices.ContainsFunc(Vendors(), func(v *Vendor) bool { return slices.Contains(v.ReadOnly, tool) })
		if !known {
			return Policy{}, fmt.Errorf("allow: %q is not a tool that only reads; those are %s", tool, readOnlyTools())
		}
	}
	return p, nil
}

// allows reports whether the policy allows a tool without asking.
func (p Policy) allows(v *Vendor, tool string) bool {
	return slices.Contains(p.Allow, tool) && slices.Contains(v.ReadOnly, tool)
}

// readOnlyTools lists all tools that can be allowed in advance, with their CLIs.
func readOnlyTools() string {
	var all []string
	for _, v := range Vendors() {
		if len(v.ReadOnly) > 0 {
			all = append(all, v.Title+"'s "+strings.Join(v.ReadOnly, ", "))
		}
	}
	return strings.Join(all, "; ")
}

// questions are tools whose permission dialog is itself a question to the user: allowing them would answer it.
var questions = []string{"AskUserQuestion", "ExitPlanMode", "EnterPlanMode", "request_user_input"}

// isQuestion reports whether a tool asks the user something other than whether it may run.
func isQuestion(tool string) bool { return slices.Contains(questions, tool) }
