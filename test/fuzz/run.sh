#!/usr/bin/env bash
# run.sh BUILD SOURCE: with MSC_LONG=1 builds the parser fuzzer and runs it for five minutes (MSC_FUZZ_SECONDS) from the
# texts of the tests and examples, and prints its figures. Without MSC_LONG it is skipped (77): the mutation test of
# test/frontend runs the same checks for seconds.
set -euo pipefail
build=$1 source=$2
[ "${MSC_LONG:-0}" != 0 ] || { echo "skipped: MSC_LONG is not set"; exit 77; }
cmake --build "$build" --target mir_parser_fuzz
corpus=$(mktemp -d)
trap 'rm -rf "$corpus"' EXIT
find "$source/examples" "$source/test/frontend/data" \( -name '*.mir' -o -name '*.ir' \) -exec cp --backup=numbered -t "$corpus" {} +
"$build/bin/msc" compile "$source/examples/quickstart/net.mir" --devices 8 --save-graphs 2 --save-graphs-path "$corpus" \
  --save-graphs-ranks 5 -o "$corpus/net.plan"
mv "$corpus"/rank_5/*.ir "$corpus"
rm -r "$corpus/rank_5" "$corpus/net.plan"
cd "$corpus" # where a crashing input is written
"$build/test/bin/mir_parser_fuzz" -max_total_time="${MSC_FUZZ_SECONDS:-300}" -max_len=20000 -timeout=20 -rss_limit_mb=4096 \
  -print_final_stats=1 -artifact_prefix="$build/test/" "$corpus" > "$build/test/mir_parser_fuzz.log" 2>&1 ||
  { tail -60 "$build/test/mir_parser_fuzz.log"; exit 1; }
grep -a '^stat::' "$build/test/mir_parser_fuzz.log"
