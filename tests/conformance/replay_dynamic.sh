# replay_dynamic.sh PROGRAM ROOT WORK: tests the output and exit status of replay_dynamic.
set -eu
program=$1 root=$2 work=$3
mkdir -p "$work"
cd "$work"
cases=$root/tests/cases/dynamic_cases.json

# expect STATUS TEXT ARGUMENTS...: expects the exit status and that the output contains the text.
expect() {
  local status=$1 text=$2 got=0
  shift 2
  "$program" "$@" >out.txt 2>&1 || got=$?
  if [ "$got" != "$status" ] || ! grep -qF -- "$text" out.txt; then
    echo "replay_dynamic $*: status $got, wanted $status and '$text':"
    cat out.txt
    exit 1
  fi
}

expect 0 "71 passed, 0 failed" "$cases"
expect 2 "cannot be read" absent.json
# A case with another counter must fail.
sed 's/"hits": *0\b/"hits": 7/' "$cases" >wrong.json
expect 1 "FAILED always_constant" wrong.json
