package agentcli

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A prompt is noticed as it is written, without a poll.
func TestWatchSeesAPrompt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shop := w.dir("shop")
	transcript := w.claude(shop, "a")
	w.claudeState(70, shop, "a", `"status":"busy"`)
	o := newOpenCode(t, filepath.Join(w.options.Places[OpenCode], openCodeDatabase))
	o.session("s", shop)
	r := NewReader(w.options)
	signal, err := r.Watch()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := r.Watch(); again != signal || err != nil {
		t.Error("a second call gives another channel")
	}
	q := Query{Dirs: []string{shop}}
	w.found(r, q)
	for name, change := range map[string]func(){
		"a state file": func() {
			w.claudeState(70, shop, "a", `"status":"waiting","waitingFor":"permission prompt"`)
		},
		"a transcript":   func() { appendFile(t, transcript, claudeBash+"\n") },
		"a new session":  func() { w.claudeState(71, shop, "b", `"status":"idle"`) },
		"a database":     func() { o.message("s", "m1", `{"role":"user"}`) },
		"a state folder": func() { writeFile(t, filepath.Join(w.options.Places[Claude], "sessions", "x"), "") },
	} {
		drain(signal)
		change()
		select {
		case <-signal:
		case <-time.After(2 * time.Minute):
			t.Errorf("%s: no signal within two minutes", name)
		}
		w.found(r, q)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
	w.found(r, q) // still reads
}

// The first session of a CLI creates its folders, which is noticed before the next poll.
func TestWatchWaitsForFolders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shop := w.dir("shop")
	for _, dir := range []string{w.options.Places[Claude], w.options.Places[Codex]} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	r := NewReader(w.options)
	signal, err := r.Watch()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	q := Query{Dirs: []string{shop}}
	w.found(r, q)
	for range 4 { // the folder, and one more in it at each look
		drain(signal)
		w.claudeState(70, shop, "a", `"status":"waiting","waitingFor":"permission prompt"`)
		select {
		case <-signal:
		case <-time.After(2 * time.Minute):
			t.Fatal("no signal of a new folder within two minutes")
		}
		if len(w.found(r, q)) == 1 {
			return
		}
	}
	t.Error("the session was never found")
}

// quiet is how long no signal shows that none is to come.
const quiet = 700 * time.Millisecond

// drain waits until the signals of what has happened before are over.
func drain(signal <-chan struct{}) {
	for {
		select {
		case <-signal:
		case <-time.After(quiet):
			return
		}
	}
}

// Looking for itself is not news: otherwise every look would cause the next one.
func TestLookingIsNoNews(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shop := w.dir("shop")
	w.claude(shop, "a")
	newOpenCode(t, filepath.Join(w.options.Places[OpenCode], openCodeDatabase)).session("s", shop)
	r := NewReader(w.options)
	signal, err := r.Watch()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w.found(r, Query{Dirs: []string{shop}})
	drain(signal)
	forgetOpenCode(r) // as if it had changed
	w.found(r, Query{Dirs: []string{shop}})
	select {
	case <-signal:
		t.Error("a look gave a signal")
	case <-time.After(quiet):
	}
}

func TestWhatIsNews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		events, lost := make(chan fsnotify.Event), make(chan error)
		w := &watch{watcher: &fsnotify.Watcher{Events: events, Errors: lost}, signal: make(chan struct{}, 1), quit: make(chan struct{})}
		w.done.Go(w.run)
		signals := func() (n int) {
			synctest.Wait()
			for len(w.signal) > 0 {
				<-w.signal
				n++
			}
			return n
		}
		for range 999 { // a session that writes all the time, while nobody looks
			events <- fsnotify.Event{Name: "a.jsonl", Op: fsnotify.Write}
		}
		if n := signals(); n != 1 {
			t.Errorf("%d signals of many changes", n)
		}
		events <- fsnotify.Event{Name: "opencode.db-shm", Op: fsnotify.Write}
		events <- fsnotify.Event{Name: "a.jsonl", Op: fsnotify.Chmod}
		if n := signals(); n != 0 {
			t.Errorf("%d signals for what is not news", n)
		}
		lost <- fsnotify.ErrEventOverflow
		if signals() != 1 {
			t.Error("lost events give no signal")
		}
		close(w.quit)
		w.done.Wait()
	})
}
