package enginetest

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
)

func testWrite(t *testing.T, f fleet) {
	key := engine.Key("beat", "host one", "ü/.*>")
	_, err := f.members[0].Get(f.ctx, key)
	wants(t, "Get of a key that is not there", err, engine.ErrNotFound)
	_, err = f.members[0].CAS(f.ctx, key, []byte("x"), 7)
	wants(t, "CAS of a key that is not there", err, engine.ErrConflict)
	first := f.put(t, key, "one")
	for i := range f.members {
		if entry := f.await(t, i, key, first); string(entry.Value) != "one" || entry.Key != key || entry.Revision != first {
			t.Errorf("member %d reads %+v, want revision %d", i, entry, first)
		}
	}
	second, err := f.members[1].CAS(f.ctx, key, []byte("two"), first)
	if err != nil || second <= first {
		t.Fatalf("CAS at revision %d: %d, %v", first, second, err)
	}
	_, err = f.members[2].CAS(f.ctx, key, []byte("three"), first)
	wants(t, "CAS at an old revision", err, engine.ErrConflict)
	if entry := f.await(t, 2, key, second); string(entry.Value) != "two" {
		t.Errorf("a CAS that was refused has written %q", entry.Value)
	}
	if third := f.put(t, key, ""); third <= second {
		t.Errorf("revision %d after %d", third, second)
	} else if entry := f.await(t, 0, key, third); len(entry.Value) != 0 {
		t.Errorf("an empty value became %q", entry.Value)
	}
}

// Of many that create one key at the same time one does.
func testOneCreates(t *testing.T, f fleet) {
	key := engine.Key("esc", "a")
	var won, refused atomic.Int32
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			switch _, err := f.members[i%len(f.members)].CAS(f.ctx, key, []byte(strconv.Itoa(i)), 0); {
			case err == nil:
				won.Add(1)
			case errors.Is(err, engine.ErrConflict):
				refused.Add(1)
			default:
				t.Errorf("CAS: %v", err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 || refused.Load() != 15 {
		t.Errorf("%d have created it and %d were refused", won.Load(), refused.Load())
	}
}

// No increment by CAS is lost, although reads may be old.
func testCounter(t *testing.T, f fleet) {
	const each = 20
	key := engine.Key("lease", "counter")
	revision := f.put(t, key, "0")
	var all sync.WaitGroup
	for _, m := range f.members {
		all.Go(func() {
			for done := 0; done < each; {
				entry, err := m.Get(f.ctx, key)
				if err != nil {
					t.Errorf("Get: %v", err)
					return
				}
				n, _ := strconv.Atoi(string(entry.Value))
				switch _, err := m.CAS(f.ctx, key, []byte(strconv.Itoa(n+1)), entry.Revision); {
				case err == nil:
					done++
				case !errors.Is(err, engine.ErrConflict):
					t.Errorf("CAS: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	want := strconv.Itoa(each * len(f.members))
	for !t.Failed() {
		if entry := f.await(t, 0, key, revision); string(entry.Value) == want {
			break
		}
		pause(t, f.ctx, "the counter never was "+want)
	}
}

func testDelete(t *testing.T, f fleet) {
	key := engine.Key("hosts", "a")
	if err := f.members[0].Delete(f.ctx, key); err != nil {
		t.Errorf("Delete of a key that is not there: %v", err)
	}
	first := f.put(t, key, "one")
	if err := f.members[1].Delete(f.ctx, key); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	for {
		_, err := f.members[2].Get(f.ctx, key)
		if errors.Is(err, engine.ErrNotFound) {
			break
		}
		pause(t, f.ctx, "a deleted key is still read")
	}
	_, err := f.members[0].CAS(f.ctx, key, []byte("two"), first)
	wants(t, "CAS at the revision before the deletion", err, engine.ErrConflict)
	second, err := f.members[0].CAS(f.ctx, key, []byte("three"), 0)
	if err != nil || second <= first {
		t.Errorf("CAS of a deleted key: revision %d after %d, %v", second, first, err)
	}
	_, err = f.members[1].CAS(f.ctx, key, []byte("four"), 0)
	wants(t, "a second one", err, engine.ErrConflict)
}

func testSizes(t *testing.T, f fleet) {
	key := engine.Key("catalog", "a")
	revision, err := f.members[0].Put(f.ctx, key, text(engine.MaxValue))
	if err != nil {
		t.Fatalf("Put of the largest value: %v", err)
	}
	_, err = f.members[0].Put(f.ctx, key, text(engine.MaxValue+1))
	wants(t, "Put", err, engine.ErrTooLarge)
	_, err = f.members[0].CAS(f.ctx, key, text(engine.MaxValue+1), revision)
	wants(t, "CAS", err, engine.ErrTooLarge)
	if entry := f.await(t, 1, key, revision); len(entry.Value) != engine.MaxValue {
		t.Errorf("%d bytes are read", len(entry.Value))
	}
}

func testEndedContext(t *testing.T, f fleet) {
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	m, key := f.members[0], engine.Key("beat", "a")
	_, err := m.Get(ctx, key)
	wants(t, "Get", err, engine.ErrUnknown)
	_, err = m.Put(ctx, key, nil)
	wants(t, "Put", err, engine.ErrUnknown)
	_, err = m.CAS(ctx, key, nil, 0)
	wants(t, "CAS", err, engine.ErrUnknown)
	wants(t, "Delete", m.Delete(ctx, key), engine.ErrUnknown)
	_, err = m.Request(ctx, key, nil)
	wants(t, "Request", err, engine.ErrUnknown)
}

func testBytesAreCopied(t *testing.T, f fleet) {
	key := engine.Key("beat", "a")
	value := []byte("one")
	revision, err := f.members[0].Put(f.ctx, key, value)
	if err != nil {
		t.Fatal(err)
	}
	value[0] = 'X'
	entry := f.await(t, 0, key, revision)
	if string(entry.Value) != "one" {
		t.Fatalf("the registry has %q", entry.Value)
	}
	entry.Value[0] = 'Y'
	if again := f.await(t, 0, key, revision); string(again.Value) != "one" {
		t.Errorf("the registry has %q", again.Value)
	}
}
