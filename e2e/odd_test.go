package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// oddLane is a way to an odd server through outlive.
type oddLane struct {
	name string
	on   string // transports of the server
	// target is what a client connects to: a command line, or a URL.
	target func(t *testing.T, w *workspace, server []string) []string
}

// byRun is the lane of outlive run: a command stands behind --, a URL by itself.
func byRun(flags ...string) func(*testing.T, *workspace, []string) []string {
	return func(_ *testing.T, _ *workspace, server []string) []string {
		argv := append([]string{"env", "OUTLIVE_SHARED_IDLE=2s", tools.outlive, "run"}, flags...)
		if strings.HasPrefix(server[0], "http") {
			return append(argv, server...)
		}
		return append(append(argv, "--"), server...)
	}
}

// oddConfig is the configuration of a gateway that has the server alone, and shows its tools by their own names.
func oddConfig(t *testing.T, w *workspace, argv []string) string {
	one := backend{name: "odd", server: server{argv: argv}}
	if strings.HasPrefix(argv[0], "http") {
		one = backend{name: "odd", keys: []string{"url: " + quoted(argv[0])}}
	}
	return w.gatewayFile(t, []string{"names: never"}, one)
}

func byStdioGateway(t *testing.T, w *workspace, server []string) []string {
	return w.stdioGateway(oddConfig(t, w, server))
}

func byGateway(t *testing.T, w *workspace, server []string) []string {
	return []string{w.listen(t, oddConfig(t, w, server)).url}
}

var oddLanes = []oddLane{
	{"run", "stdio http sse", byRun()},
	{"run --shared", "stdio", byRun("--shared")},
	{"gateway on stdio", "stdio http sse", byStdioGateway},
	{"gateway on HTTP", "stdio http sse", byGateway},
}

// oddClients are those of the SDKs that read leniently in other ways each. The raw client is the fourth, where there is stdio.
var oddClients = []string{"ts1", "py-legacy", "go-legacy"}

// oddCell is a form on a lane with a client: "" is the raw one.
type oddCell struct {
	oddForm
	lane   oddLane
	client string
}

// oddCells are the cells of the i-th form: pairwise, each of its lanes and each client once.
func oddCells(i int, f oddForm) (all []oddCell) {
	sdk := i / 3
	for _, lane := range oddLanes {
		if !strings.Contains(lane.on, f.transport) || f.is("lost") && lane.name == "gateway on HTTP" {
			continue // two requests at once may overtake each other over HTTP, and the first that arrives is the lost one
		}
		switch {
		case f.is("raw"), f.transport == "stdio" && lane.name == oddLanes[i%3].name:
			all = append(all, oddCell{f, lane, ""})
		default:
			all = append(all, oddCell{f, lane, oddClients[sdk%3]})
			sdk++
		}
	}
	return all
}

// oddWeb is the process of all servers that are reached by URL. One is enough: a start of Python costs more than most forms.
type oddWeb struct {
	mu  sync.Mutex
	in  io.WriteCloser
	out *bufio.Reader
}

func startOddWeb(t *testing.T) *oddWeb {
	t.Helper()
	argv := oddServerArgv("web")
	cmd := exec.Command(argv[0], argv[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
	return &oddWeb{in: in, out: bufio.NewReader(out)}
}

// start starts a server of the form, which ends with the test.
func (o *oddWeb) start(t *testing.T, f oddForm) (url string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = fmt.Fprintln(o.in, f.transport, f.name) // if it has ended, nothing is read
	line, err := o.out.ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %v", f, err)
	}
	t.Cleanup(func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		_, _ = io.WriteString(o.in, line) // if it has ended, that has shown
	})
	return strings.TrimSpace(line)
}

// server is what a client of the form connects to direct: its command line, or its URL.
func (f oddForm) server(t *testing.T, web *oddWeb) []string {
	t.Helper()
	if f.transport == "stdio" {
		return oddServerArgv(f.transport, f.name)
	}
	return []string{web.start(t, f)}
}

