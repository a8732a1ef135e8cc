package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// doorTable is what the door tries of TestBridge and TestMatrix, from testdata/door-cells.txt. Of all their cells most prove what others
// have proved.
type doorTable struct {
	cells   []cell
	trials  map[string][]string    // by the cell's name: what its line says
	pairs   [][2]string            // of the matrix: client and server
	endings map[[2]string][]string // by the pair: how its server's process ends
}

// doorCells is read once; what is wrong with the file fails every test that needs it.
var doorCells = sync.OnceValues(func() (*doorTable, error) {
	text, err := os.ReadFile(filepath.Join(tools.root, "testdata", "door-cells.txt"))
	if err != nil {
		return nil, err
	}
	return parseDoorCells(string(text))
})

func parseDoorCells(text string) (*doorTable, error) {
	table := &doorTable{trials: map[string][]string{}, endings: map[[2]string][]string{}}
	for number, line := range strings.Split(text, "\n") {
		head, list, _ := strings.Cut(line, ":")
		words := strings.Fields(head)
		var err error
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case len(words) == 4 && words[0] == "bridge":
			err = table.addCell(words[1], words[2], words[3], strings.Split(list, ","))
		case len(words) == 3 && words[0] == "matrix":
			err = table.addPair(words[1], words[2], list)
		default:
			err = fmt.Errorf("want bridge LANE CLIENT SERVER: TRIALS or matrix CLIENT SERVER: ENDINGS")
		}
		if err != nil {
			return nil, fmt.Errorf("testdata/door-cells.txt, line %d: %w", number+1, err)
		}
	}
	return table, nil
}

func (d *doorTable) addCell(lane, client, server string, list []string) error {
	c, err := cellOf(lane, client, server)
	if err != nil {
		return err
	}
	if d.trials[c.name()] != nil {
		return fmt.Errorf("%s is there twice", c.name())
	}
	for _, trial := range list {
		trial = strings.TrimSpace(trial)
		if !slices.Contains(trialNames(), trial) {
			return fmt.Errorf("there is no trial %q", trial)
		}
		d.trials[c.name()] = append(d.trials[c.name()], trial)
	}
	d.cells = append(d.cells, c)
	return nil
}

func (d *doorTable) addPair(client, server, list string) error {
	p := [2]string{client, server}
	if !slices.Contains(allPairs(), p) {
		return fmt.Errorf("the matrix has no pair %s×%s", client, server)
	}
	if slices.Contains(d.pairs, p) {
		return fmt.Errorf("%s×%s is there twice", client, server)
	}
	d.pairs = append(d.pairs, p)
	if list == "" {
		d.endings[p] = endings
		return nil
	}
	for ending := range strings.SplitSeq(list, ",") {
		if ending = strings.TrimSpace(ending); !slices.Contains(endings, ending) {
			return fmt.Errorf("there is no ending %q", ending)
		}
		d.endings[p] = append(d.endings[p], ending)
	}
	return nil
}

// cellOf is the cell of the board with these names.
func cellOf(lane, client, server string) (cell, error) {
	for _, c := range allCells() {
		if c.lane == lane && c.client.key == client && c.server.key == server {
			return c, nil
		}
	}
	return cell{}, fmt.Errorf("the board has no cell %s/%s×%s", lane, client, server)
}

// neededTrials is what must have happened on a connection before a trial. All of them need "list": outlive learns from it what may be repeated.
var neededTrials = map[string][]string{
	"killed between calls":        {"subscription"},
	"subscription after the kill": {"killed between calls"},
	"log messages after the kill": {"log messages", "killed between calls"},
	"elicitation after the kill":  {"killed between calls"},
	"sampling after the kill":     {"killed between calls"},
	"error after the kills":       {"killed between calls"},
}

// withNeeded are trials, and what they need.
func withNeeded(trials []string) map[string]bool {
	all := map[string]bool{"list": true, "leave": true}
	var add func(trial string)
	add = func(trial string) {
		all[trial] = true
		for _, needed := range neededTrials[trial] {
			add(needed)
		}
	}
	for _, trial := range trials {
		add(trial)
	}
	return all
}

// chosen are those of a cell's trials that this run makes: all, or at the door those of the table with what they need.
func (c cell) chosen(t *testing.T, all []trial) []trial {
	t.Helper()
	if full() {
		return all
	}
	table, err := doorCells()
	if err != nil {
		t.Fatal(err)
	}
	wanted := withNeeded(table.trials[c.name()])
	return slices.DeleteFunc(all, func(one trial) bool { return !wanted[one.name] })
}

