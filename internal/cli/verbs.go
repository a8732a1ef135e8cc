package cli

import "github.com/spf13/cobra"

func newStatus(io streams) *cobra.Command  { return &cobra.Command{Use: "status"} }
func newRestart(io streams) *cobra.Command { return &cobra.Command{Use: "restart"} }
func newLogs(io streams) *cobra.Command    { return &cobra.Command{Use: "logs"} }
func newDemo(io streams) *cobra.Command    { return &cobra.Command{Use: "demo"} }
