package cli

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

func newVersion(io streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show which outlive this is, and what it was built from",
		Args:  takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(io.out, "outlive %s (%s)\n", version(), strings.Join(buildDetails(), ", "))
			return err
		},
	}
}

// buildDetails are the commit and its date, if they are known, the compiler, and the system that this program is for.
func buildDetails() (all []string) {
	if info, ok := debug.ReadBuildInfo(); ok {
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		if commit := settings["vcs.revision"]; commit != "" {
			if settings["vcs.modified"] == "true" {
				commit += " with changes"
			}
			all = append(all, "commit "+commit)
		}
		if date := settings["vcs.time"]; date != "" {
			all = append(all, date)
		}
		all = append(all, info.GoVersion, settings["GOOS"]+"/"+settings["GOARCH"])
	}
	return all
}

// version is what the build knows of itself: the module's version, or the commit it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				v += "-" + s.Value[:12]
			}
		}
	}
	return v
}