// try has the cell's client do the steps in a workspace of its own: outlive must know nothing of an earlier run.
func (c oddCell) try(t *testing.T, web *oddWeb, limit time.Duration, direct bool) oddOutcome {
	t.Helper()
	w := newWorkspace(t)
	target := c.server(t, web)
	if !direct {
		target = c.lane.target(t, w, target)
	}
	if c.client == "" {
		if strings.HasPrefix(target[0], "http") { // it speaks stdio only
			target = append([]string{tools.outlive, "run"}, target...)
		}
		return c.byRaw(t, w, limit, direct, target)
	}
	return c.bySDK(w, gatewayClients()[c.client], limit, target)
}

// TestOddServers: whoever puts outlive before a server is not worse off, however odd the server is. At the door each form is tried
// once, and the client must get what the table says. In a hunt forms meet lanes and clients, pairwise, and what a client gets behind
// outlive is held against what it gets direct. The full run takes one of these cells of each form, another lane from form to form,
// and an SDK in each third: all of them take a quarter of an hour.
func TestOddServers(t *testing.T) {
	besideOthers(t)
	needOutlive(t)
	forms, web := oddForms(t), startOddWeb(t)
	if !full() {
		for _, f := range forms {
			if f.is("again") || f.is("due") || f.name == "plain" && f.transport != "stdio" {
				continue
			}
			t.Run(f.String(), func(t *testing.T) {
				t.Parallel()
				o := oddCell{f, oddLanes[0], ""}.try(t, web, patience, false)
				if lacks := f.missing(o); lacks != "" {
					t.Errorf("%s: %s", f.why, lacks)
				}
				if f.name == "progress-token-string" && o.progress == 0 {
					t.Error("told of no progress")
				}
			})
		}
		return
	}
	b := oddBoard{}
	t.Run("cells", func(t *testing.T) {
		for i, f := range forms {
			if f.is("again") && tierOf() != "hunt" {
				continue
			}
			cells := oddCells(i, f)
			if tierOf() != "hunt" {
				cells = cells[i%len(cells):][:1]
				if i%3 != 0 {
					cells[0].client = "" // a start of an SDK costs more than most forms
				}
			}
			for _, c := range cells {
				t.Run(c.oddForm.String()+"/"+c.lane.name+"/"+c.clientName(), func(t *testing.T) {
					t.Parallel()
					c.judge(t, web, &b)
				})
			}
		}
	})
	b.document(t)
}

func (c oddCell) clientName() string {
	if c.client == "" {
		return "raw"
	}
	return c.client
}

const (
	behindLimit = 30 * time.Second // a gateway waits half of that for a list
	directLimit = 10 * time.Second
	slower      = 2 * time.Second
)

// judge tries a cell and, where it could be worse than direct, its control. A hunt wants each control: it writes down what is better.
func (c oddCell) judge(t *testing.T, web *oddWeb, b *oddBoard) {
	behind := c.try(t, web, behindLimit, false)
	if tierOf() != "hunt" && c.missing(behind) == "" && behind.took < slower {
		return
	}
	direct := c.try(t, web, directLimit, true)
	if c.late(direct, behind) {
		if behind = c.try(t, web, behindLimit, false); c.late(direct, behind) {
			t.Logf("slow: %v behind outlive, %v direct", behind.took.Round(time.Millisecond), direct.took.Round(time.Millisecond))
		}
	}
	worse := c.worse(direct, behind)
	if worse != "" {
		t.Errorf("%s: %s", c.why, worse)
	}
	b.add(c, direct, behind, worse != "")
}

// late says whether a client that got all direct was done later than that, with all or without: the machine may have been busy.
func (c oddCell) late(direct, behind oddOutcome) bool {
	return direct.works() == len(oddSteps) && behind.took > direct.took+slower
}
