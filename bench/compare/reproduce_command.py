"""Runs a command and prints one JSON line with its seconds, processor seconds and most memory. Usage: reproduce_command.py
COMMAND…

It is a process of its own, because the memory of a child process begins with that of its parent.
"""

import json
import os
import subprocess
import sys
import time

if __name__ == "__main__":
    begin = time.perf_counter()
    process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{sys.argv[1]} ended with {process.returncode}")
    cpu_seconds = usage.ru_utime + usage.ru_stime
    print(json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_bytes": usage.ru_maxrss * 1024}))
