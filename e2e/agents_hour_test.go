package e2e

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/e2e/mockmodel"
)

// brief are limits that ordinary work comes near within an hour. A build takes longer than a tool may that does nothing.
var brief = declaration{"tool": "1m", "model_silent": "1m", "waiting": "5s", "attended": "1s"}

// TestAnHourOfAgents: four agents of each CLI do ordinary work for an hour. Nothing is done about them, and nobody is told. Then one is
// killed and another's login is dead: what is due then is done, and no more. E2E_AGENTS says for how long they work, such as 10m.
func TestAnHourOfAgents(t *testing.T) {
	needHunt(t, "an hour of eight agents")
	lasts := time.Hour
	if text := os.Getenv("E2E_AGENTS"); text != "" {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatalf("E2E_AGENTS=%q: want a time such as 10m", text)
		}
	}
	m, workers := newWorkers(t, 4, brief)
	for i, k := range workers {
		k.learns(i)
	}
	killed, loggedOut := workers[0], workers[1]
	loggedOut.can("a dead login", mockmodel.Auth, mockmodel.Script{})
	last := len(loggedOut.jobs) - 1
	dead := loggedOut.jobs[last]
	loggedOut.jobs = loggedOut.jobs[:last]
	m.a.write(m.a.w.path("go"), "")
	m.start()
	var all sync.WaitGroup
	for _, k := range workers {
		chance := seeded(t, k.name)
		all.Go(func() { k.worksFor(lasts, chance) })
	}
	all.Wait()
	m.allAre("done", workers)
	m.leavesAlone()
	if !t.Failed() {
		m.doesWhatIsDue(killed, loggedOut, dead)
	}
}

// learns gives the agent its ordinary jobs. Of the CLIs that it runs, other agents have other ends.
func (k *worker) learns(number int) {
	a := k.m.a
	runs := func(name, command string) { k.can(name, mockmodel.Tool, mockmodel.Script{Command: command}) }
	runs("a long build", "sh check.sh 100 busy")
	runs("a sleep", "sh check.sh 45")
	for i, nested := range kinds {
		end := nestedEnds[(number+i)%len(nestedEnds)]
		if end.name == "killed" { // nobody is here to kill it
			end = nestedEnds[0]
		}
		file := nested + "-" + end.name
		a.nests(nested, end.mode, file, k.project)
		runs(nested+" that ends with "+end.name, "sh nested.sh "+file+" 20")
	}
	if k.kind == "codex" {
		shown := filepath.Join(k.project, "shop.png")
		a.write(shown, noise(seeded(k.m.t, "picture"), 900))
		k.can("a picture", mockmodel.Answer, mockmodel.Script{}, "--image="+shown)
		return
	}
	manual := filepath.Join(k.project, "manual.pdf")
	a.write(manual, pdf(2<<20))
	k.can("a document", mockmodel.Use, mockmodel.Script{Tool: "Read", Input: map[string]any{"file_path": manual}})
	k.can("a sub-agent", mockmodel.Use, mockmodel.Script{Tool: "Agent", Command: "sh check.sh 20", Input: map[string]any{
		"description": "Check the shop", "prompt": "Run the checks of the shop", "subagent_type": "general-purpose"}})
}

// worksFor does jobs that are drawn for so long, as long as the test has not failed.
func (k *worker) worksFor(lasts time.Duration, chance *rand.Rand) {
	count := map[string]int{}
	for end := time.Now().Add(lasts); time.Now().Before(end) && !k.m.t.Failed(); k.pauses(chance) {
		j := k.jobs[chance.IntN(len(k.jobs))]
		if err := k.runs(j); err != nil {
			k.m.t.Error(err)
		}
		count[j.name]++
	}
	k.m.t.Logf("%s has done %v", k.name, count)
}

// doesWhatIsDue kills one agent in the middle of a command, and lets another's login die. The first is resumed, the second is told: after
// an hour in which nothing was done this shows that something would have been.
func (m *watcher) doesWhatIsDue(killed, loggedOut *worker, dead job) {
	m.t.Helper()
	_, ends := m.judgements(0)
	m.read = ends[len(ends)-1]
	sleep := slices.IndexFunc(killed.jobs, func(j job) bool { return j.name == "a sleep" })
	over := make(chan error, 1)
	go func() { over <- killed.runs(killed.jobs[sleep]) }()
	m.await("the command of "+killed.name, func() bool { return len(m.a.w.processes("sh check.sh 45")) > 0 })
	m.judges("working")
	for pid, line := range m.a.w.processes(killed.prompt()) {
		if !strings.HasPrefix(line, timed()) { // the wrapper
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if err := <-over; err == nil {
		m.t.Error("a run that was killed has ended well")
	}
	m.judges("crashed")
	m.a.resumed()
	m.judges("done")
	m.tellsNobody()
	if err := loggedOut.runs(dead); err == nil {
		m.t.Error("a run whose login is dead has ended well")
	}
	m.judges("auth_expired")
	m.tells(1, says(loggedOut.name+" is logged out"))
	const action = "- **Action:** "
	if acted := strings.Count(m.journal(), action) - strings.Count(m.journal(), action+"escalate"); acted != 1 || len(m.phone.Messages()) != 1 {
		m.t.Errorf("%d actions and the messages %+v, want one of each:\n%s", acted, m.phone.Messages(), m.journal())
	}
}

// pdf is a document of one page with so many bytes that the page does not show.
func pdf(size int) string {
	objects := []string{
		"<</Type/Catalog/Pages 2 0 R>>",
		"<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]>>",
		fmt.Sprintf("<</Length %d>>stream\n%s\nendstream", size, strings.Repeat("x", size)),
	}
	var text strings.Builder
	text.WriteString("%PDF-1.4\n")
	table := fmt.Sprintf("xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for i, object := range objects {
		table += fmt.Sprintf("%010d 00000 n \n", text.Len())
		fmt.Fprintf(&text, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	begins := text.Len()
	fmt.Fprintf(&text, "%strailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", table, len(objects)+1, begins)
	return text.String()
}

// noise is a picture whose points are drawn: it cannot be made smaller.
func noise(chance *rand.Rand, side int) string {
	picture := image.NewNRGBA(image.Rect(0, 0, side, side))
	for i := range picture.Pix {
		picture.Pix[i] = byte(chance.Uint32())
	}
	var text bytes.Buffer
	if err := png.Encode(&text, picture); err != nil {
		panic(err) // a buffer takes everything
	}
	return text.String()
}
