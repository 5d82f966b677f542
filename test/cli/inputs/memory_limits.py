"""memory_limits.py COMMAND...: runs COMMAND under ever higher limits on its address space. Each run ends well or with exit
code 4 and one `error:` line; the loader's own refusal (127) comes below a floor only."""
import resource
import subprocess
import sys

done = False
for mebibytes in list(range(32, 420, 8)) + [2048]:
    def limit(size=mebibytes << 20):
        resource.setrlimit(resource.RLIMIT_AS, (size, size))

    run = subprocess.run(sys.argv[1:], preexec_fn=limit, capture_output=True, text=True, timeout=60)
    errors = run.stderr.count("error:")
    if run.returncode == 127 and not done:
        continue
    if run.returncode not in (0, 4) or errors != (1 if run.returncode else 0):
        sys.exit(f"{mebibytes} MiB: exit code {run.returncode}\n{run.stderr}")
    done = done or run.returncode == 0
if not done:
    sys.exit("no limit was enough")
