package cli

import (
	"fmt"
	"io"
	"slices"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

func (d *diagnosis) failures() int {
	n := 0
	for _, f := range d.Files {
		if f.Problem != "" {
			n++
		}
	}
	for _, s := range d.Servers {
		if s.State == "failed" {
			n++
		}
	}
	return n
}

// printClients shows the clients' files and servers.
func (d *diagnosis) printClients(w io.Writer) error {
	if len(d.Files) == 0 {
		_, err := fmt.Fprintln(w, "No AI client's configuration was found.")
		return err
	}
	for _, f := range d.Files {
		if f.Problem != "" {
			fmt.Fprintf(w, "%s: %s: %s\n", f.Client, f.Path, f.Problem)
		}
	}
	if len(d.Servers) == 0 {
		_, err := fmt.Fprintln(w, "The AI clients' configurations name no server.")
		return err
	}
	var rows [][]string
	for _, s := range d.Servers {
		ready, era := "-", "-"
		if s.Era != "" {
			ready, era = fmt.Sprintf("%d ms", s.ReadyMS), s.Era
		}
		rows = append(rows, []string{s.Client, logline.Printable(s.Name), s.State, era, ready, s.inFront()})
	}
	if err := printTable(w, []string{"CLIENT", "SERVER", "STATE", "ERA", "READY", "OUTLIVE"}, rows); err != nil {
		return err
	}
	bare, listed := 0, false
	for _, s := range d.Servers {
		s.printEra(w)
		s.printDetails(w)
		if s.inFront() == "no" {
			bare++
		}
		listed = listed || s.State == notStarted
	}
	if bare > 0 {
		fmt.Fprintf(w, "\n%s would stay dead after a crash: outlive wrap puts outlive in front (--dry-run shows the change).\n", counted(bare, "server"))
	}
	if listed {
		fmt.Fprintln(w, "\nServers of this project's files were not started: outlive doctor --project . starts them.")
	}
	return nil
}

// inFront says whether outlive stands in front of the server: "-" where it cannot.
func (s *serverReport) inFront() string {
	switch {
	case s.State == "gateway":
		return "gateway"
	case s.Wrapped:
		return "wrapped"
	case s.State == "remote" || len(s.Command) == 0:
		return "-"
	}
	return "no"
}

// printDetails tells what the table has no room for.
func (s *serverReport) printDetails(w io.Writer) {
	if s.Problem == "" && len(s.Warnings) == 0 && s.Installer == "" {
		return
	}
	fmt.Fprintf(w, "\n%s: %s, in %s\n", s.Client, s.Name, s.Path)
	if s.Project != "" {
		fmt.Fprintf(w, "  project: %s\n", s.Project)
	}
	if s.Problem != "" {
		fmt.Fprintf(w, "  %s\n", s.Problem)
	}
	if s.Hint != "" {
		fmt.Fprintf(w, "  hint: %s\n", s.Hint)
	}
	if s.Installer != "" && s.Problem == "" {
		fmt.Fprintf(w, "  %s installed it first; it was waited for\n", s.Installer)
	}
	for _, warning := range s.Warnings {
		fmt.Fprintf(w, "  %s\n", warning)
	}
	for _, line := range s.Stderr {
		fmt.Fprintf(w, "  stderr: %s\n", line)
	}
}

// bridgeOff reports whether the arguments of the outlive in front of a server switch translation off.
func bridgeOff(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	for i, arg := range args {
		if arg == "--bridge=off" || arg == "--bridge" && i+1 < len(args) && args[i+1] == "off" {
			return true
		}
	}
	return false
}

// bridgeOf says how clients of an era that the server does not speak are served: "auto", outlive in front of it
// translates; "off", it is told not to; "none", there is no outlive. "" for a server of both eras.
func (r *serverReport) bridgeOf() string {
	switch {
	case !r.Only:
		return ""
	case !r.Wrapped:
		return "none"
	case r.off:
		return "off"
	}
	return "auto"
}

// printEra reports a server that many clients cannot use directly. Legacy servers are common, and modern clients fall
// back for them, so they are not reported.
func (r *serverReport) printEra(w io.Writer) {
	if r.Era != mcp.Modern.String() || !r.Only {
		return
	}
	says := map[string]string{
		"auto": "outlive translates for clients of the legacy one",
		"off":  "clients of the legacy one cannot use it: outlive in front of it has --bridge off",
		"none": "clients of the legacy one cannot use it: outlive in front of it would translate",
	}[r.Bridge]
	fmt.Fprintf(w, "\n%s: %s speaks the modern era of the protocol only; %s\n", r.Client, r.Name, says)
}
