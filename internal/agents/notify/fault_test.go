package notify

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"modernc.org/sqlite"
)

// fault lets one step go wrong: the nth statement or commit of the database, or request to the server.
type fault struct {
	mu    sync.Mutex
	count int
	at    int
	after bool // the step is done, and not heard of
	dead  bool // from then on nothing works: we were killed
	hit   bool
}

var errFault = errors.New("it fails here")

// step is called before and after each step.
func (f *fault) step(after bool) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !after {
		f.count++
	}
	if f.count == f.at && f.after == after {
		f.hit = true
		return errFault
	}
	if f.hit && f.dead {
		return errFault
	}
	return nil
}

func (f *fault) around(do func() error) error {
	if err := f.step(false); err != nil {
		return err
	}
	return errors.Join(do(), f.step(true))
}

// faultDriver is SQLite with faults. One test at a time sets them.
type faultDriver struct{ fault *fault }

var faulty = &faultDriver{}

func init() { sql.Register("faulty", faulty) }

func (d *faultDriver) Open(name string) (driver.Conn, error) {
	c, err := (&sqlite.Driver{}).Open(name)
	return &faultConn{Conn: c, fault: d.fault}, err
}

type faultConn struct {
	driver.Conn
	fault *fault
}

func (c *faultConn) ExecContext(ctx context.Context, q string, args []driver.NamedValue) (r driver.Result, err error) {
	err = c.fault.around(func() error {
		r, err = c.Conn.(driver.ExecerContext).ExecContext(ctx, q, args)
		return err
	})
	return r, err
}

func (c *faultConn) QueryContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.fault.step(false); err != nil {
		return nil, err
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, q, args)
}

func (c *faultConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
	return faultTx{tx, c.fault}, err
}

type faultTx struct {
	driver.Tx
	fault *fault
}

func (t faultTx) Commit() error {
	if err := t.fault.step(false); err != nil {
		return errors.Join(err, t.Rollback())
	}
	return errors.Join(t.Tx.Commit(), t.fault.step(true))
}

// RoundTrip makes the fault an http.RoundTripper.
func (f *fault) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := f.step(false); err != nil {
		return nil, err
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		if err = f.step(true); err != nil {
			_ = answer.Body.Close()
			return nil, err
		}
	}
	return answer, err
}

// everyFault runs a test for every step that can go wrong in every way, until none is left; see faultStride.
func everyFault(t *testing.T, test func(t *testing.T, f *fault)) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	total := 0
	for n, way := range []struct {
		name        string
		after, dead bool
	}{{"fails", false, false}, {"fails unheard", true, false}, {"killed after", true, true}} { // before one is after another
		for at := 1 + n%faultStride; ; at += faultStride {
			f := &fault{at: at, after: way.after, dead: way.dead}
			t.Run(fmt.Sprint(way.name, " ", at), func(t *testing.T) { test(t, f) })
			if at > f.count {
				break
			}
			total++
		}
	}
	t.Logf("%d faults", total)
}

// faultyWorld is a database and a Bot API in which f happens.
func faultyWorld(t *testing.T, f *fault, server *fakeTelegram, path string) (*sql.DB, map[string]Channel) {
	t.Helper()
	faulty.fault = f
	db := openDatabase(t, "faulty", path)
	client := server.Client()
	if f != nil {
		client = &http.Client{Transport: f}
	}
	c, err := NewTelegram(TelegramOptions{Token: "123:abc", ChatID: "42", APIURL: server.URL, Client: client})
	if err != nil {
		t.Fatal(err)
	}
	return db, map[string]Channel{"me": c}
}

// Wherever the database or the network fails, and wherever we are killed: nothing that was put is lost, the order stays,
// nothing comes twice without saying so, and a thread ends as one message that says what is so.
func TestTheOutboxFailsAtEveryStep(t *testing.T) {
	everyFault(t, func(t *testing.T, f *fault) {
		server, path := newFakeTelegram(t), filepath.Join(t.TempDir(), "o.db")
		if _, err := openDatabase(t, "sqlite", path).Exec(Schema); err != nil {
			t.Fatal(err)
		}
		putAll := func(db *sql.DB, o *Outbox, from int) (done int, now time.Time) {
			now = begin.Add(time.Duration(from) * time.Hour)
			for done = from; done < 4; done++ {
				body := fmt.Sprint(done)
				m := Message{Key: body, Text: Text{Body: body}}
				if done%2 == 1 {
					m.Thread, m.Text.Body = "thread", "state "+body
				}
				err := transact(t.Context(), db, func(tx *sql.Tx) error { return o.Put(t.Context(), tx, "me", m) })
				if err != nil {
					return done, now
				}
				for range 4 {
					next, _ := o.Deliver(t.Context(), "me", now)
					if next.IsZero() {
						break
					}
					now = next
				}
			}
			return done, now
		}
		db, channels := faultyWorld(t, f, server, path)
		done := 0
		if o, err := NewOutbox(t.Context(), db, channels, nil); err == nil {
			if done, _ = putAll(db, o, 0); !f.dead && done < 4 { // whoever could not put it puts it again
				done, _ = putAll(db, o, done)
			}
		}
		_ = db.Close()
		db, channels = faultyWorld(t, nil, server, path)
		o, err := NewOutbox(t.Context(), db, channels, nil)
		if err != nil {
			t.Fatal(err)
		}
		putAll(db, o, done)
		run(t, o, "me", 20)
		checkArrived(t, server)
	})
}

// checkArrived wants 0 and 2 in order, and one message that says state 3; what is there twice says so.
func checkArrived(t *testing.T, server *fakeTelegram) {
	t.Helper()
	list := bodies(server)
	once := map[string]int{}
	for m := range strings.SplitSeq(list, "; ") {
		once[m]++
	}
	for m, n := range once {
		if n > 1 && !strings.HasSuffix(m, "(again)") {
			t.Errorf("%d times %q: %s", n, m, list)
		}
	}
	zero, two := strings.Index(list, "42 0"), strings.LastIndex(list, "42 2")
	if zero < 0 || two < 0 || zero > two {
		t.Errorf("0 and 2 did not arrive in order: %s", list)
	}
	if !strings.Contains(list, "42 state 3") {
		t.Errorf("the thread does not say what is so: %s", list)
	}
	if n := strings.Count(list, "state"); n > 1 && !strings.Contains(list, "(again)") {
		t.Errorf("the thread is %d messages: %s", n, list)
	}
}
