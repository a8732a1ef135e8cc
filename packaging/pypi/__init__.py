"""Starts the program outlive, which this package installs beside Python's own scripts."""

import os
import subprocess
import sys
import sysconfig


def program():
    """The path of the program; None if it is not where scripts are installed."""
    name = "outlive.exe" if os.name == "nt" else "outlive"
    schemes = [sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")]
    for folder in [os.path.dirname(sys.argv[0])] + [sysconfig.get_path("scripts", scheme) for scheme in schemes]:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    return None


def main():
    path = program()
    if path is None:
        sys.exit("outlive: the program is not beside Python's scripts: install outlive-mcp again")
    argv = [path] + sys.argv[1:]
    if os.name != "nt":
        os.execv(path, argv)
    process = subprocess.Popen(argv)
    while True:
        try:
            sys.exit(process.wait())
        except KeyboardInterrupt:
            pass  # the program has got it, too
