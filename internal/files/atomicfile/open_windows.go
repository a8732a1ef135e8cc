package atomicfile

// withoutWaiting is nothing: there are no named pipes among files here.
const withoutWaiting = 0
