"""check_interrupt.py FOLDER COMMAND...: once dumps wait in FOLDER, SIGINT ends the command by that signal, and leaves nothing there."""
import pathlib
import signal
import subprocess
import sys
import time

folder = pathlib.Path(sys.argv[1])
process = subprocess.Popen(sys.argv[2:], preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
until = time.monotonic() + 60
while process.poll() is None and time.monotonic() < until and not list(folder.glob(".dumps*")):
    time.sleep(0.005)
process.send_signal(signal.SIGINT)
code = process.wait(60)
assert code == -signal.SIGINT, code
assert not list(folder.iterdir()), list(folder.iterdir())
