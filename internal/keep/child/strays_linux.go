package child

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/internal/files/secret"
)

// Times of the sweep.
const (
	sweepGrace = time.Second     // for a keeper that is still at work, which needs half of it
	termGrace  = lastGrace       // from SIGTERM to SIGKILL
	sweepTime  = 5 * time.Second // after which processes that SIGKILL does not end are left
	sweepLooks = 10              // empty scans in a row that end the sweep
	listLooks  = 2               // for a list: one scan may miss processes that fork and die constantly
)

// Strays lists the descendants of outlives that were killed together with their keeper, or had none, by their tags. It
// covers its own pid namespace, and of other users' processes what the kernel shows. It takes a few milliseconds for a
// hundred processes.
func Strays() ([]Stray, error) { return straysOf(anyOutlive) }

// anyOutlive selects the strays of every outlive.
func anyOutlive(tag) bool { return true }

func straysOf(which func(tag) bool) ([]Stray, error) {
	l, err := newLookout(which)
	if err != nil {
		return nil, err
	}
	return l.list()
}

// SweepStrays ends what [Strays] lists, after one second in which a keeper may still do so: SIGTERM, half a second, and
// SIGKILL until none is left. It never kills unidentified processes, nor those of a server with [KillGroup]. It returns
// at once when there is nothing to do, otherwise within a few seconds; the error is ctx's or says that /proc cannot be
// read. It is meant for a goroutine at outlive's start.
func SweepStrays(ctx context.Context) (SweepReport, error) { return sweepStrays(ctx, anyOutlive) }

