"""Arrows between folders go one way (CONTRIBUTING.md): check_arrows.py ROOT."""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
FOLDERS = ("runtime", "dialects", "frontend", "passes", "compiler", "tools")
MAY = {
    "runtime": set(),
    "dialects": set(),
    "frontend": {"dialects"},
    "passes": {"dialects"},
    "compiler": {"dialects", "frontend", "passes", "runtime"},
    "tools": set(FOLDERS),
}
# Plain data that both sides share, and the catalogue of messages.
SHARED = {"runtime/" + name for name in ("messages/Catalogue.h", "Nearest.h", "Status.h", "plan/Sharding.h", "plan/Refinement.h", "plan/CopyRegion.h", "plan/LocalRegions.h", "plan/RankClasses.h", "plan/calls/Window.h", "plan/calls/PoolingSide.h", "data/Philox.h", "machine/MachineModel.h", "machine/TimeText.h")}
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)

wrong, seen = [], set()
for folder in FOLDERS:
    for path in sorted((root / folder).rglob("*")):
        if path.suffix not in (".h", ".cpp"):
            continue
        for include in INCLUDE.findall(path.read_text()):
            target = include.split("/")[0]
            seen.add(include)
            if target in FOLDERS and target != folder and target not in MAY[folder] and include not in SHARED:
                wrong.append(f"{path.relative_to(root)} includes {include}")
for name in sorted(SHARED):
    wrong += [f"{name} includes {i}" for i in INCLUDE.findall((root / name).read_text()) if i not in SHARED]
wrong += [f"{name} is not shared any more" for name in SHARED - seen]
print("\n".join(wrong))
sys.exit(bool(wrong))
