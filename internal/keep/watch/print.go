package watch

import (
	"errors"
	"hash/maphash"
	"io/fs"
	"os"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

const (
	// hashLimit is the size in bytes up to which content decides whether a file changed; above, size and time do.
	hashLimit = 1 << 20
	// tick is the coarsest resolution of file times, FAT's. A file read within a tick of its last change may change
	// again without a new time.
	tick = 2 * time.Second
)

// seed makes sums of this process comparable with each other.
var seed = maphash.MakeSeed()

// stamp distinguishes states of a file without reading it.
type stamp struct {
	size int64
	time int64
}

func stampOf(st fs.FileInfo) stamp {
	return stamp{st.Size(), st.ModTime().UnixNano()}
}

// fingerprint is the known state of a file.
type fingerprint struct {
	stamp
	sum    uint64
	hashed bool
	fresh  bool // size and time being equal proves nothing yet
}

// glance looks at a file without reading it. ok is false if there is no regular file, directly or behind a link.
func glance(name string) (f fingerprint, ok bool) {
	st, err := os.Stat(name)
	if err != nil || !st.Mode().IsRegular() {
		return fingerprint{}, false
	}
	return fingerprint{stamp: stampOf(st)}, true
}

// look reads a file of up to hashLimit. A file that cannot be read is known by size and time only.
func look(name string, now time.Time) (f fingerprint, ok bool) {
	f, ok = glance(name)
	if !ok || f.size > hashLimit {
		return f, ok
	}
	text, err := atomicfile.Read(name, hashLimit)
	if err != nil {
		return f, !errors.Is(err, fs.ErrNotExist)
	}
	f.size, f.sum, f.hashed = int64(len(text)), maphash.Bytes(seed, text), true
	f.fresh = now.Sub(time.Unix(0, f.time)).Abs() < tick
	return f, true
}

// differs reports whether the file changed from f to g.
func (f fingerprint) differs(g fingerprint) bool {
	if f.hashed && g.hashed {
		return f.size != g.size || f.sum != g.sum
	}
	return f.stamp != g.stamp
}
