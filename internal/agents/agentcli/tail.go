package agentcli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
)

// longestLine is the longest line that is kept as it is. Of longer ones, such as those with pictures and documents, an
// [abridger] keeps what matters.
const longestLine = 4 << 20

// longestSought is how far back the beginning of a line is sought, in bytes. A document of 20 MB makes a line of 53 MB.
const longestSought = 256 << 20

// markSize is how many of the bytes read last are kept, to check whether the file is still the same.
const markSize = 64

// tail reads the lines that were added to a file since the last look.
type tail struct {
	path   string
	info   fs.FileInfo // at the last look; nil: there was none
	first  int64       // where reading began
	offset int64       // end of the last complete line
	at     int64       // how far was read: farther than offset only within a long line
	half   int64       // bytes after offset: of a last line that is not complete
	mark   []byte      // the bytes before at
	base   int64       // total length of the previous files at this path, so that a sequence never decreases
	midway bool        // at is within a line whose beginning was not read: it is skipped
	long   *abridger   // the line after offset, which is a long one and not complete yet; nil: there is none
}

// continues reports whether the file only grew: it was not replaced, truncated or rewritten.
func (t *tail) continues(file *os.File, info fs.FileInfo) bool {
	if t.info == nil || !os.SameFile(info, t.info) || info.Size() < t.at {
		return false
	}
	before := make([]byte, len(t.mark))
	_, err := file.ReadAt(before, t.at-int64(len(before)))
	return err == nil && bytes.Equal(before, t.mark)
}

// replaced keeps the sequence increasing when another file has replaced the one that was read.
func (t *tail) replaced() {
	if t.info != nil {
		t.base += t.offset
	}
}

// begin starts at offset of a file. midway says that this is not the beginning of a line.
func (t *tail) begin(offset int64, midway bool) {
	t.info, t.mark, t.long = nil, nil, nil
	t.first, t.offset, t.at, t.midway = offset, offset, offset, midway
}

// read passes each complete line to each, with the sequence of its end, until each returns false. The line is nil if it
// could not be read. A last line without line end is still being written: the next look reads it, again if it is short
// and otherwise on, so that not even an endless one is read twice.
func (t *tail) read(file io.ReaderAt, size int64, each func(line []byte, end int64) bool) error {
	r := bufio.NewReaderSize(io.NewSectionReader(file, t.at, size-t.at), 64<<10)
	at := t.at
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		at += int64(len(part))
		line = t.add(line, part)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			if t.half, t.at = at-t.offset, t.offset; t.midway || t.long != nil {
				t.at = at
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("read %s: %w", t.path, err)
		}
		t.offset, t.at = at, at
		if !t.pass(bytes.TrimSpace(line), each) {
			return nil
		}
		line = line[:0]
	}
}

// add adds a part to the line that is being read.
func (t *tail) add(line, part []byte) []byte {
	switch {
	case t.midway:
	case t.long != nil:
		t.long.write(part)
	case len(line)+len(part) > longestLine:
		t.long = &abridger{}
		t.long.write(line)
		t.long.write(part)
		line = line[:0]
	default:
		if len(line)+len(part) > cap(line) {
			line = slices.Grow(line, max(len(line), len(part)))
		}
		line = append(line, part...)
	}
	return line
}

// pass passes a complete line on. One that is empty, or no record at all, is not.
func (t *tail) pass(line []byte, each func(line []byte, end int64) bool) bool {
	unread := t.midway
	if t.long != nil {
		line, unread = t.long.record()
	}
	t.midway, t.long = false, nil
	if unread {
		line = nil
	}
	if len(line) == 0 && !unread {
		return true
	}
	return each(line, t.base+t.offset)
}

// settle records how far the file was read.
func (t *tail) settle(file io.ReaderAt, info fs.FileInfo) error {
	mark := make([]byte, min(markSize, t.at))
	if _, err := file.ReadAt(mark, t.at-int64(len(mark))); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: %w", t.path, err)
	}
	t.mark, t.info = mark, info
	return nil
}

// lineStart returns the beginning of the line with the byte at offset. If that is too far away, midway is true and the
// line is to be skipped.
func lineStart(file io.ReaderAt, offset int64) (start int64, midway bool, err error) {
	block := make([]byte, 64<<10)
	for end := offset; end > 0; {
		if offset-end >= longestSought {
			return offset, true, nil
		}
		part := block[:min(int64(len(block)), end)]
		end -= int64(len(part))
		if _, err := file.ReadAt(part, end); err != nil {
			return 0, false, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return end + int64(i) + 1, false, nil
		}
	}
	return 0, false, nil
}
