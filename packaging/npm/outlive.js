#!/usr/bin/env node
// Starts the program of this system's package with the same arguments, streams and exit status.
"use strict";
const { spawn } = require("node:child_process");

const name = `@outlive-mcp/${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/outlive${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  console.error(`outlive: the package ${name} is not installed. There is none for every system, and npm leaves it out with --omit=optional.`);
  process.exit(127);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit", windowsHide: true });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    // A terminal sends Ctrl-C to the program, too.
    if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
  });
}
child.on("error", (err) => {
  console.error(`outlive: cannot start ${program}: ${err.message}`);
  process.exit(126);
});
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(code);
  }
});
