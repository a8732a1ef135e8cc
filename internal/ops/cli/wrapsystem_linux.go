package cli

// systemName picks the places of the clients' files, see clients.System.
const systemName = "linux"
