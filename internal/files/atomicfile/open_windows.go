package atomicfile

// withoutWaiting is 0: there are no named pipes among files on Windows.
const withoutWaiting = 0
