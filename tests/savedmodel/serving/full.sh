#!/usr/bin/env bash
# full.sh BIN WORK [GROUP...]: runs the tests of the server with the numbers that its specification
# names, on a machine without other work, and prints their summary lines. BIN is the folder of the
# programs of a release build. Takes about an hour on two cores.
set -euo pipefail
bin=$1 work=$2
shift 2
here=$(dirname "$(readlink -f "$0")")
export KEEL_SERVING_SWAPS=1000 KEEL_SERVING_MEMORY_SWAPS=100 KEEL_SERVING_UNLOADS=100 KEEL_SERVING_KILLS=200
export KEEL_SERVING_TABLE_ROWS=16777216 KEEL_SERVING_MUTATIONS=100000 KEEL_SERVING_MODEL_MUTATIONS=100000
export KEEL_SERVING_REQUESTS=10000 KEEL_SERVING_REFUSED_REQUESTS=10000 KEEL_SERVING_HALF_REQUESTS=10000
export KEEL_SERVING_BITS_ROWS=100000 KEEL_SERVING_EQUAL_SWAPS=100 KEEL_SERVING_BODY_MIB=64
failed=0
# run PROGRAM GROUP [TEST...]: prints the lines of the tests, each with its name.
run() {
  local program=$1 group=$2
  shift 2
  python3 "$here/run_$program.py" "$bin" "$work/$group" "$group" "$@" 2>&1 | sed "s/^/$group: /" ||
    failed=1
}
groups=${*:-swap answers limits bits tables files load}
for group in $groups; do
  case $group in
    swap) run server swap s034 s036 s037 s038 ;;
    answers) run server answers s079 s151 ;;
    limits) run server limits s162 s166 ;;
    bits) run tables bits ;;
    tables) run tables tables s050 s056 s058 ;;
    files) run hostile files s191 ;;
    load) run batching load s167 ;;
    *) echo "full.sh: unknown group $group" >&2; exit 2 ;;
  esac
done
exit $failed
