# replay_cases.sh PROGRAM ROOT WORK: tests the output and exit status of replay_cases for valid
# files, failing cases and invalid files.
set -eu
program=$1 root=$2 work=$3
mkdir -p "$work"
cd "$work"

# expect STATUS TEXT ARGUMENTS...: expects the exit status and that the output contains the text.
expect() {
  local status=$1 text=$2 got=0
  shift 2
  "$program" "$@" >out.txt 2>&1 || got=$?
  if [ "$got" != "$status" ] || ! grep -qF -- "$text" out.txt; then
    echo "replay_cases $*: status $got, wanted $status and '$text':"
    cat out.txt
    exit 1
  fi
}

expect 0 "52 passed, 0 failed" "$root/tests/cases/embedding_cases.json"
expect 0 "Exit status" --help
expect 2 "unknown flag --verbose" --verbose
expect 2 "usage"
expect 2 "cannot be read" absent.json
expect 2 "cannot be read" .
printf '[{"name": ' >cut.json
expect 2 "cut.json" cut.json
printf '{"name": "x"}' >dict.json
expect 2 "is not a list of cases" dict.json
printf '[{"name": "x", "inputs": {}}]' >no_case.json
expect 2 "entry 0 is not a case: its 'expected' is missing or has the wrong type" no_case.json
printf '[{"name": "odd", "inputs": {"kind": "quantum"}, "expected": {}}]' >odd.json
expect 1 "FAILED odd" odd.json
expect 1 "unknown kind 'quantum'" odd.json
expect 1 "52 passed, 1 failed" "$root/tests/cases/embedding_cases.json" odd.json
printf '[]' >empty.json
expect 0 "0 passed, 0 failed" empty.json
