"""The catalogue of messages (runtime/messages/*.def) and the sources say the same, and every message has a sound translation.

Sources -> catalogue: every piece of text in a statement that makes a message stands in some form of the catalogue.
Catalogue -> sources: the fixed pieces of every form stand in the sources.
"""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
STRING = r'"(?:[^"\\\n]|\\.)*"'
# Not for users: assertions on our own modules, which the verifier of MLIR words for us.
INTERNAL = re.compile(r"dialects/(dist/DistDialect|plan/|net/Structure)|passes/(codegen/|plan/Reasons|partition/VerifyPartition|partition/Moves|"
                      r"partition/Partition\.cpp|optimize/)|tools/msc-opt|runtime/plan/PlanText|Print[A-Z]\w*\.cpp|AstPrinter|Formatter")
# What CLI11 says, and what it calls things.
FROM_CLI11 = re.compile(r"^(Usage|OPTIONS|SUBCOMMAND|Positionals|Options|Subcommands|REQUIRED|Needs|Excludes|Print this help|Display program)|"
                        r"^\{0\} (requires|excludes) \{1\}$")


def unquote(text):
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m.group(1), m.group(1)), text[1:-1])


def joined(literals):
    return "".join(unquote(s) for s in re.findall(STRING, literals))


errors = []
codes, forms = {}, []  # forms: (file, code, English, Chinese)
LITERALS = rf"({STRING}(?:\s*{STRING})*)"
for path in sorted((root / "runtime/messages").glob("*.def")):
    text = re.sub(r"^\s*//.*", "", path.read_text(), flags=re.M)
    entry = re.compile(rf"^(?:CODE\((\d+),\s*{LITERALS},\s*{LITERALS},\s*{LITERALS},\s*{LITERALS}\)"
                       rf"|(?:SAYS\((\d+),\s*|TEXT\(){LITERALS},\s*{LITERALS}\)|#include .*)$", re.M)
    rest = entry.sub("", text).strip()
    if rest:
        errors.append(f"{path.name}: not understood: {rest[:80]}")
    for m in entry.finditer(text):
        if m.group(1):
            if m.group(1) in codes:
                errors.append(f"{path.name}: code {m.group(1)} is defined twice")
            codes[m.group(1)] = [joined(m.group(i)) for i in range(2, 6)]
        elif m.group(7):
            forms.append((path.name, m.group(6), joined(m.group(7)), joined(m.group(8))))

CHINESE = re.compile(r"[\u4e00-\u9fff]")
PLACEHOLDER = re.compile(r"\{\d!?\}")
seen = set()
for name, code, english, chinese in forms:
    if english in seen:
        errors.append(f"{name}: twice: {english}")
    seen.add(english)
    if code and code not in codes:
        errors.append(f"{name}: code {code} has no CODE line: {english}")
    if sorted(PLACEHOLDER.findall(english)) != sorted(PLACEHOLDER.findall(chinese)):
        errors.append(f"{name}: the placeholders of the translation differ: {english}")
    numbers = re.findall(r"\{(\d)!?\}", english)
    if sorted(numbers) != [str(i) for i in range(len(numbers))]:
        errors.append(f"{name}: placeholders are not 0, 1, ...: {english}")
    words = re.search(r"[a-z]{2,} [a-z]{2,}", re.sub(r"'[^']*'", "", english))
    if words and not CHINESE.search(chinese) and not re.search(r"mpirun|^--|msrun", english):
        errors.append(f"{name}: not translated: {english}")
for code, (meaning, chinese, wrong, right) in codes.items():
    if not any(form[1] == code for form in forms):
        errors.append(f"code {code} belongs to no message")
    if not CHINESE.search(chinese):
        errors.append(f"code {code} is not explained in Chinese")
    if bool(wrong) != bool(right):
        errors.append(f"code {code} has half an example")


def expanded(text):
    """The forms without {a|b}."""
    m = re.search(r"\{([^{}|]*(?:\|[^{}|]*)+)\}", text)
    if not m:
        return [text]
    return [f for word in m.group(1).split("|") for f in expanded(text[:m.start()] + word + text[m.end():])]


fixed = {piece for _, _, english, _ in forms for form in expanded(english) for piece in PLACEHOLDER.split(form) if piece}
catalogue = "\n".join(fixed)

