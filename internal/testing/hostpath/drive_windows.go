package hostpath

const drive = "C:"
