package watch

import "golang.org/x/sys/unix"

// watchBudget is how many files and directories may be watched by events; 0: as many as the kernel lets us.
const watchBudget = 0

// eventlessTypes are file systems that others change, too, without inotify hearing of it (statfs(2), linux/magic.h).
// Shared folders of virtual machines, Docker Desktop's and WSL's /mnt are among them as FUSE, 9p and drvfs.
var eventlessTypes = map[uint32]string{
	unix.NFS_SUPER_MAGIC:   "nfs",
	unix.SMB_SUPER_MAGIC:   "smb",
	unix.CIFS_SUPER_MAGIC:  "cifs",
	unix.SMB2_SUPER_MAGIC:  "cifs",
	unix.FUSE_SUPER_MAGIC:  "fuse",
	unix.V9FS_MAGIC:        "9p",
	unix.CODA_SUPER_MAGIC:  "coda",
	unix.AFS_SUPER_MAGIC:   "afs",
	unix.AFS_FS_MAGIC:      "afs",
	unix.CEPH_SUPER_MAGIC:  "ceph",
	unix.NCP_SUPER_MAGIC:   "ncp",
	unix.OCFS2_SUPER_MAGIC: "ocfs2",
	0x53464846:             "drvfs",  // WSL 1
	0x786f4256:             "vboxsf", // VirtualBox
	0xbacbacbc:             "vmhgfs", // VMware
	0x7c7c6673:             "prl_fs", // Parallels
	0x47504653:             "gpfs",
	0x0bd00bd0:             "lustre",
}

// eventless returns the name of dir's file system if it does not report all changes, otherwise "".
func eventless(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return ""
	}
	return eventlessTypes[uint32(st.Type)]
}
