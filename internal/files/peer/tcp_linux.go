package peer

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tables have a line for each TCP socket of our network namespace. An IPv4 connection through an IPv6 socket is in
// the second one.
var tables = []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"}

// looks is how often the tables are read before a connection counts as not found: if a table changes while it is
// read, a line may be missing.
const looks = 3

// TellsTCP reports whether this system says which user has the other end of a TCP connection.
func TellsTCP() bool {
	f, err := os.Open(tables[0])
	if err != nil {
		return false
	}
	_ = f.Close() // only read from
	return true
}

// TCP returns the user id of the other end of a TCP connection within this machine. local is our end. The error wraps
// [ErrUnknown] if the system does not list the connection, or lists it without an owner because the other end was
// closed.
func TCP(local, remote netip.AddrPort) (uid int, err error) {
	if owner, err := askDiag(remote, local); err == nil {
		return owner.user(remote, local)
	}
	return fromTables(remote, local)
}

// owner is the owner of one end of a connection, as the system lists it. The inode is that of the open socket. It is
// 0 once no process has the socket open; the user is then 0, too, whoever it was, and proves nothing.
type owner struct{ uid, inode uint32 }

func (o owner) user(near, far netip.AddrPort) (uid int, err error) {
	if o.inode == 0 {
		return 0, fmt.Errorf("%w: no open socket %v to %v", ErrUnknown, near, far)
	}
	return int(o.uid), nil
}

// fromTables looks for the socket that is bound to near and connected to far in the tables, which every system has.
// That takes milliseconds, because the kernel goes through all its sockets.
func fromTables(near, far netip.AddrPort) (uid int, err error) {
	for range looks {
		for _, table := range tables {
			f, err := os.Open(table)
			if err != nil {
				continue // without IPv6 there is only one table
			}
			found, ok := ownerIn(f, near, far)
			_ = f.Close() // only read from
			if ok {
				return found.user(near, far)
			}
		}
	}
	return owner{}.user(near, far)
}

// ownerIn searches a table. Of several lines, that of an open socket is used.
func ownerIn(table io.Reader, near, far netip.AddrPort) (found owner, ok bool) {
	var ends [2][]byte // as IPv4 and as IPv6
	for i, wide := range []bool{false, true} {
		ends[i] = fmt.Appendf(nil, " %s %s ", listed(near, wide), listed(far, wide))
	}
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		line := lines.Bytes()
		if !bytes.Contains(line, ends[0]) && !bytes.Contains(line, ends[1]) {
			continue
		}
		// sl local remote state queues timer retransmits uid timeout inode …
		fields := bytes.Fields(line)
		if len(fields) < 10 {
			continue
		}
		uid, err := strconv.ParseUint(string(fields[7]), 10, 32)
		inode, err2 := strconv.ParseUint(string(fields[9]), 10, 32)
		if err == nil && err2 == nil && inode != 0 {
			return owner{uint32(uid), uint32(inode)}, true
		}
	}
	return owner{}, false
}

// listed formats an address as in the tables: 32-bit words in this processor's byte order, in hexadecimal, and the
// port.
func listed(at netip.AddrPort, wide bool) string {
	sixteen := at.Addr().As16()
	raw := sixteen[:]
	if addr := at.Addr().Unmap(); addr.Is4() && !wide {
		raw = addr.AsSlice()
	}
	var out []byte
	for ; len(raw) >= 4; raw = raw[4:] {
		out = fmt.Appendf(out, "%08X", binary.NativeEndian.Uint32(raw))
	}
	return string(fmt.Appendf(out, ":%04X", at.Port()))
}

// Constants of sock_diag(7), which asks the kernel for one socket by its addresses.
const (
	sockDiagByFamily = 20
	inetDiagNoCookie = ^uint32(0)
	tcpListen        = 10 // a TCP state
)

// diagID is struct inet_diag_sockid: ports and addresses in network order.
type diagID struct {
	near, far         [2]byte
	nearAddr, farAddr [16]byte
	device            uint32
	cookie            [2]uint32
}

// diagRequest is a header and struct inet_diag_req_v2.
type diagRequest struct {
	header                     unix.NlMsghdr
	family, protocol, ext, pad uint8
	states                     uint32
	id                         diagID
}

// diagAnswer is a header and struct inet_diag_msg.
type diagAnswer struct {
	header                        unix.NlMsghdr
	family, state, timer, retries uint8
	id                            diagID
	expires, in, out, uid, inode  uint32
}

var errNoDiag = errors.New("sock_diag does not answer")

// askDiag asks for the socket that is bound to near and connected to far. An error means that there is no answer: the
// kernel has no such socket, or does not support the request.
func askDiag(near, far netip.AddrPort) (owner, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_INET_DIAG)
	if err != nil {
		return owner{}, fmt.Errorf("open sock_diag: %w", err)
	}
	defer func() { _ = unix.Close(fd) }() // no data is lost
	// The kernel answers before Sendto returns; the limit is for one that does not.
	limit := unix.NsecToTimeval(time.Second.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return owner{}, fmt.Errorf("limit sock_diag: %w", err)
	}
	request := diagRequest{
		header: unix.NlMsghdr{Len: uint32(unsafe.Sizeof(diagRequest{})), Type: sockDiagByFamily, Flags: unix.NLM_F_REQUEST},
		family: unix.AF_INET6, protocol: unix.IPPROTO_TCP, states: ^uint32(0),
		id: diagID{cookie: [2]uint32{inetDiagNoCookie, inetDiagNoCookie}},
	}
	nearAddr, farAddr := near.Addr().Unmap().AsSlice(), far.Addr().Unmap().AsSlice()
	if len(nearAddr) == 4 {
		request.family = unix.AF_INET
	}
	copy(request.id.nearAddr[:], nearAddr)
	copy(request.id.farAddr[:], farAddr)
	binary.BigEndian.PutUint16(request.id.near[:], near.Port())
	binary.BigEndian.PutUint16(request.id.far[:], far.Port())
	text := unsafe.Slice((*byte)(unsafe.Pointer(&request)), unsafe.Sizeof(request))
	if err := unix.Sendto(fd, text, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return owner{}, fmt.Errorf("ask sock_diag: %w", err)
	}
	buf := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, buf, 0)
	if err != nil {
		return owner{}, fmt.Errorf("read the sock_diag answer: %w", err)
	}
	var answer diagAnswer
	if uintptr(n) < unsafe.Sizeof(answer) {
		return owner{}, errNoDiag
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&answer)), unsafe.Sizeof(answer)), buf)
	// Without a connection the kernel returns the socket that listens at near.
	if answer.header.Type != sockDiagByFamily || answer.state == tcpListen || answer.id.near != request.id.near || answer.id.far != request.id.far {
		return owner{}, errNoDiag
	}
	return owner{answer.uid, answer.inode}, nil
}