// notContradicted compares what the door has seen of some cells with what docs/COMPATIBILITY.md says of them: the version that the
// client was told, and whether outlive has translated. Clients of both eras are left out: on a busy machine a server may be too slow for
// their probe, and then they speak the other era.
func (b *board) notContradicted(t *testing.T) {
	lines := strings.Split(readDocument(t), "\n")
	for _, c := range allCells() {
		o, tried := b.cells[c.name()]
		if !tried || o.version == "" || c.client.era == "dual" { // without a version it has failed
			continue
		}
		column, how := slices.IndexFunc(lanes, func(l laneOfBoard) bool { return l.key == c.lane }), "native"
		if o.bridged(c) {
			how = "bridged"
		}
		head, want := fmt.Sprintf("| %s | %s | ", c.client.title, c.server.title), fmt.Sprintf("%s, %s: ", o.version, how)
		at := slices.IndexFunc(lines, func(line string) bool {
			rest, ok := strings.CutPrefix(line, head)
			said := strings.Split(rest, " | ")
			return ok && len(said) > column && strings.HasPrefix(said[column], want)
		})
		if at < 0 {
			t.Errorf("%s: the run says %q, and docs/COMPATIBILITY.md does not", c.name(), want)
		}
	}
}

// TestDoorCells: the door tries each client, each server, each lane, each trial and each pair of eras, and lets each client meet each
// server and each of both meet each trial. In the matrix a server in each language ends in each way.
func TestDoorCells(t *testing.T) {
	table, err := doorCells()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range table.cells {
		seen["lane "+c.lane], seen["eras "+c.client.era+", "+c.server.era] = true, true
		seen[c.client.key+" with "+c.server.key] = true
		seen[c.client.key+" over "+c.lane], seen["server "+c.server.key+" over "+c.lane] = true, true
		for trial := range withNeeded(table.trials[c.name()]) {
			seen[c.client.key+" in "+trial], seen["server "+c.server.key+" in "+trial], seen[c.lane+" in "+trial] = true, true, true
		}
	}
	for _, p := range table.pairs {
		seen["matrix client "+p[0]], seen["matrix server "+p[1]] = true, true
		for _, ending := range table.endings[p] {
			seen[languageOf(p[1])+" and "+ending] = true
		}
	}
	for _, want := range wantedAtTheDoor() {
		if !seen[want] {
			t.Errorf("testdata/door-cells.txt lacks %s", want)
		}
	}
	for trial, needed := range neededTrials {
		for _, name := range append(needed, trial) {
			if !slices.Contains(trialNames(), name) {
				t.Errorf("there is no trial %q", name)
			}
		}
	}
}

// languageOf is what a server of the matrix is written in: its SDK.
func languageOf(server string) string {
	return strings.TrimRight(strings.SplitN(server, "-", 2)[0], "0123456789")
}

func wantedAtTheDoor() (all []string) {
	for _, c := range allCells() {
		all = append(all, "lane "+c.lane, "eras "+c.client.era+", "+c.server.era, c.client.key+" with "+c.server.key,
			c.client.key+" over "+c.lane, "server "+c.server.key+" over "+c.lane)
		for _, trial := range trialNames() {
			all = append(all, c.client.key+" in "+trial, "server "+c.server.key+" in "+trial, c.lane+" in "+trial)
		}
	}
	for _, p := range allPairs() {
		all = append(all, "matrix client "+p[0], "matrix server "+p[1])
		for _, ending := range endings {
			all = append(all, languageOf(p[1])+" and "+ending)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestDoorCellsAreRead: a name that the board does not know is no cell that is silently left out.
func TestDoorCellsAreRead(t *testing.T) {
	for text, want := range map[string]string{
		"bridge run go nobody: list":                    "no cell run/go×nobody",
		"bridge walk go go: list":                       "no cell walk/go×go",
		"bridge run go go: dance":                       `no trial "dance"`,
		"bridge run go go":                              `no trial ""`,
		"bridge run go go: list\nbridge run go go:list": "line 2: run/go×go is there twice",
		"matrix go nobody":                              "no pair go×nobody",
		"matrix go ts: dance":                           `no ending "dance"`,
		"matrix go ts\nmatrix go ts":                    "twice",
		"bridge go":                                     "want bridge LANE",
	} {
		if _, err := parseDoorCells(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
