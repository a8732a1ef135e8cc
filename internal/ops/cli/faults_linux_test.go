package cli

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/outlive-mcp/outlive/internal/testing/faults"
)

var allFaults = flag.Bool("faults.all", false, "run every cell of the fault matrix, some minutes, instead of the main ones")

// This binary is the victim, too; what it is then must not get as far as TestMain.
func init() { faults.VictimIfAsked() }

// mainCells are those that every test run has, one for each way to lose somebody.
var mainCells = map[faults.Fault][]string{
	faults.ServerKilled:  {"npx-like", "cleared env"},
	faults.KeeperKilled:  {"daemon"},
	faults.ClientLeaves:  {"npx-like"},
	faults.HangThenLeave: {"sh -c"},
	faults.Terminated:    {"setsid"},
	faults.Killed:        {"npx-like", "cleared env"},
	faults.BothKilled:    {"cleared env"},
}

// TestFaults: whoever is killed, nothing of a server is left, and whoever is not goes on serving. go run ./bench faults
// measures the same cells.
func TestFaults(t *testing.T) {
	setup := faultSetup(t)
	for _, fault := range faults.Faults() {
		for _, shape := range faults.Shapes() {
			if *allFaults || slices.Contains(mainCells[fault], shape.Name) {
				faultCell(t, string(fault)+"/"+shape.Name, setup, fault, shape)
			}
		}
	}
	setup.Flags = []string{"--standby", "1"}
	for _, fault := range faults.Faults() {
		for _, shape := range faults.Shapes() {
			if *allFaults || fault == faults.ServerKilled && shape.Name == "daemon" {
				faultCell(t, "standby/"+string(fault)+"/"+shape.Name, setup, fault, shape)
			}
		}
	}
}

// TestFaultsOfPoorMachines: what outlive cannot write does not keep it from its work, nor do few descriptors.
func TestFaultsOfPoorMachines(t *testing.T) {
	setup, cells := faultSetup(t), []faults.Fault{faults.Killed}
	if *allFaults {
		cells = []faults.Fault{faults.ServerKilled, faults.KeeperKilled, faults.ClientLeaves, faults.Killed, faults.BothKilled}
	}
	few := faults.Conditions()[0]
	for _, condition := range []faults.Condition{few, faults.UnwritableState()} {
		for _, fault := range cells {
			for _, shape := range faults.Shapes() {
				if *allFaults || shape.Name == "daemon" {
					faultCell(t, condition.Name+"/"+string(fault)+"/"+shape.Name, condition.On(setup), fault, shape)
				}
			}
		}
	}
}

// faultSetup makes this test binary be outlive, by its name.
func faultSetup(t *testing.T) faults.Setup {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	outlive := filepath.Join(t.TempDir(), "outlive")
	if err := os.Symlink(self, outlive); err != nil {
		t.Fatal(err)
	}
	return faults.Setup{Outlive: []string{outlive}, Victim: []string{self}}
}

func faultCell(t *testing.T, name string, setup faults.Setup, fault faults.Fault, shape faults.Shape) {
	t.Run(name, func(t *testing.T) {
		if fault == faults.ServerHangs {
			t.Parallel() // these only wait for a health check
		}
		r, err := setup.Run(t.Context(), fault, shape)
		if err != nil {
			t.Fatal(err)
		}
		for _, left := range r.Left {
			t.Errorf("left: %s", left)
		}
		if r.Before == 0 && fault != faults.ServerHangs { // what was stopped may go on
			t.Error("nobody was killed:", r.Note)
		}
		t.Log(r)
	})
}
