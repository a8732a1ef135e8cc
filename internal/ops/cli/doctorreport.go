package cli

import (
	"fmt"
	"io"

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
	for _, one := range [][2]string{{"project: ", s.Project}, {"", s.Problem}, {"hint: ", s.Hint}} {
		if one[1] != "" {
			fmt.Fprintf(w, "  %s%s\n", one[0], one[1])
		}
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

// printEra reports a server that clients of the legacy era cannot use. Modern clients fall back for a legacy server, so that
// one is not reported.
func (s *serverReport) printEra(w io.Writer) {
	if s.Era == mcp.Modern.String() && s.Only && !s.Wrapped {
		fmt.Fprintf(w, "\n%s: %s speaks the modern era of the protocol only: clients of the legacy one cannot use it; outlive in front of it would translate\n", s.Client, s.Name)
	}
}
