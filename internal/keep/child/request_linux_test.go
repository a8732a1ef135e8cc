package child

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"
)

// TestOrderWithAGroup: the group travels along, and nothing behind it.
func TestOrderWithAGroup(t *testing.T) {
	o := someOrder
	o.group = 4711
	got, err := decodeStart(o.encode())
	if err != nil || got.group != 4711 {
		t.Errorf("group %d, %v", got.group, err)
	}
	if _, err := decodeStart(append(o.encode(), 1)); err == nil {
		t.Error("something behind the group is taken")
	}
}

var someOrder = startRequest{tag: makeTag(1, 2, 3).with(4), slot: 4, path: "/bin/sh", dir: "sub",
	argv: []string{"sh", "-c", "echo \x00 ü", ""}, env: []string{"A=b", "", "C=\n"}}

func TestOrderArrivesAsItWas(t *testing.T) {
	got, err := decodeStart(someOrder.encode())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(someOrder, got, cmp.AllowUnexported(startRequest{})); d != "" {
		t.Errorf("request (-sent +received):\n%s", d)
	}
	text := someOrder.encode()
	for n := range text {
		if _, err := decodeStart(text[:n]); err == nil {
			t.Errorf("%d of %d bytes are taken for a request", n, len(text))
		}
	}
}

func TestMessageArrivesAsItWas(t *testing.T) {
	want := message{kind: kindExited, number: -1, lived: time.Hour, cpu: 3, maxrss: 1 << 40}
	got, err := decodeMessage(want.encode())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(message{})); d != "" {
		t.Errorf("message (-sent +received):\n%s", d)
	}
}

func FuzzDecodeStart(f *testing.F) {
	f.Add(someOrder.encode())
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\x01\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := decodeStart(b)
		if err != nil {
			return
		}
		again, err := decodeStart(o.encode())
		if d := cmp.Diff(o, again, cmp.AllowUnexported(startRequest{}), cmpopts.EquateEmpty()); err != nil || d != "" {
			t.Errorf("%v\n%s", err, d)
		}
	})
}

func FuzzDecodeMessage(f *testing.F) {
	f.Add(message{kind: kindSignal, number: 9}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := decodeMessage(b); err == nil && !bytes.Equal(m.encode(), b) {
			t.Errorf("%+v", m)
		}
	})
}

// TestTheEndComesAfterTheLastMessage: a peer that sends and closes at once is heard, however the reader's look falls between the two.
// Otherwise the end of one server is taken for the end of the keeper, which is killed then with all others.
func TestTheEndComesAfterTheLastMessage(t *testing.T) {
	last, closed := message{kind: kindExited, number: 7}.encode(), 0
	for range 20_000 {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		told := make(chan error, 1)
		go func() {
			err := send(pair[1], last)
			closeFds(pair[1])
			told <- err
		}()
		var b [messageSize]byte
		n, _, err := receive(pair[0], b[:])
		for errors.Is(err, unix.EAGAIN) {
			n, _, err = receive(pair[0], b[:])
		}
		if err := errors.Join(err, <-told); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			closed++
		}
		closeFds(pair[0])
	}
	if closed > 0 {
		t.Errorf("%d times of 20,000 the end came before the message", closed)
	}
}

func TestDescriptorsTravelOnceAndCloseOnExec(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[1])
	long := bytes.Repeat([]byte("0123456789"), 50<<10)
	f, err := inMemory(long)
	if err != nil {
		t.Fatal(err)
	}
	if err := send(pair[0], []byte("x"), int(f.Fd())); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	closeFds(pair[0])
	var b [4]byte
	n, fds, err := receive(pair[1], b[:])
	if err != nil || n != 1 || len(fds) != 1 {
		t.Fatalf("%d bytes, descriptors %v, %v", n, fds, err)
	}
	if flags, err := unix.FcntlInt(uintptr(fds[0]), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %x, %v", flags, err)
	}
	if got, err := fromMemory(fds[0]); err != nil || !bytes.Equal(got, long) {
		t.Errorf("%d of %d bytes, %v", len(got), len(long), err)
	}
	closeFds(fds...)
	if n, _, err := receive(pair[1], b[:]); n != 0 || err != nil {
		t.Errorf("at the end: %d, %v", n, err)
	}
}
