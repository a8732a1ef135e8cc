package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/sessions"
	"github.com/outlive-mcp/outlive/internal/gateway/config"
	"github.com/outlive-mcp/outlive/internal/gateway/sessionstore"
	"github.com/outlive-mcp/outlive/internal/gateway/streamhttp"
)

// mostSessions is the default limit of sessions, that of package streamhttp.
const mostSessions = 256

// storedSessions is how many times that many records are kept: after a restart, those of clients that have left meanwhile
// stay for a while.
const storedSessions = 4

// keptSessions is where the sessions of an endpoint's clients are kept.
type keptSessions struct {
	streamhttp.Store
	here   *sessionstore.Store // nil: they are in the fleet
	warn   func(string)
	broken atomic.Bool // the latest Save or Drop has failed
}

// keepSessions opens the store of the endpoint at an address. A gateway without one works; only a restart ends its
// sessions.
func (g *endpoint) keepSessions(file *config.File, address string) {
	path := "" // the next client would look for its session at another port, or the user wants no file
	if _, port, err := net.SplitHostPort(address); err == nil && port != "0" && file.Sessions != config.SessionsInMemory {
		path = filepath.Join(stateDir(), "gateway", "sessions", notInFile.ReplaceAllString(address, "_")+".log")
	}
	k := &g.sessions
	k.warn, k.here = g.warn, sessionstore.New(path, storedSessions*cmp.Or(file.Limits.Sessions, mostSessions))
	k.Store = k.here
	_ = k.tell(k.here.Open())
	if text := damagedSessions(k.here.Damaged()); text != "" {
		g.warn(text)
	}
	for _, e := range g.left.Sessions {
		if e.Record == nil {
			_ = k.Drop(e.Key) // an error was told
		} else {
			_ = k.Save(e.Key, e.Record, e.Until) // likewise
		}
	}
	g.front.Store = k
}

func (k *keptSessions) Save(key string, record []byte, until time.Time) error {
	return k.tell(k.Store.Save(key, record, until))
}

func (k *keptSessions) Drop(key string) error { return k.tell(k.Store.Drop(key)) }

func (k *keptSessions) Load(key string) ([]byte, error) {
	record, err := k.Store.Load(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return record, k.tell(err)
}

// tell reports the first of several errors in a row. That another gateway has a session is none.
func (k *keptSessions) tell(err error) error {
	if at, ok := errors.AsType[*sessions.Elsewhere](err); ok {
		return &streamhttp.Elsewhere{At: at.At, Time: at.Time, Over: at.Over}
	}
	if failed := err != nil; k.broken.Swap(failed) != failed && failed {
		k.warn(err.Error() + "; until that works again, a restart of the gateway ends sessions, or takes back what they have set since")
	}
	return err
}

// onlyHere are the records that end with this process.
func (k *keptSessions) onlyHere() []sessionstore.Entry {
	if k.here == nil {
		return nil
	}
	return k.here.Unsaved()
}

// damaged is how many records of the store were damaged at the start.
func (k *keptSessions) damaged() int {
	if k.here == nil {
		return 0
	}
	return k.here.Damaged()
}

// damagedSessions says what so many damaged records mean; "": there are none.
func damagedSessions(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 record of the session store is damaged: its session has ended, or is as it was before"
	}
	return fmt.Sprintf("%d records of the session store are damaged: the sessions that they are of have ended, or are as they were before", n)
}

func (k *keptSessions) close() {
	if k.here != nil {
		_ = k.here.Close() // everything was written
	}
}
