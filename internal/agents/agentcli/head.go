package agentcli

import (
	"io"
	"io/fs"
	"os"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

const (
	// headSize is how much of a transcript's beginning is read at most: the lines that begin there, whatever their
	// length. Codex begins with a line that contains its instructions, some 25 KB; a session may begin with a picture.
	headSize = 256 << 10
	// headEnd is where the last of them must end.
	headEnd = 64 << 20
)

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
	file, info, err := atomicfile.OpenPlain(path)
	if err != nil {
		return about{}
	}
	defer file.Close()
	h = &head{about: learnHead(file, info.Size(), fresh()), info: info, looked: r.looks}
	r.heads[path] = h
	return h.about
}

// learnHead lets a parser read the beginning of a file. The parser is not used for anything else.
func learnHead(file io.ReaderAt, size int64, p parser) about {
	t := tail{}
	_ = t.read(file, min(size, headEnd), func(line []byte, end int64) bool { // what was read before an error counts
		p.line(line)
		a := p.what()
		return (a.id == "" || a.dir == "") && end < headSize
	})
	return *p.what()
}
