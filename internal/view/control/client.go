package control

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/peer"
)

const (
	dialPatience = time.Second
	// youngest is how old a socket must be before it can count as left over: a new one is bound a moment before its
	// owner listens.
	youngest = 2 * time.Second
)

// ErrGone is returned when the instance has ended.
var ErrGone = errors.New("no longer running")

// Instance is a running outlive, found by its socket.
type Instance struct {
	Name string `json:"name"` // of its server; cut if it is over 40 bytes, see [Instance.Is]
	PID  int    `json:"pid"`  // of outlive
	Path string `json:"-"`    // of the socket

	Server string `json:"-"` // of a gateway: which of its servers is meant; "": none in particular
}

// Discover lists the instances that live in dirs, ordered by name and process id. It removes the sockets of those that
// are gone: nobody listens there any more. A live one that does not answer is listed. When others may write to the first
// directory, the error wraps [ErrForeign]; any other such directory has nothing of ours in it and is passed over.
func Discover(dirs ...string) ([]Instance, error) {
	return DiscoverBeside(func(string) bool { return false }, dirs...)
}

// DiscoverBeside is [Discover], which does not connect to sockets that are known to be of one who lives, by their path: a
// connection to it is open.
func DiscoverBeside(known func(path string) bool, dirs ...string) ([]Instance, error) {
	var found []Instance
	for i, d := range SocketDirs(dirs...) {
		err := checkDir(d)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrForeign) && i > 0 {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for instances: %w", err)
		}
		entries, err := os.ReadDir(d)
		if err != nil {
			return nil, fmt.Errorf("look for instances: %w", err)
		}
		for _, e := range entries {
			name, pid, ok := parseFile(e.Name())
			if !ok || e.Type() != fs.ModeSocket {
				continue
			}
			i := Instance{Name: name, PID: pid, Path: filepath.Join(d, e.Name())}
			if known(i.Path) || i.alive(e) {
				found = append(found, i)
			}
		}
	}
	slices.SortFunc(found, func(a, b Instance) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.PID, b.PID))
	})
	return found, nil
}

// SocketDirs are the directories where the sockets are of what listens in dirs, each once.
func SocketDirs(dirs ...string) (all []string) {
	for _, dir := range dirs {
		for _, d := range []string{filepath.Clean(dir), fallbackDir(dir)} {
			if !slices.Contains(all, d) {
				all = append(all, d)
			}
		}
	}
	return all
}

// alive tries to connect, and removes a socket where nobody listens.
func (i Instance) alive(e fs.DirEntry) bool {
	conn, err := Dial(context.Background(), i.Path)
	if err == nil {
		_ = conn.Close()
		return true
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrForeign) {
		return false
	}
	if !refused(err) {
		return true
	}
	if st, err := e.Info(); err == nil && time.Since(st.ModTime()) > youngest {
		_ = os.Remove(i.Path)
	}
	return false
}

// Dial connects to a socket at which this user or root listens. Anybody else's is an error that wraps [ErrForeign].
func Dial(ctx context.Context, path string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialPatience}
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := listener(peer.Unix(conn.(*net.UnixConn))); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// listener says what is wrong with a socket at which uid listens. Where the system does not say who, its directory has to do.
func listener(uid int, err error) error {
	switch {
	case errors.Is(err, peer.ErrUnknown):
		return nil
	case err != nil:
		return err
	case !peer.OursOrRoots(uid):
		return fmt.Errorf("%w: user %d listens there", ErrForeign, uid)
	}
	return nil
}

// Label is what a person calls it where several have its name: NAME@PID, and /SERVER for one server of a gateway.
func (i Instance) Label() string {
	label := i.Name + "@" + strconv.Itoa(i.PID)
	if i.Server != "" {
		label += "/" + i.Server
	}
	return label
}

// Is reports whether name is the instance's name, also where the file name shows it cut.
func (i Instance) Is(name string) bool { return filepath.Base(i.Path) == socketFile(name, i.PID) }

// Status asks how it stands.
func (i Instance) Status(ctx context.Context) (Status, error) {
	var s Status
	err := i.ask(ctx, http.MethodGet, "/v1/status", nil, &s)
	return s, err
}

// Restart restarts its server and returns when the new process is ready. An error is the server's own if it does not
// come up; it wraps [ErrGone] if the instance has ended.
func (i Instance) Restart(ctx context.Context, o Order) (r Result, err error) {
	o.Server = i.Server
	err = i.ask(ctx, http.MethodPost, "/v1/restart", o, &r)
	return r, err
}

// Reload has a gateway read its configuration again; an error says what is wrong with it.
func (i Instance) Reload(ctx context.Context) error {
	return i.ask(ctx, http.MethodPost, "/v1/reload", nil, &struct{}{})
}

func (i Instance) ask(ctx context.Context, method, path string, body, into any) error {
	answer, err := i.do(ctx, method, path, "", body)
	if err != nil {
		return err
	}
	defer answer.Close()
	if err := json.NewDecoder(answer).Decode(into); err != nil {
		return fmt.Errorf("answer of %s (pid %d): %w", i.Name, i.PID, err)
	}
	return nil
}

// do sends a request, and resumes a stream of events after the one with that id; "": it does not.
func (i Instance) do(ctx context.Context, method, path, after string, body any) (io.ReadCloser, error) {
	header := http.Header{}
	if after != "" {
		header.Set("Last-Event-ID", after)
	}
	resp, err := Send(ctx, i.Path, method, path, header, body)
	if err != nil {
		if refused(err) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.EOF) {
			err = fmt.Errorf("%w (%w)", ErrGone, err)
		}
		return nil, fmt.Errorf("%s (pid %d): %w", i.Name, i.PID, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		r := &refusal{}
		if json.NewDecoder(io.LimitReader(resp.Body, bodyLimit)).Decode(r) != nil || r.Text == "" {
			r.Text = resp.Status
		}
		return nil, fmt.Errorf("%s (pid %d): %w", i.Name, i.PID, r)
	}
	return resp.Body, nil
}

// Send sends a request to a socket over a connection of its own. A body is sent as JSON, unless it is nil; header is added to the usual one.
func Send(ctx context.Context, socket, method, path string, header http.Header, body any) (*http.Response, error) {
	var content bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&content).Encode(body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://outlive"+path, &content)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, header)
	t := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return Dial(ctx, socket)
	}}
	return t.RoundTrip(req)
}

// upgradeLook is how often an outlive that is being upgraded is asked how it stands.
const upgradeLook = 20 * time.Millisecond

// comeBack is how long the new program may take to show itself, beyond what the old one waits for a quiet moment.
const comeBack = time.Minute

// Upgrade has the program on disk take the instance's place and returns how it stands afterwards, or says why that was
// not possible: then it goes on as it was. wait is how long it may wait for a quiet moment.
func (i Instance) Upgrade(ctx context.Context, wait time.Duration) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+comeBack)
	defer cancel()
	before, err := i.Status(ctx)
	if err != nil {
		return Status{}, err
	}
	err = i.ask(ctx, http.MethodPost, "/v1/upgrade?wait="+wait.String(), nil, &struct{}{})
	if _, told := errors.AsType[*refusal](err); told {
		return Status{}, err
	}
	// The connection went with the old program; the new one makes the socket anew.
	for {
		now, err := i.Status(ctx)
		if err == nil && now.Upgrades > before.Upgrades {
			return now, nil
		}
		select {
		case <-ctx.Done():
			return Status{}, fmt.Errorf("%s (pid %d) does not come back: %w", i.Name, i.PID, errors.Join(err, ctx.Err()))
		case <-time.After(upgradeLook):
		}
	}
}
