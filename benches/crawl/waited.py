"""Runs a command, and prints its time and memory as the kernel reports them.

This is a small process of its own, because the reported peak of a command is at least that of the process that started it.
"""

import json
import os
import subprocess
import sys
import time

began = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, _, usage = os.wait4(process.pid, 0)
seconds = time.perf_counter() - began
print(json.dumps({"seconds": seconds, "cpu": usage.ru_utime + usage.ru_stime, "kib": usage.ru_maxrss}))