func sweepStrays(ctx context.Context, which func(tag) bool) (SweepReport, error) {
	var report SweepReport
	l, err := newLookout(which)
	if err != nil {
		return report, err
	}
	found, err := l.list()
	if err != nil || len(found) == 0 {
		return report, err
	}
	if err := sleep(ctx, sweepGrace); err != nil {
		return report, err
	}
	if report.Found, err = l.list(); err != nil {
		return report, err
	}
	began, asked := time.Now(), map[int]bool{}
	for empty := 0; empty < sweepLooks; {
		dying := time.Since(began)
		if dying > sweepTime {
			report.Left, err = l.list()
			return report, err
		}
		empty++
		err := l.look(func(pid int, b tag) {
			empty = 0
			switch {
			case dying >= termGrace:
				signalStray(pid, b, unix.SIGKILL)
			case !asked[pid]:
				signalStray(pid, b, unix.SIGTERM)
				signalStray(pid, b, unix.SIGCONT)
				asked[pid] = true
			}
		})
		if err == nil {
			err = sleep(ctx, pause(dying-termGrace))
		}
		if err != nil {
			return report, err
		}
	}
	return report, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// signalStray signals a stray if it is still the same process.
func signalStray(pid int, b tag, sig unix.Signal) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if newProcReader().tagOf(pid) == b { // checked again now that the pidfd holds the process
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}

// tagOf reads a tag from the limit or the environment.
func (r *procReader) tagOf(pid int) tag {
	if b := limitTag(pid); b.valid() {
		return b
	}
	return r.environTag(pid)
}

// strayScan scans for strays repeatedly.
type strayScan struct {
	which func(tag) bool
	space uint64       // our pid namespace
	ours  []tag        // instances: ours, and the outlive that started us
	above map[int]bool // our ancestors
	alive map[tag]bool // instances checked; the dead stay dead
	proc  *procReader
}

func newLookout(which func(tag) bool) (*strayScan, error) {
	space, err := pidSpace("self")
	if err != nil {
		return nil, fmt.Errorf("look for leftover processes: %w", err)
	}
	self, proc := os.Getpid(), newProcReader()
	return &strayScan{
		which: which, space: space, above: ancestors(self), alive: make(map[tag]bool),
		ours: []tag{ownTag().instance(), proc.tagOf(self).instance()},
		proc: proc,
	}, nil
}

// look calls f for each stray as it is found. The newest processes come first: one that forks and dies constantly exists
// only briefly.
func (l *strayScan) look(f func(pid int, b tag)) error {
	proc, err := os.Open("/proc")
	if err != nil {
		return fmt.Errorf("look for leftover processes: %w", err)
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("look for leftover processes: %w", err)
	}
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if name[0] > '9' {
			continue
		}
		if pid, err := strconv.Atoi(name); err == nil && !l.above[pid] && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	for _, pid := range newestFirst(pids, newestPID()) {
		b := l.proc.tagOf(pid)
		if !mayBeStray(b, l.space, l.ours) || !l.which(b) || l.living(b.instance()) {
			continue
		}
		// In another pid namespace the tag's PID means another process.
		if there, err := pidSpace(strconv.Itoa(pid)); err == nil && there == l.space && !l.dead(pid) {
			f(pid, b)
		}
	}
	return nil
}

// newestPID is the number that the kernel gave to a process last; 0: it is not known.
func newestPID() int {
	load, _ := os.ReadFile("/proc/loadavg")
	_, pid, _ := bytes.Cut(bytes.TrimSpace(load), []byte("/"))
	_, pid, _ = bytes.Cut(pid, []byte(" "))
	newest, _ := strconv.Atoi(string(pid))
	return newest
}

// newestFirst sorts processes by when they got their numbers. Numbers above the newest are from before they began anew.
func newestFirst(pids []int, newest int) []int {
	slices.SortFunc(pids, func(a, b int) int {
		if before := a > newest; newest > 0 && before != (b > newest) {
			if before {
				return 1
			}
			return -1
		}
		return b - a
	})
	return pids
}

func (l *strayScan) living(instance tag) bool {
	if alive, known := l.alive[instance]; known && !alive {
		return false
	}
	l.alive[instance] = instance.living()
	return l.alive[instance]
}

// list is the result of several scans.
func (l *strayScan) list() ([]Stray, error) {
	var list []Stray
	seen := make(map[int]bool)
	for range listLooks {
		err := l.look(func(pid int, b tag) {
			if seen[pid] {
				return
			}
			seen[pid] = true
			cmdline, _ := l.proc.read(pid, "/cmdline") // not readable: not shown
			argv := strings.Split(string(bytes.TrimRight(cmdline, "\x00")), "\x00")
			list = append(list, Stray{PID: pid, Outlive: b.pid(), Command: strings.TrimSpace(secret.Line(argv))})
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// mayBeStray says whether b may be a stray's, if its outlive is dead: not ours, not of the outlive that started us, not
// spared.
func mayBeStray(b tag, space uint64, ours []tag) bool {
	if !b.valid() || b.slot() == spared || b.space() != fold(space, spaceBits) {
		return false
	}
	return !slices.Contains(ours, b.instance())
}

func (l *strayScan) dead(pid int) bool {
	s, err := l.proc.stat(pid)
	return err != nil || s.state == 'Z' || s.state == 'X'
}

// ancestors are the processes above pid.
func ancestors(pid int) map[int]bool {
	above := make(map[int]bool)
	for pid = parentOf(pid); pid > 0 && !above[pid]; pid = parentOf(pid) {
		above[pid] = true
	}
	return above
}

// Mechanisms lists what keeps processes from surviving outlive, strongest first.
func Mechanisms() []Mechanism {
	list := []Mechanism{
		{Name: "keeper", InUse: keeperWorks(), Detail: "ends everything within 0.5 s when outlive is gone, however it went"},
		{Name: "subreaper", InUse: keeperWorks(), Detail: "outlive takes over what a killed keeper leaves"},
		{Name: "tag", InUse: tagsWork(), Detail: "owner tag in RLIMIT_LOCKS, which descendants inherit"},
		{Name: "cookie", InUse: ownTag().valid(), Detail: cookieVar + " in the environment, for the sweep at the next start"},
		{Name: "pidfd", InUse: ownTag().valid(), Detail: "no signal reaches an unrelated process with a reused pid"},
		{Name: "process group", InUse: true, Detail: "killed while the dead leader still holds its number"},
		{Name: "cgroup", Detail: "not used"},
	}
	if !keeperWorks() {
		list[0].Detail = "not possible here: processes are started directly"
	}
	if !tagsWork() {
		list[2].Detail = "not possible here: RLIMIT_LOCKS is limited"
	}
	return list
}

func keeperWorks() bool {
	keeping.mu.Lock()
	defer keeping.mu.Unlock()
	return ownTag().valid() && keeping.tries < keeperTries
}

// tagsWork reports whether RLIMIT_LOCKS takes a tag.
func tagsWork() bool {
	var lim unix.Rlimit
	err := unix.Prlimit(0, unix.RLIMIT_LOCKS, nil, &lim)
	return err == nil && lim.Max >= uint64(ownTag())
}
