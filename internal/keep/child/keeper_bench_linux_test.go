package child

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkStart is a start and the exit that follows, with a keeper and without. To read: ns/start is what Start
// takes, ns/exit what lies between a SIGKILL and onExit.
func BenchmarkStart(b *testing.B) {
	for _, mode := range []string{"direct", "keeper"} {
		b.Run(mode, func(b *testing.B) {
			if mode == "direct" {
				EndKeeper() // no keeper is started after it
			}
			defer RestKeeper()
			Prepare()
			var started, ended time.Duration
			for range b.N {
				exited := make(chan Status, 1)
				began := time.Now()
				p, err := Start(Spec{Argv: []string{"/bin/sleep", "60"}}, func(s Status) { exited <- s })
				started += time.Since(began)
				if err != nil {
					b.Fatal(err)
				}
				time.Sleep(2 * time.Millisecond) // it is through its exec and asleep
				began = time.Now()
				_ = p.Kill()
				<-exited
				ended += time.Since(began)
				closeAll(p.ours)
			}
			b.ReportMetric(float64(started.Nanoseconds())/float64(b.N), "ns/start")
			b.ReportMetric(float64(ended.Nanoseconds())/float64(b.N), "ns/exit")
			if l := keeping.now; l != nil {
				b.ReportMetric(float64(privateKiB(b, l.proc.Pid)), "KiB-keeper")
			}
		})
	}
}

// privateKiB is the memory of a process that only it uses.
func privateKiB(tb testing.TB, pid int) (sum int) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var n int
		if k, v, _ := strings.Cut(line, ":"); strings.HasPrefix(k, "Private_") {
			if _, err := fmt.Sscan(v, &n); err != nil {
				tb.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}
