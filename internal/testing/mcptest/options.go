package mcptest

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// options are the flags of the scripted server. The zero value is a well-behaved legacy server.
type options struct {
	era, probe, versions           string
	slowStart, restartDelay, hold  time.Duration
	crashAfter, exitAfter          int
	exitCode, noStart              int
	page, stderrFlood              int
	failStartFile, starts, logPath string
	crashOn, crashOnce, lastLine   string
	toolsFile, name, instructions  string
	garbage, crlf, bom, pretty     bool
	idLast, idsFromZero, batchOut  bool
	ignoreTerm, ignoreEOF          bool
	noTools, strict, restartTools  bool
	noListChanged                  bool
}

// Usage lists every flag of the scripted server with its meaning.
func Usage() string {
	var b strings.Builder
	fs := flagSet(&options{}, &b)
	fs.PrintDefaults()
	return b.String()
}

func flagSet(o *options, w io.Writer) *flag.FlagSet {
	fs := flag.NewFlagSet("mcptest server", flag.ContinueOnError)
	fs.SetOutput(w)
	protocolFlags(fs, o)
	startFlags(fs, o)
	deathFlags(fs, o)
	outputFlags(fs, o)
	return fs
}

func protocolFlags(fs *flag.FlagSet, o *options) {
	fs.StringVar(&o.era, "era", "legacy", "which requests it understands: `legacy` (initialize), modern (_meta in each request) or dual")
	fs.StringVar(&o.probe, "probe", "", "what server/discover before initialize does: `ok` (default of modern and dual), error (default of legacy), silent, exit")
	fs.StringVar(&o.versions, "versions", strings.Join(legacyVersions, ","), "legacy protocol `versions` it speaks, oldest first")
	fs.StringVar(&o.name, "name", "mcptest", "`name` in serverInfo")
	fs.StringVar(&o.instructions, "instructions", "", "instructions `text`")
	fs.BoolVar(&o.noTools, "no-tools", false, "no tools capability; tools/list and tools/call answer -32601")
	fs.StringVar(&o.toolsFile, "tools-file", "", "read the tool list at start from `path`: a JSON array of built-in names and tool objects; a tool object with an unknown name echoes")
	fs.IntVar(&o.page, "page", 0, "at most `n` tools per tools/list page (0: all)")
	fs.BoolVar(&o.noListChanged, "no-list-changed", false, "do not declare listChanged")
	fs.BoolVar(&o.restartTools, "restart-tools", false, "has restart_server and verify_server_restarted of its own: writes .mcp_restart_marker to the current directory, answers, exits 42")
	fs.DurationVar(&o.restartDelay, "restart-delay", 500*time.Millisecond, "`time` between the answer of -restart-tools' restart_server and exit 42")
	fs.BoolVar(&o.strict, "strict", false, "exit 1 on a batch, on anything that is not a JSON-RPC message, on a blank around a line, on an odd id, on a second initialize; refuse requests before notifications/initialized; the first request locks the era")
}

func startFlags(fs *flag.FlagSet, o *options) {
	fs.DurationVar(&o.slowStart, "slow-start", 0, "read nothing for this `time` after the start")
	fs.StringVar(&o.failStartFile, "fail-start-file", "", "while `path` exists: two lines on stderr, then exit 3")
	fs.StringVar(&o.starts, "starts", "", "append the pid as a line to `path` at each start")
	fs.IntVar(&o.noStart, "no-start", 0, "the first `n` starts, counted in -starts, fail with two lines on stderr and exit 3")
	fs.StringVar(&o.logPath, "log", "", "append each line received to `path` as <pid> TAB <line>")
	fs.IntVar(&o.stderrFlood, "stderr-flood", 0, "write `n` bytes to stderr before the first line is read")
	fs.DurationVar(&o.hold, "hold-stdout", 0, "start a grandchild that keeps stdout and stderr open for this `time`")
}

func deathFlags(fs *flag.FlagSet, o *options) {
	fs.IntVar(&o.crashAfter, "crash-after", 0, "SIGKILL itself when the `n`th request arrives, before it runs")
	fs.StringVar(&o.crashOn, "crash-on", "", "SIGKILL itself when a request of `method` arrives, before it runs")
	fs.StringVar(&o.crashOnce, "crash-once", "", "-crash-after and -crash-on happen only in the process that could create `path`")
	fs.IntVar(&o.exitAfter, "exit-after", 0, "exit when the `n`th request is answered")
	fs.IntVar(&o.exitCode, "exit-code", 0, "exit `status` of -exit-after and of -probe exit")
	fs.StringVar(&o.lastLine, "last-line", "none", "what a crash leaves of the request's answer on stdout: `none`, half (cut in the middle), unterminated (whole, no newline), whole")
	fs.BoolVar(&o.ignoreTerm, "ignore-term", false, "ignore SIGTERM and SIGINT")
	fs.BoolVar(&o.ignoreEOF, "ignore-eof", false, "live on after stdin's EOF")
}

func outputFlags(fs *flag.FlagSet, o *options) {
	fs.BoolVar(&o.garbage, "garbage", false, "noise on stdout before each message: plain text, a pino JSON log line, an empty line, half a message")
	fs.BoolVar(&o.crlf, "crlf", false, "end lines with CR LF")
	fs.BoolVar(&o.bom, "bom", false, "begin stdout with a UTF-8 byte order mark")
	fs.BoolVar(&o.pretty, "pretty", false, "print answers over several indented lines")
	fs.BoolVar(&o.idLast, "id-last", false, "answers have result, jsonrpc, id in this order")
	fs.BoolVar(&o.idsFromZero, "ids-from-zero", false, "requests to the client have the ids 0, 1, …; otherwise strings unique to the process")
	fs.BoolVar(&o.batchOut, "batch-out", false, "wrap each answer into an array of one")
}

// parseOptions parses the flags; an error is printed to stderr and returned.
func parseOptions(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	fs := flagSet(o, stderr)
	if err := fs.Parse(args); err != nil {
		return nil, fmt.Errorf("parse flags: %w", err)
	}
	if err := o.check(fs.Args()); err != nil {
		fmt.Fprintln(stderr, "mcptest:", err)
		return nil, err
	}
	return o, nil
}

func (o *options) check(rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("no argument wanted, got %q", rest)
	}
	if o.probe == "" {
		o.probe = "ok"
		if o.era == "legacy" {
			o.probe = "error"
		}
	}
	for _, c := range []struct {
		flag, value string
		allowed     []string
	}{
		{"-era", o.era, []string{"legacy", "modern", "dual"}},
		{"-probe", o.probe, []string{"ok", "error", "silent", "exit"}},
		{"-last-line", o.lastLine, []string{"none", "half", "unterminated", "whole"}},
	} {
		if !slices.Contains(c.allowed, c.value) {
			return fmt.Errorf("%s is one of %s, not %q", c.flag, strings.Join(c.allowed, ", "), c.value)
		}
	}
	if o.noStart > 0 && o.starts == "" {
		return errors.New("-no-start counts in a file: give -starts PATH too")
	}
	return nil
}

func (o *options) legacy() bool { return o.era != "modern" }
func (o *options) modern() bool { return o.era != "legacy" }
