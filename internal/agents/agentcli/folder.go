package agentcli

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	// newestKept is how many of a folder's latest files are remembered.
	newestKept = 64
	// listedMost is how many entries of a folder are read.
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
	newest  []string // full paths of the files, the latest first
	looked  uint64
}

// list returns a folder's present content. A folder that does not exist is empty.
func (r *Reader) list(path string) (*folder, error) {
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
		r.watch.follow(path, f)
		return f, nil
	}
	dir, err := os.Open(path)
	if err != nil {
		return &folder{}, err
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(listedMost) // entries that were listed before an error are returned
	slices.Sort(names)
	f = &folder{info: info, settled: time.Since(info.ModTime()) > settledAfter, names: names, looked: r.looks}
	r.folders[path] = f
	r.watch.follow(path, f)
	return f, nil
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

// newestFiles returns the latest files of a folder whose names match.
func (r *Reader) newestFiles(path string, match func(name string) bool) ([]string, error) {
	f, err := r.list(path)
	if err != nil || f.newest != nil || len(f.names) == 0 {
		return f.newest, err
	}
	type dated struct {
		path string
		at   time.Time
	}
	var all []dated
	for _, name := range f.names {
		if !match(name) {
			continue
		}
		full := filepath.Join(path, name)
		if info, err := os.Lstat(full); err == nil && info.Mode().IsRegular() {
			all = append(all, dated{full, info.ModTime()})
		}
	}
	slices.SortStableFunc(all, func(a, b dated) int { return b.at.Compare(a.at) })
	f.newest = []string{}
	for _, d := range all[:min(len(all), newestKept)] {
		f.newest = append(f.newest, d.path)
	}
	return f.newest, nil
}
