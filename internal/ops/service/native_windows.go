package service

// Native is who keeps services running on this system.
const Native = ForWindows
