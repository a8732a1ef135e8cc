package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/fleet/judge"
	"github.com/outlive-mcp/outlive/internal/fleet/sessions"
	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/view/fleetsocket"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

const (
	bodyLimit = 1 << 20 // bytes of a request
	goodbye   = time.Second
)

// listen serves those who look from this machine until ctx ends.
func (m *member) listen(ctx context.Context, listener net.Listener) {
	s := http.Server{Handler: m.routes(), ReadHeaderTimeout: askLimit, BaseContext: func(net.Listener) context.Context { return ctx }}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(listener) // it ends below
	}()
	<-ctx.Done()
	last, end := context.WithTimeout(context.Background(), goodbye)
	defer end()
	if s.Shutdown(last) != nil {
		_ = s.Close()
	}
	<-ended
	m.view.close()
}

func (m *member) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(m.view.status(r.Context())) // who has asked may be gone
	})
	mux.HandleFunc("POST /v1/leave", func(w http.ResponseWriter, r *http.Request) {
		if err := m.leave(context.WithoutCancel(r.Context())); err != nil { // it goes on when who has asked is gone
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("POST /v1/share", func(w http.ResponseWriter, r *http.Request) {
		var list []fleetsocket.Trouble
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyLimit)).Decode(&list); err != nil {
			http.Error(w, "bad request: "+err.Error(), http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(m.judging.share(list)) // who has asked may be gone
	})
	mux.HandleFunc("POST /v1/entry", func(w http.ResponseWriter, r *http.Request) {
		var e fleetsocket.Entry
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyLimit)).Decode(&e); err != nil {
			http.Error(w, "bad request: "+err.Error(), http.StatusBadRequest)
			return
		}
		if !sessions.Own(e.Key) {
			http.Error(w, fmt.Sprintf("bad request: %q is no key of a gateway's sessions", e.Key), http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(doEntry(r.Context(), m.engine, e)) // who has asked may be gone
	})
	mux.HandleFunc("GET /v1/follow", func(w http.ResponseWriter, r *http.Request) {
		out := newLines(w)
		if e := m.view.follow(r.Context(), r.URL.Query().Get("host"), r.URL.Query().Get("after"), out.line); e != nil {
			_ = out.line(fleetsocket.EndedLine(e)) // who has asked may be gone
		}
	})
	mux.HandleFunc("POST /v1/run", func(w http.ResponseWriter, r *http.Request) {
		var c fleetsocket.Command
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyLimit)).Decode(&c); err != nil {
			http.Error(w, "bad request: "+err.Error(), http.StatusBadRequest)
			return
		}
		out := newLines(w)
		m.ask(r.Context(), c, func(f fleetsocket.Frame) error { return out.json(f) })
	})
	return mux
}

// lines writes lines, each at once.
type lines struct {
	w http.ResponseWriter
	c *http.ResponseController
}

func newLines(w http.ResponseWriter) lines {
	l := lines{w, http.NewResponseController(w)}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	_ = l.c.Flush() // who has asked may be gone
	return l
}

func (l lines) line(text []byte) error {
	if _, err := l.w.Write(append(text[:len(text):len(text)], '\n')); err != nil {
		return err
	}
	return l.c.Flush()
}

func (l lines) json(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return l.line(text)
}

