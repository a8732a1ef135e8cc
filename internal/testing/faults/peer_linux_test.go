package faults

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// pidfdArg makes this binary tell whether it gets a pidfd.
const pidfdArg = "-open-a-pidfd"

func TestMain(m *testing.M) {
	VictimIfAsked()
	if len(os.Args) > 1 && os.Args[1] == pidfdArg {
		_, err := unix.PidfdOpen(os.Getpid(), 0)
		fmt.Println(err)
		os.Exit(0)
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // for our children: a second at each exit otherwise, with the detector
	os.Exit(m.Run())
}

// The matrix sees who is left: behind a shell, which keeps nothing, every descendant that has got away is found, and
// nobody of them is there after the cell.
func TestTheMatrixSeesSurvivors(t *testing.T) {
	shell := Peer{Name: "sh", Path: "/bin/sh", prepare: func(_ string, server []string) ([]string, error) {
		return append([]string{"-c", `"$0" "$@"; exit $?`}, server...), nil
	}}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, shape := range Shapes() {
		if shape.wrap != "launcher" && shape.Name != "cleared env" {
			continue // two seconds each, and no other way of getting away
		}
		t.Run(shape.Name, func(t *testing.T) {
			t.Parallel()
			r, err := shell.Run(t.Context(), []string{self}, Killed, shape)
			if err != nil {
				t.Fatal(err)
			}
			want := 1 + len(shape.brood) // the server itself, too: nobody ends it
			if shape.wrap == "launcher" {
				want += 2 // and the shell between
			}
			if r.Before != want || len(r.Left) != want {
				t.Errorf("%d before, left: %q, want %d", r.Before, r.Left, want)
			}
			for _, left := range r.Left {
				var pid int
				if _, err := fmt.Sscan(left, &pid); err != nil {
					t.Fatal(err)
				}
				// The number may be somebody else's by now.
				if p, there := readProcess(pid); there && p.String() == left {
					t.Errorf("still there after the cell: %s", left)
				}
			}
		})
	}
}

// What the kernel refuses under withoutPidfd is refused, and nothing else.
func TestWithoutPidfd(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	setup := Conditions()[3].On(Setup{Victim: []string{self}})
	for want, argv := range map[string][]string{
		"function not implemented\n": append(setup.Under, self, pidfdArg),
		"<nil>\n":                    {self, pidfdArg},
	} {
		got, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
		if err != nil || string(got) != want {
			t.Errorf("%q: %q, %v; want %q", argv, got, err, want)
		}
	}
}
