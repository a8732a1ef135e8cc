// Command echo is what the benchmark puts under measurement: an MCP server over stdio that costs as little as one can, and
// with "relay COMMAND ARG…" a plain byte relay before a command, the lower end of the benchmark's scale.
//
// The server answers initialize, ping, tools/list and tools/call of its only tool, echo, which returns its argument
// "message" as text, so that the size of a request sets the size of the answer. Notifications are ignored. With
// "MILLISECONDS" it needs so long before it answers; with "both-eras" after that it also answers server/discover, as
// servers of 2026-07-28 do. It is a program of its own because as a part of
// ./bench it would start 0.7 ms later, of 1.8, and each of a thousand would take 0.2 MB more.
//
// It has one goroutine, main, which ends when stdin ends, or the command's stdout.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

// bufferSize is the size of both stream buffers in bytes: one default pipe.
const bufferSize = 64 << 10

func main() {
	if len(os.Args) > 2 && os.Args[1] == "relay" {
		code, err := relayFor(os.Args[2:])
		if err != nil {
			fmt.Fprintln(os.Stderr, "relay:", err)
			code = 1
		}
		os.Exit(code)
	}
	wait, both, err := parseArgs(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "echo:", err)
		os.Exit(2)
	}
	time.Sleep(wait)
	if err := serve(os.Stdin, os.Stdout, both); err != nil {
		fmt.Fprintln(os.Stderr, "echo:", err)
		os.Exit(1)
	}
}

// parseArgs reads the arguments: how many milliseconds the server pretends to need before it can answer, and whether it speaks
// both eras of the protocol.
func parseArgs(args []string) (wait time.Duration, both bool, err error) {
	if len(args) == 2 && args[1] == "both-eras" {
		args, both = args[:1], true
	}
	if len(args) == 0 {
		return 0, both, nil
	}
	ms, err := strconv.Atoi(args[0])
	if err != nil || len(args) > 1 || ms < 0 {
		return 0, both, fmt.Errorf("usage: echo [MILLISECONDS [both-eras]]: got %q", args)
	}
	return time.Duration(ms) * time.Millisecond, both, nil
}

// serve answers each line of in on out until in ends. Answers are flushed only
// when no further request is waiting in the buffer, so that a burst costs one
// write.
func serve(in io.Reader, out io.Writer, both bool) error {
	reader := bufio.NewReaderSize(in, bufferSize)
	writer := bufio.NewWriterSize(out, bufferSize)
	var long []byte
	for {
		line, err := readLine(reader, &long)
		if len(line) > 0 {
			if werr := answer(writer, line, both); werr != nil {
				return fmt.Errorf("answer: %w", werr)
			}
		}
		if err != nil || reader.Buffered() == 0 {
			if ferr := writer.Flush(); ferr != nil {
				return fmt.Errorf("flush: %w", ferr)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
	}
}

// readLine returns the next line; *long holds it when it is longer than the
// buffer of r. The line is valid until the next call.
func readLine(r *bufio.Reader, long *[]byte) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	*long = append((*long)[:0], line...)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = r.ReadSlice('\n')
		*long = append(*long, line...)
	}
	return *long, err
}
