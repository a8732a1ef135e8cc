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
)

// Policy is what the user has decided beforehand. The zero value asks nobody and allows nothing.
type Policy struct {
	// Ask sends permission requests to the program that announced itself, as --ask does.
	Ask bool `json:"ask"`
	// Allow names tools that need no answer, exactly as the CLI names them. Only those that read are taken: of
	// Claude Code Glob, Grep, LS, NotebookRead and Read. They may still read what is secret.
	Allow []string `json:"allow"`
}

// PolicyPath is the user's policy: JSON, in which comments may stand.
func PolicyPath(dir string) string { return filepath.Join(dir, "policy.json") }

// ReadPolicy reads the user's policy; no file is the zero one. One with anything wrong in it counts for nothing, and the
// error says what is wrong.
func ReadPolicy(dir string) (Policy, error) {
	text, err := readRegular(PolicyPath(dir), maxFile)
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

// allows reports whether the policy lets a tool run without an answer.
func (p Policy) allows(v *Vendor, tool string) bool {
	return slices.Contains(p.Allow, tool) && slices.Contains(v.ReadOnly, tool)
}

// readOnlyTools are all tools that can be allowed beforehand, and whose they are.
func readOnlyTools() string {
	var all []string
	for _, v := range Vendors() {
		if len(v.ReadOnly) > 0 {
			all = append(all, v.Title+"'s "+strings.Join(v.ReadOnly, ", "))
		}
	}
	return strings.Join(all, "; ")
}

// questions are tools whose permission dialog is a question to the user: to allow it would be to answer it.
var questions = []string{"AskUserQuestion", "ExitPlanMode", "EnterPlanMode", "request_user_input"}

// isQuestion reports whether a tool asks the user something other than whether it may run.
func isQuestion(tool string) bool { return slices.Contains(questions, tool) }
