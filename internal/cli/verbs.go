package cli

import "github.com/spf13/cobra"

func newDemo(io streams) *cobra.Command { return &cobra.Command{Use: "demo"} }
