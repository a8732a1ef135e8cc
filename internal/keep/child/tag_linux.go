package child

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// tag is an owner tag: it identifies the outlive that started a process, and the server. It is in two places that every
// descendant inherits: in the soft limit of RLIMIT_LOCKS, which kernels since 2.4 do not use and which survives a
// cleared environment, a new session and a double fork; and in the environment, where people see it.
//
// From the highest bit: 8 bits mark, 10 the pid namespace, 22 the pid of outlive, 14 its birth, 10 the slot.
type tag uint64

const (
	tagMark    = 0x4f
	slotBits   = 10
	checkBits  = 14
	pidBits    = 22 // as the kernel's PID_MAX_LIMIT
	spaceBits  = 10
	pidShift   = slotBits + checkBits
	spaceShift = pidShift + pidBits
	markShift  = spaceShift + spaceBits

	spared     = 0               // the slot of servers whose descendants are left alone
	keeperSlot = 1<<slotBits - 1 // the keeper's own
)

// cookieVar is the environment variable that shows the tag.
const cookieVar = "OUTLIVE_COOKIE"

func (b tag) valid() bool       { return b>>markShift == tagMark }
func (b tag) slot() int         { return int(b & (1<<slotBits - 1)) }
func (b tag) instance() tag     { return b &^ (1<<slotBits - 1) }
func (b tag) with(slot int) tag { return b.instance() | tag(slot) }
func (b tag) pid() int          { return int(b >> pidShift & (1<<pidBits - 1)) }
func (b tag) space() uint64     { return uint64(b >> spaceShift & (1<<spaceBits - 1)) }

// cookie is the tag as the environment shows it: instance and slot.
func (b tag) cookie() string {
	return fmt.Sprintf("%014x:%d", uint64(b>>slotBits), b.slot())
}

// parseCookie reads what cookie wrote; 0 is not a tag.
func parseCookie(s string) tag {
	instance, slot, ok := strings.Cut(s, ":")
	high, err1 := strconv.ParseUint(instance, 16, 64-slotBits)
	low, err2 := strconv.ParseUint(slot, 10, slotBits)
	b := tag(high)<<slotBits | tag(low)
	if !ok || err1 != nil || err2 != nil || !b.valid() {
		return 0
	}
	return b
}

// fold hashes a number to so many bits.
func fold(n uint64, bits int) uint64 { return n * 0x9e3779b97f4a7c15 >> (64 - bits) }

// makeTag is the tag of an outlive, by its pid namespace, pid and birth, with slot 0.
func makeTag(space uint64, pid int, birth uint64) tag {
	return tag(uint64(tagMark)<<markShift | fold(space, spaceBits)<<spaceShift |
		uint64(pid)<<pidShift | fold(birth, checkBits)<<slotBits)
}

// ownTag is our instance's; 0 if the system does not tell enough to recognise us later.
var ownTag = sync.OnceValue(func() tag {
	pid := os.Getpid()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	birth, err := birthOf(pid, fd)
	if err != nil {
		return 0
	}
	space, err := pidSpace("self")
	if err != nil || pid >= 1<<pidBits {
		return 0
	}
	return makeTag(space, pid, birth)
})

// pidSpace identifies the pid namespace of a process: its number, or "self".
func pidSpace(pid string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/"+pid+"/ns/pid", &st); err != nil {
		return 0, os.NewSyscallError("stat", err)
	}
	return st.Ino, nil
}

// birthOf distinguishes processes with the same pid: the inode of the pidfd (kernel 6.9 and later), else the start time
// in clock ticks, which is the same for two that follow each other within 10 ms.
func birthOf(pid, pidfd int) (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(pidfd, &fs); err == nil && fs.Type == unix.PID_FS_MAGIC {
		var st unix.Stat_t
		if err := unix.Fstat(pidfd, &st); err != nil {
			return 0, os.NewSyscallError("fstat", err)
		}
		return st.Ino, nil
	}
	s, err := newProcReader().stat(pid)
	return uint64(s.born), err
}

// living reports whether the outlive of tag b may still run.
func (b tag) living() bool {
	fd, err := unix.PidfdOpen(b.pid(), 0)
	if err != nil {
		// EINVAL: the PID is a thread's now.
		return !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EINVAL)
	}
	defer unix.Close(fd)
	if over, err := ended(fd); err != nil || over {
		return err != nil
	}
	birth, err := birthOf(b.pid(), fd)
	if err != nil {
		return true
	}
	return makeTag(0, b.pid(), birth)&(1<<spaceShift-1) == b.instance()&(1<<spaceShift-1)
}

// ended reports whether the process of a pidfd is dead, reaped or not.
func ended(pidfd int) (bool, error) {
	for {
		p := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
		n, err := unix.Poll(p, 0)
		if !errors.Is(err, unix.EINTR) {
			return n > 0, err
		}
	}
}

// set puts the tag on us and on what we start from now on. It fails if RLIMIT_LOCKS is restricted.
func (b tag) set() error {
	var lim unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_LOCKS, nil, &lim); err != nil {
		return os.NewSyscallError("prlimit", err)
	}
	lim.Cur = uint64(b)
	return os.NewSyscallError("prlimit", unix.Prlimit(0, unix.RLIMIT_LOCKS, &lim, nil))
}

// limitTag reads the limit of a process, even of a zombie; 0 without a tag, or for another user's process.
func limitTag(pid int) tag {
	var lim unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &lim) != nil || !tag(lim.Cur).valid() {
		return 0
	}
	return tag(lim.Cur)
}

// environTag reads the cookie in the initial environment of a living process; 0 if there is none or it is not readable.
func (r *procReader) environTag(pid int) tag {
	env, _ := r.read(pid, "/environ")
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if value, ok := bytes.CutPrefix(kv, []byte(cookieVar+"=")); ok {
			return parseCookie(string(value))
		}
	}
	return 0
}

// signalGroup signals the group of a pidfd's process, even after it was reaped and its PID reused. The flag is
// PIDFD_SIGNAL_PROCESS_GROUP of kernel 6.9; older ones return EINVAL.
func signalGroup(pidfd int, sig syscall.Signal) error {
	const processGroup = 1 << 2
	return unix.PidfdSendSignal(pidfd, sig, nil, processGroup)
}

// signalAlone signals the process of a pidfd.
func signalAlone(pidfd int, sig syscall.Signal) error {
	return unix.PidfdSendSignal(pidfd, sig, nil, 0)
}
