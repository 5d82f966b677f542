#!/usr/bin/env bash
# refuses.sh CODE REGEX... -- COMMAND...: the command ends with CODE, says exactly one `error:` on stderr, with a code of the
# catalogue at its end, every REGEX is found there (without the code), and the files of the current folder are what they were.
code=$1
shift
patterns=()
while [ "$1" != "--" ]; do patterns+=("$1"); shift; done
shift
list() { find . -type f ! -name refused.stderr -exec sha256sum {} + | sort; }
before=$(list)
"$@" 2> refused.stderr > /dev/null
found=$?
fail() { echo "$1: $*"; cat refused.stderr; exit 1; }
[ "$found" -eq "$code" ] || fail "exit code $found instead of $code" "$@"
[ "$(grep -c 'error: ' refused.stderr)" -eq 1 ] || fail "$(grep -c 'error: ' refused.stderr) errors instead of 1" "$@"
grep -Eq 'error: .*\[MSC[0-9]+\]$' refused.stderr || fail "the error has no code" "$@"
sed -i 's/ \[MSC[0-9]*\]$//' refused.stderr
for pattern in "${patterns[@]}"; do
  grep -Eq -- "$pattern" refused.stderr || fail "no line matches '$pattern'" "$@"
done
[ "$(list)" = "$before" ] || fail "files have changed" "$@"