# The literals of all sources, and those in statements that make messages.
MAKES = re.compile(r"\b(emitError|emitWarning|emitRemark|emitOpError|error|fail|failAt|failed|expected|expect|diagnostic|Error|bad|usage|wrong|"
                   r"note|proven|printError|StrategyError|damaged|missing|complain|unsupported|warnIdle|wrongKind|trouble|addHelp|is|"
                   r"add_option|add_flag|add_subcommand|attachNote|refused|report|idle|noCluster)\b\s*[({]|\b(help|error|reason|why|text|what|message|said)\b\s*(=|<<|\+=)|<< \"|return StrategyError")
pieces, sources = set(), []
for folder in ("frontend", "dialects", "passes", "compiler", "runtime", "tools"):
    for path in sorted((root / folder).rglob("*")):
        if path.suffix not in (".cpp", ".h", ".mir"):
            continue
        source = re.sub(r"^\s*#.*$", "", path.read_text(), flags=re.M) if path.suffix != ".mir" else path.read_text()
        source = re.sub(r'"\s*\n\s*"', "", re.sub(r"(?<![:\"])//[^\n]*", "", source))
        literals = [unquote(s) for s in re.findall(STRING, source)]
        sources += literals
        if INTERNAL.search(str(path)) or path.suffix == ".mir":
            continue
        for statement in re.split(r";\s*\n|\{\s*\n", source):
            if not MAKES.search(statement):
                continue
            for literal in re.findall(STRING, statement):
                for piece in re.split(r"\{[^{}' ]*\}", unquote(literal)):
                    pieces.add((path.name, piece))

# What stands like a message, but is printed on stdout, or into files.
NO_MESSAGE = re.compile(r"Explain\.cpp|DiffText\.cpp|^ no strategies of the others|^ on the mesh$|^typed, with the others (following it|chosen anew)|^ in the model$|Operators\.cpp|Types\.cpp|Operation\.cpp|epoch: |, loss is |^run: rank|^rank size|^train dataset|fortran_order|"
                        r"^--transport cluster|^--device cuda$|^the message$")
regexes = []
for _, _, english, _ in forms:
    for form in expanded(english):
        parts = re.split(r"(\{\d!?\})", form)
        pattern = "".join(re.escape(part) if i % 2 == 0 else "(.+?)" if "!" in part else ".+?" for i, part in enumerate(parts))
        regexes.append((re.compile(pattern, re.S), sum(len(part) for part in parts[::2])))


def isMessage(text, depth=0):
    """The catalogue has the text with values filled in; what looks like a message within it, too."""
    if len(re.findall(r"[a-z]{2,}", text)) < 2 or depth > 3:
        return True
    for regex, letters in regexes:
        if letters >= 6 and (m := regex.fullmatch(text)) and all(isMessage(group, depth + 1) for group in m.groups()):
            return True
    return False


for name, piece in sorted(pieces):
    if len(re.findall(r"[a-z]{2,}", piece)) < 2 or " " not in piece.strip() or NO_MESSAGE.search(name) or NO_MESSAGE.search(piece):
        continue
    bare = piece.removeprefix("msrun: warning: ").removeprefix("note: ").removeprefix("msc: ")
    if all(half.strip() in catalogue for half in bare.split(": ", 1)) or any(isMessage(before + bare + behind)
                                        for before in ("", "x", "'x") for behind in ("", "x", "x'", "x x")):
        continue
    errors.append(f"{name}: runtime/messages/*.def lack: {piece}")

whole = {piece.strip() for s in sources for piece in re.split(r"\{[^{}' ]*\}", s)}
every = "\n".join(sources)


def isSaid(piece):
    """The piece is made of pieces of the sources, none of them torn into bits."""
    reach = [True] + [False] * len(piece)
    for begin in range(len(piece)):
        if not reach[begin]:
            continue
        for end in range(len(piece), begin, -1):
            part = piece[begin:end]
            if not reach[end] and (part in every if len(part) >= 6 else part.strip() in whole or not re.search("[a-z]", part)):
                reach[end] = True
    return reach[-1]


for name, _, english, _ in forms:
    if not FROM_CLI11.search(english) and not all(isSaid(p) for form in expanded(english) for p in PLACEHOLDER.split(form)):
        errors.append(f"{name}: stale, the sources do not say: {english}")

for error in errors:
    print(error)
print(f"{len(forms)} messages, {len(codes)} codes")
sys.exit(bool(errors) or len(forms) < 700)
