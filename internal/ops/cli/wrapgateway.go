package cli

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/files/stateversion"
	"github.com/outlive-mcp/outlive/internal/ops/clients"
)

// gatewayFile is a file of a wrapped client that belongs to what the words name: an outlive.yaml, or the record.
func gatewayFile(c *clients.Client, ending string, words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return filepath.Join(configDir(), "wrapped", c.Name+"-"+hex.EncodeToString(sum[:4])+ending)
}

func recordPath(file clients.File) string {
	return gatewayFile(file.Client, ".record.json", file.Path)
}

// findRecord returns the record of a file and its path; nil if its servers were not moved. If the configuration
// directory has changed since, the gateway's entry has the path.
func findRecord(file clients.File) (string, *clients.Record, error) {
	path := recordPath(file)
	record, err := loadRecord(path)
	if record != nil || err != nil {
		return path, record, err
	}
	servers, err := file.Client.Servers(file.Text)
	if err != nil {
		return "", nil, err
	}
	for _, s := range servers {
		i := slices.Index(s.Args, "-c")
		if !s.Gateway() || i < 0 || i+1 >= len(s.Args) {
			continue
		}
		beside := filepath.Join(filepath.Dir(s.Args[i+1]), filepath.Base(path))
		if record, err := loadRecord(beside); record != nil || err != nil {
			return beside, record, err
		}
	}
	return path, nil, nil
}

// gatherFile moves the servers of one file behind a gateway and returns how many. The record and the outlive.yaml are
// there before the client's file points to them.
func (f *wrapFlags) gatherFile(io streams, file clients.File, o clients.Options) (int, error) {
	if file.Project {
		return 0, fmt.Errorf("%s: with --gateway the servers move into your own directory, which others who share this file do not have", file.Path)
	}
	o.Label = gatewayLabel
	o.Config = func(scope []string) string {
		return gatewayFile(file.Client, ".yaml", append([]string{file.Path}, scope...)...)
	}
	g, err := file.Client.Gather(file.Text, file.Path, o)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file.Path, err)
	}
	showDiff(io.out, file.Path, file.Text, g.Text)
	for _, path := range slices.Sorted(maps.Keys(g.Configs)) {
		showDiff(io.out, path, nil, g.Configs[path])
	}
	tellOutcomes(io.out, file.Client, g.Outcomes, map[clients.Action]string{
		clients.Already: "left: it is the gateway", clients.Moved: "moved behind the gateway"})
	moved := count(g.Outcomes, clients.Moved)
	if f.dryRun || moved == 0 {
		return moved, nil
	}
	undo, err := storeGateway(recordPath(file), g)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file.Path, err)
	}
	if err := f.save(io, &file, g.Text); err != nil {
		undo()
		return 0, err
	}
	for _, path := range slices.Sorted(maps.Keys(g.Configs)) {
		fmt.Fprintf(io.out, "%s: the servers stand in %s\n", file.Client.Name, path)
	}
	return moved, nil
}

// gatewayLabel makes a server's name fit for outlive.yaml, with room for a number behind it.
func gatewayLabel(name string) string {
	label := strings.TrimLeft(labelOf(name), "-_.")
	return cmp.Or(label[:min(len(label), longestName-4)], "server")
}

// storeGateway writes a gateway's files, readable by the user only, since environment variables often hold secrets. undo
// removes them. An existing record is never overwritten, because it has the only copy of what was moved.
func storeGateway(record string, g *clients.Gathered) (undo func(), err error) {
	var written []string
	undo = func() {
		for _, path := range written {
			_ = os.Remove(path)
		}
	}
	text, err := json.MarshalIndent(g.Record, "", "  ")
	if err != nil {
		return undo, fmt.Errorf("write record: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(record), 0o700); err != nil {
		return undo, fmt.Errorf("write record: %w", err)
	}
	files := maps.Clone(g.Configs)
	files[record] = text
	for path, text := range files {
		err := atomicfile.Create(path, text)
		if errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("%w: it is left from an earlier move; run outlive unwrap, or move it away", err)
		}
		if err != nil {
			undo()
			return undo, err
		}
		written = append(written, path)
	}
	return undo, nil
}

// loadRecord reads the record of a file, nil if its servers were not moved.
func loadRecord(path string) (*clients.Record, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	var r clients.Record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("read record %s: %w", path, err)
	}
	if err := stateversion.Check(path, r.Version, clients.RecordVersion); err != nil {
		return nil, err
	}
	return &r, nil
}

// dropGateway removes the files that are not needed once the servers are back. A changed outlive.yaml is kept and
// reported.
func dropGateway(io streams, record string, r *clients.Record) error {
	for _, g := range r.Groups {
		text, err := os.ReadFile(g.Config)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil || !g.Made(text):
			fmt.Fprintf(io.out, "%s: changed since it was made, so it was kept: %s\n", r.Client, g.Config)
		default:
			if err := os.Remove(g.Config); err != nil {
				return fmt.Errorf("remove gateway's file: %w", err)
			}
		}
	}
	if err := os.Remove(record); err != nil {
		return fmt.Errorf("remove record: %w", err)
	}
	return nil
}
