package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

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
