package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/nats-io/nkeys"
	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/outlive-fleet/natsengine"
)

func newNATSUser(*settings) *cobra.Command {
	var file string
	var makesTables bool
	cmd := &cobra.Command{
		Use:   "nats-user NAME",
		Short: "Make a user of your own NATS servers for the machine that is to be called NAME",
		Long: `Make a user of your own NATS servers for the machine that is to be called NAME. Its secret is written to a file, which that machine joins
with (outlive fleet join --nats URL --creds FILE --name NAME); what the servers have to know of it is printed: a line for "users" of an
account with JetStream in their configuration. It may do what a machine with a token of a hub may, and nothing else. To revoke it, delete
the line and have the servers read their configuration again.

Machines may not make the fleet's tables. The first user needs --makes-tables, which leaves out all restrictions.`,
		Example: "  outlive fleet nats-user build1 --file build1.nk",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if file == "" {
				file = args[0] + ".nk"
			}
			return makeNATSUser(args[0], file, makesTables)
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&file, "file", "", "the new `FILE` for the secret; default: NAME.nk")
	fl.BoolVar(&makesTables, "makes-tables", false, "a user that may do everything in its account")
	return cmd
}

func makeNATSUser(name, file string, makesTables bool) error {
	if err := checkName(name); err != nil {
		return wrong("%v", err)
	}
	user, err := nkeys.CreateUser()
	if err != nil {
		return err
	}
	seed, err := user.Seed()
	if err != nil {
		return err
	}
	public, err := user.PublicKey()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s\n", seed)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	rights := ""
	if !makesTables {
		publish, subscribe := natsengine.Rights(name)
		rights = fmt.Sprintf(", permissions: {publish: {allow: [%s]}, subscribe: {allow: [%s]}}",
			quotedList(publish), quotedList(subscribe))
	}
	_, err = fmt.Printf("{nkey: %s%s} # %s\n", public, rights, name)
	return err
}

func quotedList(all []string) string {
	quoted := make([]string, len(all))
	for n, one := range all {
		quoted[n] = strconv.Quote(one)
	}
	return strings.Join(quoted, ", ")
}
