package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/line/backend"
)

// knowledgeFile is the file with what was learned of a command. Its name covers everything that could change the
// command's behaviour: the command line, the directory, size and time of each file among its words, and the variables or headers that are
// configured for it, but for credentials, which change often.
func knowledgeFile(argv []string, executable, dir string, given map[string]string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q\n", argv, dir)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains([]string{"authorization", "cookie"}, strings.ToLower(name)) {
			fmt.Fprintf(h, "%q %q\n", name, given[name])
		}
	}
	for _, word := range append([]string{executable}, argv[1:]...) {
		if !filepath.IsAbs(word) {
			word = filepath.Join(dir, word)
		}
		if st, err := os.Stat(word); err == nil && st.Mode().IsRegular() {
			fmt.Fprintf(h, "%s %d %d\n", word, st.Size(), st.ModTime().UnixNano())
		}
	}
	return filepath.Join(stateDir(), "known", hex.EncodeToString(h.Sum(nil)[:12])+".json")
}

// knowledgeLimit is how much of the file is read, in bytes: it holds whole lists of tools.
const knowledgeLimit = 256 << 20

// knowledgeVersion is the version of the file. It must change whenever another version of outlive would misinterpret it.
const knowledgeVersion = 1

// knowledgeForm is the file's content.
type knowledgeForm struct {
	Version int `json:"version"` // knowledgeVersion
	backend.Knowledge
}

// loadKnowledge reads the file. An unreadable one, and one of another version, older or newer, counts as empty: all of it
// can be learned again.
func loadKnowledge(path string) backend.Knowledge {
	var form knowledgeForm
	raw, err := atomicfile.Read(path, knowledgeLimit)
	if err != nil || json.Unmarshal(raw, &form) != nil || form.Version != knowledgeVersion {
		return backend.Knowledge{}
	}
	return form.Knowledge
}

// keepKnowledge returns what keeps in the file what any connection to the command has learned: a gateway has several, whose clients differ.
// Of two programs that learn in the same millisecond one may be forgotten; it is learned again.
func keepKnowledge(path string, failed func(error)) func(was, now backend.Knowledge) {
	var mu sync.Mutex // held from reading to writing
	return func(was, now backend.Knowledge) {
		mu.Lock()
		defer mu.Unlock()
		raw, err := json.Marshal(knowledgeForm{knowledgeVersion, loadKnowledge(path).After(was, now)})
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o700)
		}
		if err == nil {
			err = atomicfile.Write(path, raw)
		}
		if err != nil {
			failed(fmt.Errorf("keep knowledge: %w", err))
		}
	}
}
