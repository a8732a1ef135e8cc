package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
)

// takes checks the number of arguments of a command. most -1: any number. The error says how the command is written.
func takes(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if most == 0 && cmd.HasSubCommands() {
			if len(args) == 0 {
				return nil
			}
			return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), instead(cmd, args[0], verbsOf(cmd), ""))
		}
		problem := ""
		switch over := len(args) - most; {
		case len(args) < least && least-len(args) == 1:
			problem = "an argument is missing"
		case len(args) < least:
			problem = fmt.Sprintf("%d arguments are missing", least-len(args))
		case most < 0 || over <= 0:
			return nil
		case over == 1:
			problem = fmt.Sprintf("one argument too many: %q", args[most])
		default:
			problem = fmt.Sprintf("%d arguments too many: %q …", over, args[most])
		}
		verb := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
		return fmt.Errorf("%s: %s; write it like: %s", verb, problem, strings.TrimSuffix(cmd.UseLine(), " [flags]"))
	}
}

// wantedValues say what a flag of a type takes.
var wantedValues = map[string]string{
	"int": "a whole number, such as 1", "duration": "a time with its unit, such as 30s or 5m", "bool": "true or false",
}

// verbsOf are the commands of a command that its help shows.
func verbsOf(cmd *cobra.Command) (verbs []string) {
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			verbs = append(verbs, sub.Name())
		}
	}
	return verbs
}

// insteadOf is what there is in place of a flag that 0.1.0 had; "": it had none of this name.
func insteadOf(verb, flag string) string {
	switch verb + " " + flag {
	case "outlive gateway replica", "outlive gateway core", "outlive gateway core-idle", "outlive gateway core-listen", "outlive gateway core-at", "outlive gateway core-secret-file":
		return "there are no replicas with a core any more, but several gateways that are equal: --peer-listen ADDRESS --peer-secret-file FILE, and sessions: fleet in the configuration"
	case "outlive monitor replay":
		return "outlive agent explain NAME says how an agent is judged, and why"
	case "outlive agent attach detach-keys":
		return "Ctrl-\\ leaves the terminal, whatever else is typed"
	case "outlive tap record":
		return "outlive tap NAME --json --bodies > FILE keeps the messages"
	case "outlive top follow":
		return "outlive watch goes on with what changes"
	case "outlive login use-device-code", "outlive gateway login use-device-code":
		return "leave it out: open the page in a browser on any machine, and paste the address at which it ends"
	case "outlive wrap gateway":
		return "outlive gateway -c COPY takes a copy of the client's file, which then names the gateway only"
	}
	return ""
}

// instead says what was probably meant by a word that cmd does not have, and where to look.
func instead(cmd *cobra.Command, word string, known []string, before string) string {
	if there := insteadOf(cmd.CommandPath(), word); there != "" {
		return ": " + there
	}
	if near := fileerror.Suggest(word, known, nil); near != "" {
		return fmt.Sprintf(": did you mean %s%s? See %s --help", before, near, cmd.CommandPath())
	}
	return fmt.Sprintf("; see %s --help", cmd.CommandPath())
}

// flagError says in words what a flag takes that was given something else, and which one was meant by one that there is not.
func flagError(cmd *cobra.Command, err error) error {
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var known []string
		cmd.Flags().VisitAll(func(fl *pflag.Flag) {
			if !fl.Hidden {
				known = append(known, fl.Name)
			}
		})
		return fmt.Errorf("%w%s", err, instead(cmd, missing.GetSpecifiedName(), known, "--"))
	}
	if empty, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		value, _ := pflag.UnquoteUsage(empty.GetFlag())
		return fmt.Errorf("--%s needs a value: write --%[1]s %s", empty.GetFlag().Name, strings.ToUpper(value))
	}
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	want, known := wantedValues[invalid.GetFlag().Value.Type()]
	if !known {
		return err
	}
	return fmt.Errorf("--%s %q: want %s", invalid.GetFlag().Name, invalid.GetValue(), want)
}

// completeWords lets a shell complete the flags that are one of a few words.
func completeWords(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(fl *pflag.Flag) {
		words := fl.Annotations[wordsOf]
		if fl.Name == "client" {
			words = clientNames()
		}
		if words != nil {
			// It fails only for a flag that there is not, or one that is completed already.
			_ = cmd.RegisterFlagCompletionFunc(fl.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
		}
	})
	for _, sub := range cmd.Commands() {
		completeWords(sub)
	}
}

// completeRunning offers the names of what runs as the one argument of a command.
func completeRunning(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, err := askAll(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp // there is nobody to tell
	}
	var names []string
	several := map[string]int{}
	for _, r := range all {
		several[r.Name]++
	}
	for _, r := range all {
		name := r.Name
		if several[name] > 1 {
			name = r.Label()
		}
		names = append(names, name)
		for _, server := range r.status.ServerNames() {
			names = append(names, name+"/"+server)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
