package main

// underWine is what Go's standard library needs to run under Wine 8, where three things are missing:
//
//   - NtSetInformationFile answers STATUS_NOT_IMPLEMENTED for FileDispositionInformationEx, so that nothing can be removed: the
//     copy takes the way that Go has for older versions of Windows.
//   - AF_UNIX. In the copies such a socket is one of TCP on 127.0.0.1, and the file at its path holds the port. A file called *.sock
//     is a socket.
//   - Symbolic links. CreateSymbolicLink says that it has made one, and has not: in the copy it says what Windows says to users
//     without the right to.
var underWine = []change{
	{"internal/syscall/windows/at_windows.go", "case STATUS_INVALID_INFO_CLASS,", "case NTStatus(0xC0000002), STATUS_INVALID_INFO_CLASS,"},

	{"net/sock_windows.go", "func sysSocket(family, sotype, proto int) (syscall.Handle, error) {",
		"func sysSocket(family, sotype, proto int) (syscall.Handle, error) {\n\tif family == syscall.AF_UNIX {\n\t\tfamily = syscall.AF_INET\n\t}\n"},
	{"net/unixsock_posix.go", "func sockaddrToUnix(sa syscall.Sockaddr) Addr {",
		"func sockaddrToUnix(sa syscall.Sockaddr) Addr {\n\tif _, ok := sa.(*syscall.SockaddrInet4); ok {\n\t\treturn &UnixAddr{Name: \"@\", Net: \"unix\"}\n\t}\n"},
	{"net/unixsock_posix.go", "return &UnixListener{fd: fd, path: fd.laddr.String(), unlink: true}, nil",
		"fd.laddr = laddr\n\treturn &UnixListener{fd: fd, path: laddr.Name, unlink: true}, nil"},

	{"os/file_windows.go", "func Symlink(oldname, newname string) error {\n",
		"func Symlink(oldname, newname string) error {\n\tif true {\n\t\treturn &LinkError{\"symlink\", oldname, newname, syscall.ERROR_PRIVILEGE_NOT_HELD}\n\t}\n"},
	{"os/types_windows.go", "\tm := fs.mode()\n", "\tm := fs.mode()\n\tif n := fs.name; len(n) > 5 && n[len(n)-5:] == \".sock\" && m.IsRegular() {\n\t\tm |= ModeSocket\n\t}\n"},

	{"syscall/syscall_windows.go", "func Bind(fd Handle, sa Sockaddr) (err error) {",
		"func Bind(fd Handle, sa Sockaddr) (err error) {\n\tif u, ok := sa.(*SockaddrUnix); ok {\n\t\treturn bindPath(fd, u.Name)\n\t}\n"},
	{"syscall/syscall_windows.go", "func Connect(fd Handle, sa Sockaddr) (err error) {",
		"func Connect(fd Handle, sa Sockaddr) (err error) {\n\tif u, ok := sa.(*SockaddrUnix); ok {\n\t\treturn connectPath(fd, u.Name)\n\t}\n"},
	{"syscall/syscall_windows.go", "func Listen(s Handle, n int) (err error) {", byPath + "\nfunc Listen(s Handle, n int) (err error) {"},
}

// byPath gives a socket of TCP the manners of one of AF_UNIX: its file must not exist yet, and nobody listens where there is none.
const byPath = `
func bindPath(fd Handle, path string) error {
	if err := Bind(fd, &SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	sa, err := Getsockname(fd)
	if err != nil {
		return err
	}
	file, err := Open(path, O_CREAT|O_EXCL|O_WRONLY, 0o600)
	if err == ERROR_FILE_EXISTS || err == ERROR_ALREADY_EXISTS {
		return Errno(10048) // WSAEADDRINUSE
	}
	if err != nil {
		return err
	}
	defer CloseHandle(file)
	port := sa.(*SockaddrInet4).Port
	_, err = Write(file, []byte{byte(port >> 8), byte(port)})
	return err
}

func connectPath(fd Handle, path string) error {
	file, err := Open(path, O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer CloseHandle(file)
	port := make([]byte, 2)
	if n, err := Read(file, port); err != nil || n != 2 {
		return Errno(10061) // WSAECONNREFUSED
	}
	return Connect(fd, &SockaddrInet4{Port: int(port[0])<<8 | int(port[1]), Addr: [4]byte{127, 0, 0, 1}})
}
`
