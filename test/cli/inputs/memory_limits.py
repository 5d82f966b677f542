"""memory_limits.py COMMAND...: runs COMMAND under ever higher limits on its address space, by pages where the loader gives
way to constructors and main. Each run ends well or with exit code 4 and one `error:` line; the loader's own refusal (127)
comes below a floor only; under 24 MiB the kernel may kill."""
import resource
import subprocess
import sys

KIB = 1 << 10
MIB = 1 << 20


def run_under(size):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (size, size))

    return subprocess.run(sys.argv[1:], preexec_fn=limit, capture_output=True, text=True, timeout=60)


def check(size):
    """Whether it ended well."""
    run = run_under(size)
    if run.returncode == 127 and size < floor:
        return False
    errors = run.stderr.count("error:")
    if run.returncode not in (0, 4) or errors != (1 if run.returncode else 0):
        sys.exit(f"{size // KIB} KiB: exit code {run.returncode}\n{run.stderr}")
    return run.returncode == 0


refused, started = 24 * MIB, 2048 * MIB
while started - refused > 4 * KIB:  # the loader's floor
    middle = (refused + started) // 2 // KIB * KIB
    if run_under(middle).returncode == 127:
        refused = middle
    else:
        started = middle
# Where the loader puts things moves by a few pages: once it may still refuse.
floor = started + 64 * KIB
done = False
for size in [*range(started, floor + MIB, 4 * KIB), *range(floor + MIB, floor + 384 * MIB, 8 * MIB), 2048 * MIB]:
    done = check(size) or done
if not done:
    sys.exit("no limit was enough")
