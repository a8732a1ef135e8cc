package watch

import (
	"slices"

	"golang.org/x/sys/unix"
)

// mostEntries is how many files and directories are watched by events; 0: as many as the kernel lets us.
const mostEntries = 0

// eventlessTypes are file systems that others change, too, without inotify hearing of it (statfs(2), linux/magic.h).
// Shared folders of virtual machines, Docker Desktop's and WSL's /mnt are among them as FUSE, 9p and drvfs.
var eventlessTypes = []uint32{
	unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.FUSE_SUPER_MAGIC,
	unix.V9FS_MAGIC, unix.CODA_SUPER_MAGIC, unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC, unix.CEPH_SUPER_MAGIC,
	unix.NCP_SUPER_MAGIC, unix.OCFS2_SUPER_MAGIC,
	0x53464846, // drvfs: WSL 1
	0x786f4256, // vboxsf: VirtualBox
	0xbacbacbc, // vmhgfs: VMware
	0x7c7c6673, // prl_fs: Parallels
	0x47504653, // gpfs
	0x0bd00bd0, // lustre
}

// eventless reports whether dir's file system does not report all changes.
func eventless(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && slices.Contains(eventlessTypes, uint32(st.Type))
}
