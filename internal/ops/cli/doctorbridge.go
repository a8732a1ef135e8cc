package cli

import (
	"fmt"
	"io"
	"slices"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

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