func newStatus(s *settings) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "status", Short: "Show the machines of the fleet", Args: cobra.NoArgs,
		Long: `Show the machines of the fleet that this one has joined, and when each was heard last, by the clock here: by its own one where
it is not known yet how far that is ahead.

EXIT STATUS
  0  shown, also when machines are silent: --json says which
  1  this machine is in no fleet, its member does not run, it has no connection to the hub, or nothing is written there`,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.showStatus(cmd.Context(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func (s *settings) showStatus(ctx context.Context, asJSON bool) error {
	ctx, cancel := context.WithTimeout(ctx, 2*askLimit)
	defer cancel()
	st, err := fleetsocket.Client{Path: s.socket}.Status(ctx)
	if err != nil {
		if _, here := os.Stat(s.tokensPath()); here == nil {
			return fmt.Errorf("%w; the hub here shows its machines to those that have joined: let this one join, too. Tokens: outlive fleet token list", err)
		}
		return err
	}
	var lost error
	if st.Why != "" {
		what := map[bool]string{true: "nothing is written since ", false: "no connection to the hub since "}[st.Connected]
		lost = errors.New(what + st.Since.Local().Format(time.DateTime) + ": " + st.Why)
	}
	if asJSON {
		if err := json.NewEncoder(os.Stdout).Encode(st); err != nil {
			return err
		}
		return lost
	}
	out := logline.NewScreen(os.Stdout)
	fmt.Fprintf(out, "This machine is %s in the fleet of %s.\n", st.Host, st.Hub)
	if st.Partial && lost == nil {
		fmt.Fprintln(out, "The hub has not told everything in time: machines and incidents may be missing. Try again.")
	}
	if len(st.Hosts) == 0 {
		fmt.Fprintln(out, "Nothing is known of any machine yet.")
		return lost
	}
	clocks, err := showHosts(out, st.Hosts)
	if err != nil {
		return err
	}
	for _, text := range clocks {
		fmt.Fprintln(out, text)
	}
	for _, h := range st.Hosts {
		if h.State == fleetsocket.Unknown && lost == nil {
			fmt.Fprintln(out, h.Name+": "+h.Why)
		}
	}
	if why := untold(st, s.release); why != "" {
		fmt.Fprintln(out, "Nobody can be told of what happens here: "+why)
	}
	if lost != nil && len(st.Cases) > 0 {
		fmt.Fprintln(out, "\nWhat follows was known at "+st.Since.Local().Format(time.DateTime)+", and may be over by now.")
	}
	for _, c := range st.Cases {
		fmt.Fprintln(out, caseLine(c, slices.ContainsFunc(st.Hosts, func(h fleetsocket.Host) bool {
			return h.Name == c.Subject && h.State == fleetsocket.Connected
		})))
	}
	return lost
}

// untold is why people cannot be told of anything; "": they can, or that is not known, as from a member of another release, which goes on from
// before an upgrade.
func untold(st fleetsocket.Status, release string) string {
	if st.Why != "" || st.Partial || st.Version != release {
		return ""
	}
	why := "no machine of the fleet runs outlive monitor with a channel."
	for _, h := range st.Hosts {
		switch {
		case h.Tells && h.State == fleetsocket.Connected:
			return ""
		case h.Tells:
			why = "no machine whose outlive monitor has a channel is connected."
		}
	}
	return why
}

// showHosts shows the machines of a fleet, and returns what there is to say of their clocks.
func showHosts(out io.Writer, list []fleetsocket.Host) (clocks []string, err error) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "HOST\tSTATE\tHEARD\tSERVERS\tAGENTS\tINCIDENTS\tVERSION")
	for _, h := range list {
		heard, ahead := "never", time.Duration(h.ClockMS)*time.Millisecond
		if !h.Heard.IsZero() {
			heard = h.Heard.Add(-ahead).Local().Format(time.DateTime)
		}
		if text := overview.ClockText(ahead); text != "" {
			clocks = append(clocks, h.Name+": "+text)
		}
		state := h.State
		if h.How != "" {
			state += ", " + h.How
		}
		row := []string{h.Name, state, heard, strconv.Itoa(h.Servers), strconv.Itoa(h.Agents), strconv.Itoa(h.Incidents), h.Version}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return clocks, t.Flush()
}

// caseLine is a case for people. heard says that its machine is there again.
func caseLine(c fleetsocket.Case, heard bool) string {
	text := "\nThe machine " + c.Subject + " is " + cmp.Or(c.How, fleetsocket.Silent)
	switch judge.Kind(c.Kind) {
	case judge.Silent:
		if heard {
			text = "\nThe machine " + c.Subject + " is heard again, which closes this when it has been for a minute. It was " + cmp.Or(c.How, fleetsocket.Silent)
		}
	case judge.Machines:
		text = "\nThe machines " + strings.Join(c.Agents, ", ") + " are " + cmp.Or(c.How, fleetsocket.Silent)
	case judge.Shared:
		text = "\n" + causeName(c.Subject) + " stops " + strings.Join(c.Agents, ", ")
	}
	if !c.Since.IsZero() {
		text += " since " + c.Since.Local().Format(time.DateTime)
	}
	switch c.State {
	case fleetsocket.Told:
		return text + "; people were told by " + cmp.Or(c.By, "a machine that has it") + " (outlive ack --fleet)."
	case fleetsocket.Telling:
		return text + "; people are being told by " + c.By + "."
	case fleetsocket.Shown:
		return text + "; " + c.By + " shows it (outlive ack --fleet), and nobody could be told: its monitor had no channel."
	}
	return text + "; nobody was told of it yet."
}
