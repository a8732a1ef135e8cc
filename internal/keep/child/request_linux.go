package child

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// startRequest describes the process to start. It is sent in a memory file, because an environment may be larger than
// any datagram; the datagram carries the descriptors.
type startRequest struct {
	tag       tag // the new process's tag; the slot spared says to leave its descendants alone
	slot      int // identifies the answers and the exit
	path, dir string
	argv, env []string
	group     int // the process group it joins, outlive's own; 0: it begins a session
}

// The descriptors of a start request's datagram.
const (
	fdChannel = 3 + iota // behind the three streams: the keeper's end of this process's channel
	fdDir                // outlive's working directory, from which dir is taken
	fdRequest            // the request itself
	requestFds
)

// errMalformed is what a malformed request or answer gets.
var errMalformed = errors.New("malformed message")

func (o startRequest) encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(o.tag))
	b = binary.AppendUvarint(b, uint64(o.slot))
	b = appendStrings(b, []string{o.path, o.dir})
	b = appendStrings(b, o.argv)
	b = appendStrings(b, o.env)
	return binary.AppendUvarint(b, uint64(o.group))
}

func appendStrings(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

func decodeStart(b []byte) (o startRequest, err error) {
	if len(b) < 8 {
		return o, fmt.Errorf("start request: %w", errMalformed)
	}
	o.tag = tag(binary.LittleEndian.Uint64(b))
	slot, n := binary.Uvarint(b[8:])
	if n <= 0 || slot > 1<<slotBits {
		return o, fmt.Errorf("start request: %w", errMalformed)
	}
	o.slot = int(slot)
	var lists [3][]string
	b = b[8+n:]
	for i := range lists {
		if lists[i], b, err = cutStrings(b); err != nil {
			return startRequest{}, err
		}
	}
	group, n := binary.Uvarint(b)
	if n != len(b) || n == 0 || group >= 1<<pidBits {
		return startRequest{}, fmt.Errorf("start request: %w", errMalformed)
	}
	o.group = int(group)
	if len(lists[0]) != 2 || len(lists[1]) == 0 {
		return startRequest{}, fmt.Errorf("start request: %w", errMalformed)
	}
	o.path, o.dir, o.argv, o.env = lists[0][0], lists[0][1], lists[1], lists[2]
	return o, nil
}

func cutStrings(b []byte) (list []string, rest []byte, err error) {
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)) { // each takes a byte at least
		return nil, nil, fmt.Errorf("start request: %w", errMalformed)
	}
	b = b[n:]
	list = make([]string, 0, count)
	for range count {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return nil, nil, fmt.Errorf("start request: %w", errMalformed)
		}
		list = append(list, string(b[n:n+int(size)]))
		b = b[n+int(size):]
	}
	return list, b, nil
}

// The messages on a process's channel. The keeper sends kindStarted with a pidfd, or kindFailed; later kindExited.
// outlive sends kindSignal if it cannot signal the group itself.
const (
	kindStarted = 'S'
	kindFailed  = 'F'
	kindExited  = 'E'
	kindSignal  = 'K'
)

// message is one datagram on a process's channel. Each kind uses the fields it needs.
type message struct {
	kind   byte
	number int32         // the pid, the errno, the wait status or the signal
	lived  time.Duration // start to the exit
	cpu    time.Duration // user and system time
	maxrss int64         // bytes
}

// messageSize is that of every message, in bytes.
const messageSize = 1 + 4 + 3*8

func (m message) encode() []byte {
	b := binary.LittleEndian.AppendUint32([]byte{m.kind}, uint32(m.number))
	for _, n := range []int64{int64(m.lived), int64(m.cpu), m.maxrss} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return b
}

func decodeMessage(b []byte) (message, error) {
	if len(b) != messageSize {
		return message{}, fmt.Errorf("message of %d bytes: %w", len(b), errMalformed)
	}
	n := func(i int) int64 { return int64(binary.LittleEndian.Uint64(b[5+8*i:])) }
	return message{kind: b[0], number: int32(binary.LittleEndian.Uint32(b[1:])),
		lived: time.Duration(n(0)), cpu: time.Duration(n(1)), maxrss: n(2)}, nil
}

// send writes one datagram with descriptors. It never blocks: a peer that does not read for so long is broken.
func send(fd int, b []byte, fds ...int) error {
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	for {
		err := unix.Sendmsg(fd, b, rights, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// receive reads one datagram and its descriptors, close-on-exec, without blocking: EAGAIN if there is none. No bytes and
// no error is the end.
//
// It asks twice before it says that: Linux looks for a datagram and then for the end, and tells of the end alone where the peer
// has sent and closed between the two looks. What was sent before is there at the next.
func receive(fd int, b []byte) (n int, fds []int, err error) {
	if n, fds, err = receiveOnce(fd, b); n == 0 && err == nil {
		closeFds(fds...)
		return receiveOnce(fd, b)
	}
	return n, fds, err
}

func receiveOnce(fd int, b []byte) (n int, fds []int, err error) {
	rights := make([]byte, unix.CmsgSpace(requestFds*4))
	var got int
	for {
		n, got, _, _, err = unix.Recvmsg(fd, b, rights, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return 0, nil, err
	}
	cmsgs, err := unix.ParseSocketControlMessage(rights[:got])
	for i := range cmsgs {
		if more, err := unix.ParseUnixRights(&cmsgs[i]); err == nil {
			fds = append(fds, more...)
		}
	}
	return n, fds, err
}

// inMemory returns a file in memory that holds b, ready to be read with pread.
func inMemory(b []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("start-request", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // kernels before 6.3 do not know the seal
		fd, err = unix.MemfdCreate("start-request", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "start request")
	if _, err := f.WriteAt(b, 0); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// fromMemory reads what inMemory wrote.
func fromMemory(fd int) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	b := make([]byte, st.Size)
	for at := 0; at < len(b); {
		n, err := unix.Pread(fd, b[at:], int64(at))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return nil, err
		}
		if n == 0 && err == nil {
			return nil, syscall.EIO
		}
		at += max(n, 0)
	}
	return b, nil
}

func closeFds(fds ...int) {
	for _, fd := range fds {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}
