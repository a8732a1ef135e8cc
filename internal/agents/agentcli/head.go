package agentcli

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
)

// headSizes are how much of a transcript's beginning is read: little at first, more if that is not enough. Codex
// begins with a line that contains its instructions, some 25 KB.
var headSizes = []int{8 << 10, 256 << 10}

// head is what a transcript's beginning says about its session.
type head struct {
	about
	info   fs.FileInfo // when it was read
	looked uint64
}

// head reads what a transcript's beginning says. Once found it is kept for ever; until then it is read again whenever
// the file has changed.
func (r *Reader) head(path string, fresh func() parser) about {
	h := r.heads[path]
	if h != nil {
		h.looked = r.looks
		if h.dir != "" {
			return h.about
		}
	}
	info, err := os.Lstat(path)
	if err != nil || h != nil && sameFile(info, h.info) {
		return about{}
	}
	file, info, err := openRegular(path)
	if err != nil {
		return about{}
	}
	defer file.Close()
	h = &head{about: learnHead(file, fresh()), info: info, looked: r.looks}
	r.heads[path] = h
	return h.about
}

// learnHead lets a parser read the beginning of a file. The parser is not used for anything else.
func learnHead(file io.ReaderAt, p parser) about {
	for _, size := range headSizes {
		text := make([]byte, size)
		n, err := file.ReadAt(text, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			break
		}
		for line := range bytes.Lines(text[:n]) {
			if bytes.HasSuffix(line, []byte("\n")) {
				p.line(bytes.TrimSpace(line))
			}
			if a := p.what(); a.id != "" && a.dir != "" {
				return *a
			}
		}
		if n < size {
			break
		}
	}
	return *p.what()
}
