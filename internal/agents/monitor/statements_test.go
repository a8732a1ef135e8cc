package monitor

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"modernc.org/sqlite"
)

// twoConnections are a store and another connection to its database, as of another process.
func twoConnections(t *testing.T) (*store, *sql.DB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "monitor.db")
	s, err := openStore(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	return s, other
}

// A statement that is kept sees what others have written since, and what they have made of its table; and holds no lock between its uses.
func TestAKeptStatementSeesWhatOthersChange(t *testing.T) {
	t.Parallel()
	s, other := twoConnections(t)
	for want, change := range []string{
		`SELECT 1`, `INSERT INTO sleep VALUES (1, 1)`, `INSERT INTO sleep VALUES (2, 1)`, `ALTER TABLE sleep ADD COLUMN why TEXT`,
		`DROP TABLE sleep; CREATE TABLE sleep (why TEXT, length INTEGER, ended INTEGER)`,
	} {
		if _, err := other.ExecContext(t.Context(), change); err != nil {
			t.Fatalf("%s: %v", change, err)
		}
		want = []int{0, 1, 2, 2, 0}[want]
		if list, err := s.sleeps(t.Context()); err != nil || len(list) != want {
			t.Errorf("after %s: %v, %v; want %d", change, list, err, want)
		}
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

// The same text is run while its rows are being read, within one transaction: each reads its own.
func TestAKeptStatementWithinItself(t *testing.T) {
	t.Parallel()
	s, _ := twoConnections(t)
	const text = `SELECT n.value FROM json_each('[1,2,3]') AS n WHERE n.value >= ?`
	read := func(tx *sql.Tx, from int, each func(int) error) error {
		_, err := query(t.Context(), tx, text, func(r *sql.Rows) (n int, err error) {
			if err := r.Scan(&n); err != nil {
				return 0, err
			}
			return n, each(n)
		}, from)
		return err
	}
	var got []int
	for range 2 { // the second time with two that are kept, or were
		err := s.do(t.Context(), func(tx *sql.Tx) error {
			return read(tx, 2, func(outer int) error {
				return read(tx, 3, func(inner int) error {
					got = append(got, outer*10+inner)
					return nil
				})
			})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 4 || got[0] != 23 || got[1] != 33 || got[2] != 23 || got[3] != 33 {
		t.Errorf("read %v", got)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

// A connection prepares each text once, and ends what it has prepared with itself.
func TestStatementsArePreparedOnce(t *testing.T) {
	t.Parallel()
	c, err := keeping{&sqlite.Driver{}, filepath.Join(t.TempDir(), "a.db")}.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kept := c.(*keptConn)
	first, err := c.Prepare(`SELECT 1`)
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.Prepare(`SELECT 1`)
	if err != nil || second == first {
		t.Fatalf("two at once are one: %v", err)
	}
	for _, s := range []interface{ Close() error }{first, second} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if again, err := c.Prepare(`SELECT 1`); err != nil || again != first || len(kept.idle) != 0 {
		t.Errorf("prepared again: %v, %d others are kept", err, len(kept.idle))
	}
	_ = first.Close()
	if err := c.Close(); err != nil || len(kept.idle) != 0 {
		t.Errorf("closed: %v, %d left", err, len(kept.idle))
	}
}

// What a look reads and writes at least, with statements that are kept and with statements that are prepared each time.
func BenchmarkStatements(b *testing.B) {
	work := func(b *testing.B, s *store) {
		ctx := context.Background()
		var fleet map[string]any
		for b.Loop() {
			_, err := s.incidents(ctx, world{}.wall)
			if err == nil {
				_, err = s.fact(ctx, "fleet", &fleet)
			}
			if err == nil {
				_, err = s.userRequests(ctx)
			}
			if err == nil {
				err = s.setAgentStates(ctx, []string{"shop"}, map[string]agentState{"shop": {}})
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("kept", func(b *testing.B) {
		s, err := openStore(b.Context(), filepath.Join(b.TempDir(), "monitor.db"))
		if err != nil {
			b.Fatal(err)
		}
		defer s.close()
		work(b, s)
	})
	b.Run("prepared", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "monitor.db")
		s, err := openStore(b.Context(), path)
		if err != nil {
			b.Fatal(err)
		}
		defer s.close()
		db, err := sql.Open("sqlite", path+"?_txlock=immediate&_pragma=synchronous(FULL)")
		if err != nil {
			b.Fatal(err)
		}
		defer db.Close()
		db.SetMaxOpenConns(1)
		work(b, &store{db: db})
	})
}

// A database of an earlier version gets what it lacks, and one that has everything is not written to.
func TestWhatADatabaseLacksIsMade(t *testing.T) {
	t.Parallel()
	s, other := twoConnections(t)
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := other.ExecContext(t.Context(), `DROP TABLE sleep; PRAGMA user_version = 7`); err != nil {
		t.Fatal(err)
	}
	var path string
	if err := other.QueryRowContext(t.Context(), `SELECT file FROM pragma_database_list`).Scan(&path); err != nil {
		t.Fatal(err)
	}
	s, err := openStore(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := s.sleeps(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	writer, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = writer.Rollback() }()
	if _, err := writer.ExecContext(t.Context(), `INSERT INTO sleep VALUES (1, 1)`); err != nil {
		t.Fatal(err)
	}
	if s, err = openStore(t.Context(), path); err != nil {
		t.Fatal("while another writes:", err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}
