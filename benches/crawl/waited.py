"""Runs a command, and says what it took by the kernel's account.

A process of its own, and a small one: the peak that the kernel tells of a command is never below that of whoever started it.
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
