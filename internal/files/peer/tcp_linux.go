package peer

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
)

// tables have a line for each TCP socket of our network namespace. A program that connects to an IPv4 address through an IPv6
// socket has its line in the second one.
var tables = []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"}

// looks is how often the tables are read until a connection counts as not found: a table that changes while it is read may
// leave out a line.
const looks = 3

// TellsTCP reports whether this system says whose a TCP connection is.
func TellsTCP() bool {
	f, err := os.Open(tables[0])
	if err != nil {
		return false
	}
	_ = f.Close() // only read from
	return true
}

// TCP returns the user id of the other end of a TCP connection within this machine. local is our end. The
// error wraps [ErrUnknown] if the system does not list the connection, or lists it without an owner because the other end was
// closed.
func TCP(local, remote netip.AddrPort) (uid int, err error) {
	if owner, err := askDiag(remote, local); err == nil {
		return owner.user(remote, local)
	}
	return fromTables(remote, local)
}

// owner is whose an end of a connection is, as the system lists it. The inode is that of the open socket: when nobody has it open
// any more it is 0, and the user is 0 whoever had it, which is nobody's right.
type owner struct{ uid, inode uint32 }

func (o owner) user(near, far netip.AddrPort) (uid int, err error) {
	if o.inode == 0 {
		return 0, fmt.Errorf("%w: no open socket %v to %v", ErrUnknown, near, far)
	}
	return int(o.uid), nil
}

// fromTables looks for the socket that is bound to near and connected to far where every system lists it. That takes milliseconds:
// the kernel goes through all its sockets.
func fromTables(near, far netip.AddrPort) (uid int, err error) {
	for range looks {
		for _, table := range tables {
			f, err := os.Open(table)
			if err != nil {
				continue // without IPv6 there is only one
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

// ownerIn looks through a table. Of several lines that of an open socket counts.
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

// listed is an address as the tables write it: words of 32 bits as this processor reads them, in hexadecimal, and the port.
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
