package cli

import (
	"fmt"
	"io"
	"slices"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// bridgeOff reports whether outlive, which stands in front of a server with these arguments, is told not to translate
// between the eras of the protocol.
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

// bridgeOf is what becomes of clients of the era that a server does not speak: "auto", outlive in front of it translates
// for them; "off", it is told not to; "none", there is no outlive. "" for a server of both eras.
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

// printEra tells of a server that many clients cannot use by themselves. Servers of the legacy era are the rule, and
// clients of the modern one fall back for them, so nothing is said of those.
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
