package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// lan is an Ethernet of machines with networks of their own. This process is its switch, so what becomes of each frame from one machine to
// another is up to the test: it is dropped, lost by chance, or late. It needs ip and /dev/net/tun, and no queueing discipline of the kernel.
type lan struct {
	machines []*network
	ports    []*os.File

	mu    sync.Mutex
	ways  map[way]wire // those that are not as they should be
	queue map[way]chan late
	ended chan struct{}
}

// way is from one machine to another.
type way struct{ from, to int }

// wire is how a way is.
type wire struct {
	cut   bool
	loss  float64 // the part of the frames that is lost
	delay time.Duration
}

// late is a frame on a slow way.
type late struct {
	frame []byte
	due   time.Time
}

const frameLimit = 1 << 14

var lans atomic.Int32 // of this process, each with names of its own

// newLAN makes machines that reach each other.
func newLAN(t *testing.T, many int) *lan {
	t.Helper()
	return openLAN(t, many, many)
}

// newLANWithUs makes machines that reach each other and this one, which is the last of them.
func newLANWithUs(t *testing.T, many int) *lan {
	t.Helper()
	return openLAN(t, many+1, many)
}

// openLAN makes machines of which the one with the number us is that of the tests.
func openLAN(t *testing.T, many, us int) *lan {
	t.Helper()
	number := int(lans.Add(1))
	id := fmt.Sprintf("%d-%d", os.Getpid()%10000, number)
	l := &lan{ways: map[way]wire{}, queue: map[way]chan late{}, ended: make(chan struct{})}
	ip := func(line string) {
		t.Helper()
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v %s", line, err, out)
		}
	}
	for n := range many {
		one := &network{name: fmt.Sprintf("outlive-lan-%s-%d", id, n), outside: fmt.Sprintf("oel%s-%d", id, n), address: fmt.Sprintf("10.252.%d.%d", (os.Getpid()+number)%250, 10+n)}
		if n != us {
			if out, err := exec.Command("ip", "netns", "add", one.name).CombinedOutput(); err != nil {
				t.Skipf("machines are cut off by networks of their own, which needs root and ip netns: %v %s", err, out)
			}
			t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", one.name).Run() })
		}
		port, err := openTap(one.outside)
		if err != nil {
			t.Skipf("the switch between machines needs /dev/net/tun: %v", err)
		}
		t.Cleanup(func() { _ = port.Close() })
		at, device := "", one.outside
		if n != us {
			at, device = "-n "+one.name+" ", "e0"
			ip("link set " + one.outside + " netns " + one.name + " name e0")
			ip(at + "link set lo up")
		}
		ip(at + "link set " + device + " address 02:00:00:00:00:" + fmt.Sprintf("%02x", n+1))
		ip(at + "addr add " + one.address + "/24 dev " + device)
		ip(at + "link set " + device + " up")
		l.machines, l.ports = append(l.machines, one), append(l.ports, port)
	}
	for n := range l.ports {
		go l.forward(n, seeded(t, fmt.Sprint("port ", number, " ", n)))
	}
	t.Cleanup(func() { close(l.ended) })
	return l
}

// openTap makes an Ethernet interface whose frames are read and written here.
func openTap(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// forward hands on the frames of a machine until its port is closed. The last byte of an address is the machine's number.
func (l *lan) forward(from int, chance *rand.Rand) {
	for {
		frame := make([]byte, frameLimit)
		n, err := l.ports[from].Read(frame)
		if err != nil {
			return
		}
		frame = frame[:n]
		switch {
		case n < 14:
		case frame[0]&1 == 1: // for all
			for to := range l.ports {
				if to != from {
					l.send(way{from, to}, frame, chance)
				}
			}
		case frame[5] >= 1 && int(frame[5]) <= len(l.ports):
			l.send(way{from, int(frame[5]) - 1}, frame, chance)
		}
	}
}

// send hands on a frame, or loses it: chance is the port's own.
func (l *lan) send(w way, frame []byte, chance *rand.Rand) {
	l.mu.Lock()
	wire, queue := l.ways[w], l.queue[w]
	if wire.delay > 0 && queue == nil {
		queue = make(chan late, 1<<12)
		l.queue[w] = queue
		go l.slow(w, queue)
	}
	l.mu.Unlock()
	switch {
	case wire.cut || wire.loss > 0 && chance.Float64() < wire.loss:
	case wire.delay > 0:
		select {
		case queue <- late{frame, time.Now().Add(wire.delay)}:
		default: // a switch has so much room
		}
	default:
		_, _ = l.ports[w.to].Write(frame) // its interface may be down
	}
}

// slow hands on the frames of a slow way, in order.
func (l *lan) slow(w way, queue <-chan late) {
	for {
		select {
		case <-l.ended:
			return
		case one := <-queue:
			time.Sleep(time.Until(one.due))
			_, _ = l.ports[w.to].Write(one.frame) // its interface may be down
		}
	}
}

// set has ways be as said; a zero wire mends them.
func (l *lan) set(is wire, ways ...way) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range ways {
		l.ways[w] = is
	}
}

