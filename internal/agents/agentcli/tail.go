package agentcli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// longestLine is the longest line that is read; longer ones are skipped. Codex and Claude Code write results of some
// 100 KB, and pictures of a few MB.
const longestLine = 4 << 20

// markSize is how many of the bytes read last are kept, to check whether the file is still the same.
const markSize = 64

// errNotRegular is the error for a file that is a link, a pipe or a directory.
var errNotRegular = errors.New("not a regular file")

// tail reads the lines that were added to a file since the last look.
type tail struct {
	path   string
	info   fs.FileInfo // at the last look; nil: there was none
	offset int64       // end of the last complete line
	mark   []byte      // the bytes before offset
	base   int64       // total length of the previous files at this path, so that a sequence never decreases
	midway bool        // offset may be within a line: everything up to the next line end is skipped
}

// unchanged reports whether the file is as it was at the last look.
func (t *tail) unchanged(info fs.FileInfo) bool {
	return t.info != nil && info.Size() == t.info.Size() && info.ModTime().Equal(t.info.ModTime()) && os.SameFile(info, t.info)
}

// continues reports whether the file only grew: it was not replaced, truncated or rewritten.
func (t *tail) continues(file *os.File, info fs.FileInfo) bool {
	if t.info == nil || !os.SameFile(info, t.info) || info.Size() < t.offset {
		return false
	}
	before := make([]byte, len(t.mark))
	_, err := file.ReadAt(before, t.offset-int64(len(before)))
	return err == nil && bytes.Equal(before, t.mark)
}

// replaced keeps the sequence increasing when another file has replaced the one that was read.
func (t *tail) replaced() {
	if t.info != nil {
		t.base += t.offset
	}
}

// begin starts at offset of a file.
func (t *tail) begin(offset int64) {
	t.info, t.mark = nil, nil
	t.offset, t.midway = offset, offset > 0
}

// read passes each complete line from offset on to each, with the sequence of its end. A last line without line end
// is still being written: it is read at the next look.
func (t *tail) read(file *os.File, info fs.FileInfo, each func(line []byte, end int64)) error {
	r := bufio.NewReaderSize(io.NewSectionReader(file, t.offset, info.Size()-t.offset), 64<<10)
	var line []byte
	var length int64
	for {
		part, err := r.ReadSlice('\n')
		length += int64(len(part))
		if length <= longestLine {
			line = append(line, part...)
		} else {
			line = line[:0]
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return t.rest(file, info)
		case err != nil:
			return fmt.Errorf("read %s: %w", t.path, err)
		}
		t.offset += length
		if !t.midway && length <= longestLine {
			if text := bytes.TrimSpace(line); len(text) > 0 {
				each(text, t.base+t.offset)
			}
		}
		t.midway = false
		line, length = line[:0], 0
	}
}

// rest records how far the file was read.
func (t *tail) rest(file *os.File, info fs.FileInfo) error {
	mark := make([]byte, min(markSize, t.offset))
	if _, err := file.ReadAt(mark, t.offset-int64(len(mark))); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: %w", t.path, err)
	}
	t.mark, t.info = mark, info
	return nil
}

// openRegular opens a regular file for reading, and never follows a link.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	file, err := openNoFollow(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("open %s: %w", path, errNotRegular)
	}
	if err != nil {
		_ = file.Close() // it was only opened for reading
		return nil, nil, err
	}
	return file, info, nil
}

// readSmall reads a regular file of at most limit bytes.
func readSmall(path string, limit int64) ([]byte, error) {
	file, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info.Size() > limit {
		return nil, fmt.Errorf("read %s: %d bytes, more than %d", path, info.Size(), limit)
	}
	text, err := io.ReadAll(io.LimitReader(file, limit))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return text, nil
}
