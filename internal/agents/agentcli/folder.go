package agentcli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	// newestKept is how many of a folder's latest files are remembered.
	newestKept = 1024
	// transcriptsKept is how many of these are read in any case. If living processes may have written more, up to
	// transcriptsMost are.
	transcriptsKept = 4
	transcriptsMost = 64
	// newestFor is how long their order is. It changes without the folder when an old one is written again.
	newestFor = time.Minute
	// listedMost is how many entries of a folder are read. Of a larger one something is unread.
	listedMost = 20_000
	// settledAfter is how old a folder's last change must be for its listing to be complete: the clock of a file
	// system is coarse, so that a file may be added within the same tick.
	settledAfter = 2 * time.Second
)

// folder remembers the files in a folder, which is listed again only when something was added or removed.
type folder struct {
	info    fs.FileInfo
	settled bool // nothing can have been added since without changing info
	names   []string
	fault   error  // why names are not all; nil: they are
	newest  []file // the latest first; nil: not known
	sorted  time.Time
	left    file // the latest of the others; zero: there are none
	looked  uint64
}

// file is a file of a folder, and when it was last written as far as is known.
type file struct {
	path string
	at   time.Time
}

// list returns a folder's present content, and has it followed.
func (r *Reader) list(path string) (*folder, error) {
	f, err := r.peek(path)
	if f.info != nil {
		r.watch.follow(path, f)
	}
	return f, err
}

// peek returns a folder's present content, also with an error: as much as could be read. A folder that does not exist is
// empty.
func (r *Reader) peek(path string) (*folder, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		if err == nil || missing(err) {
			r.await(path)
			return &folder{}, nil
		}
		return &folder{}, err
	}
	f := r.folders[path]
	if f != nil && f.settled && os.SameFile(f.info, info) && f.info.ModTime().Equal(info.ModTime()) {
		f.looked = r.looks
		return f, f.fault
	}
	dir, err := os.Open(path)
	if err != nil {
		return &folder{}, err
	}
	defer dir.Close()
	f = &folder{info: info, settled: time.Since(info.ModTime()) > settledAfter, looked: r.looks}
	f.names, f.fault = dir.Readdirnames(listedMost + 1)
	switch {
	case len(f.names) > listedMost:
		f.names, f.fault = f.names[:listedMost], fmt.Errorf("%s has more than %d entries: %w", path, listedMost, errUnread)
	case errors.Is(f.fault, io.EOF):
		f.fault = nil
	case f.fault != nil:
		f.settled = false // it may have been a moment's
	}
	slices.Sort(f.names)
	r.folders[path] = f
	return f, f.fault
}

// sameFile reports whether a file is as it was at another look, by its size and time. nil: it was not there.
func sameFile(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// await follows the nearest existing folder above one that does not exist: the first session of a CLI creates it.
func (r *Reader) await(path string) {
	if r.watch == nil {
		return
	}
	for parent := filepath.Dir(path); ; parent = filepath.Dir(parent) {
		if info, err := os.Stat(parent); err == nil && info.IsDir() {
			f := r.folders[parent]
			if f == nil {
				f = &folder{info: info} // not settled: it is listed when it is needed
				r.folders[parent] = f
			}
			f.looked = r.looks
			r.watch.follow(parent, f)
			return
		}
		if parent == filepath.Dir(parent) {
			return
		}
	}
}

// listNewest returns a folder with the latest of its files whose names match.
func (r *Reader) listNewest(path string, match func(name string) bool) (*folder, error) {
	f, err := r.list(path)
	f.order(path, match)
	return f, err
}

// order finds the latest files whose names match, unless they are known.
func (f *folder) order(path string, match func(name string) bool) {
	if f.newest != nil && time.Since(f.sorted) <= newestFor {
		return
	}
	all := []file{}
	for _, name := range f.names {
		if !match(name) {
			continue
		}
		full := filepath.Join(path, name)
		if info, err := os.Lstat(full); err == nil && info.Mode().IsRegular() {
			all = append(all, file{full, info.ModTime()})
		}
	}
	slices.SortStableFunc(all, func(a, b file) int { return b.at.Compare(a.at) })
	f.newest, f.sorted, f.left = all, time.Now(), file{}
	if len(all) > newestKept {
		f.newest, f.left = slices.Clone(all[:newestKept]), all[newestKept]
	}
}

// lastWritten is when one of a folder's transcripts was last written; zero: there is none.
func (r *Reader) lastWritten(path string) (at time.Time, err error) {
	f, err := r.list(path)
	for _, name := range f.names {
		if !isTranscript(name) {
			continue
		}
		if info, err := os.Lstat(filepath.Join(path, name)); err == nil && info.ModTime().After(at) {
			at = info.ModTime()
		}
	}
	return at, err
}

func isTranscript(name string) bool { return filepath.Ext(name) == ".jsonl" }

// readNewest reads those of a folder's transcripts that are wanted and may matter. These are the latest, and all that may
// be of a living process which no session names: the very latest may be its present one, however old it is. Those of
// named are left out.
func (r *Reader) readNewest(w *wanted, kind Kind, f *folder, named map[string]bool, fresh func() parser) ([]*transcript, error) {
	var all []*transcript
	var errs []error
	seen := 0
	for _, file := range f.newest {
		if named[file.path] {
			continue
		}
		if seen++; seen > transcriptsKept && !w.mayBeOf(kind, "", file.at) {
			return all, errors.Join(errs...)
		}
		dir := r.head(file.path, fresh).dir
		if dir == "" || !w.has(dir) {
			continue
		}
		since, lives := w.Since, w.mayBeOf(kind, dir, file.at)
		switch {
		case seen > transcriptsKept && !lives:
			continue
		case len(all) == transcriptsMost:
			return all, errors.Join(append(errs, leftOut(file, transcriptsMost))...)
		case lives && len(all) == 0:
			since = time.Time{}
		}
		t, err := r.transcript(file.path, since, fresh)
		errs = append(errs, err)
		if t != nil {
			all = append(all, t)
		}
	}
	if w.mayBeOf(kind, "", f.left.at) {
		errs = append(errs, leftOut(f.left, newestKept))
	}
	return all, errors.Join(errs...)
}

// leftSince is an error if a file that was written since then is left out. A zero time asks for the latest only.
func (f *folder) leftSince(since time.Time) error {
	if since.IsZero() || f.left.at.Before(since) {
		return nil
	}
	return leftOut(f.left, newestKept)
}

// leftOut is the error about the first file that is left out after the latest.
func leftOut(f file, kept int) error {
	return fmt.Errorf("%s: all but the latest %d files: %w", filepath.Dir(f.path), kept, errUnread)
}