// number is that of a machine.
func (l *lan) number(n *network) int { return slices.Index(l.machines, n) }

// outOf are the ways from a machine to all others, into those to it.
func (l *lan) outOf(n *network) (all []way) {
	from := l.number(n)
	for to := range l.machines {
		if to != from {
			all = append(all, way{from, to})
		}
	}
	return all
}

func (l *lan) into(n *network) (all []way) {
	for _, w := range l.outOf(n) {
		all = append(all, way{w.to, w.from})
	}
	return all
}

// between are both ways between two machines.
func (l *lan) between(a, b *network) []way {
	from, to := l.number(a), l.number(b)
	return []way{{from, to}, {to, from}}
}

// listen is a UDP socket of a machine.
func (l *lan) listen(t *testing.T, n *network) net.PacketConn {
	t.Helper()
	var c net.PacketConn
	var err error
	var opening sync.WaitGroup
	opening.Go(func() {
		runtime.LockOSThread() // it ends with this goroutine, since its network is another one
		file, openErr := os.Open("/run/netns/" + n.name)
		if openErr != nil {
			err = openErr
			return
		}
		defer file.Close()
		if err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err == nil {
			c, err = net.ListenPacket("udp4", n.address+":4444")
		}
	})
	opening.Wait()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A way that is cut, slow or lossy is so in its direction alone; when it is mended it is as before.
func TestLANWays(t *testing.T) {
	t.Parallel()
	l := newLAN(t, 3)
	var conns []net.PacketConn
	for _, n := range l.machines {
		conns = append(conns, l.listen(t, n))
	}
	tries := 0
	arrives := func(from, to int) (bool, time.Duration) {
		t.Helper()
		tries++
		text, sent := fmt.Sprint("try ", tries), time.Now()
		if _, err := conns[from].WriteTo([]byte(text), &net.UDPAddr{IP: net.ParseIP(l.machines[to].address), Port: 4444}); err != nil {
			t.Fatal(err)
		}
		_ = conns[to].SetReadDeadline(sent.Add(time.Second)) // it is open
		for b := make([]byte, 100); ; {
			n, _, err := conns[to].ReadFrom(b)
			if err != nil {
				return false, time.Since(sent)
			}
			if string(b[:n]) == text {
				return true, time.Since(sent)
			}
		}
	}
	want := func(what string, from, to int, wanted bool) time.Duration {
		t.Helper()
		got, took := arrives(from, to)
		if got != wanted {
			t.Errorf("%s: from %d to %d something arrives: %t, want %t", what, from, to, got, wanted)
		}
		return took
	}
	all := func(what string) {
		t.Helper()
		for from := range conns {
			for to := range conns {
				if from != to && !within(patience, func() bool { ok, _ := arrives(from, to); return ok }) {
					t.Fatalf("%s: nothing arrives from %d to %d", what, from, to)
				}
			}
		}
	}
	zero := l.machines[0]
	all("as it is") // from here on all know each other's addresses
	for _, bad := range []wire{{cut: true}, {loss: 1}} {
		l.set(bad, l.outOf(zero)...)
		want("out of it", 0, 1, false)
		want("into it", 1, 0, true)
		l.set(wire{}, l.outOf(zero)...)
		l.set(bad, l.into(zero)...)
		want("out of it", 0, 1, true)
		want("into it", 1, 0, false)
		l.set(wire{}, l.into(zero)...)
		l.set(bad, l.between(zero, l.machines[1])...)
		want("the pair", 0, 1, false)
		want("the pair", 1, 0, false)
		want("another one", 0, 2, true)
		want("another one", 2, 1, true)
		l.set(wire{}, l.between(zero, l.machines[1])...)
		all("mended")
	}
	l.set(wire{delay: 300 * time.Millisecond}, l.outOf(zero)...)
	if took := want("slow", 0, 1, true); took < 300*time.Millisecond {
		t.Errorf("a slow way has taken %s", took)
	}
	l.set(wire{}, l.outOf(zero)...)
	l.set(wire{loss: 0.3}, l.outOf(zero)...)
	there := 0
	for n := range 20 {
		if _, err := conns[0].WriteTo([]byte{byte(n)}, conns[1].LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
	_ = conns[1].SetReadDeadline(time.Now().Add(time.Second)) // it is open
	for b := make([]byte, 100); ; there++ {
		if _, _, err := conns[1].ReadFrom(b); err != nil {
			break
		}
	}
	if there == 0 || there == 20 {
		t.Errorf("%d of 20 arrive where 30 %% are lost", there)
	}
}
