package main

// wrongClock has a program's wall clock differ from the machine's by OUTLIVE_E2E_CLOCK, such as -4m, in whole seconds: as if it ran on another
// machine, whose clock is wrong. What is measured by the monotonic clock stays as it is: time.Since, timers, timeouts. Times of files,
// which the kernel writes by its own clock, are shown by the program's.
var wrongClock = []change{
	{"time/time.go", "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n", clockOff + "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n\tsec += int64(ClockOff / Second)\n"},
	{"time/time.go", "import (\n", "import (\n\t\"syscall\"\n"},
	{"os/stat_linux.go", "time.Unix(fs.sys.Mtim.Unix())", "time.Unix(fs.sys.Mtim.Unix()).Add(time.ClockOff)"},
	{"os/file_posix.go", "syscall.NsecToTimespec(t.UnixNano())", "syscall.NsecToTimespec(t.Add(-time.ClockOff).UnixNano())"},
}

const clockOff = `// ClockOff is how far the wall clock is off.
var ClockOff = func() Duration {
	text, _ := syscall.Getenv("OUTLIVE_E2E_CLOCK")
	if text == "" {
		return 0
	}
	off, err := ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return off.Truncate(Second)
}()

`
