# replay_golden.sh PROGRAM ROOT WORK: tests the output and exit status of replay_golden for valid
# files, failing records and invalid files.
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
    echo "replay_golden $*: status $got, wanted $status and '$text':"
    cat out.txt
    exit 1
  fi
}

expect 0 " passed, 0 failed" "$root/tests/cases/keras_golden.json"
expect 0 " passed, 0 failed" "$root/tests/cases/keras_surface.json"
expect 0 "Exit status" --help
expect 2 "unknown flag --verbose" --verbose
expect 2 "usage"
expect 2 "cannot be read" absent.json
expect 2 "cannot be read" .
printf '{"layers": ' >cut.json
expect 2 "cut.json" cut.json
printf '[]' >list.json
expect 2 "is not an object of sections" list.json
printf '{"meta": {}}' >empty.json
expect 2 "has no records" empty.json
printf '{"layers": {}}' >no_list.json
expect 2 "section 'layers' is not a list of records" no_list.json
printf '{"layers": [{"class": "Dens", "config": {}}], "constraints": [{"class": "NonNeg", "config": {},
  "w": {"shape": [2], "data": [-1, 1]}, "result": {"shape": [2], "data": [0, 2]}}]}' >odd.json
expect 1 "FAILED layers[0] Dens {}" odd.json
expect 1 "unknown layer class 'Dens'" odd.json
expect 1 "result[1]: expected 2, got 1" odd.json
expect 1 "0 passed, 2 failed" odd.json
expect 1 "0 passed, 1 failed" --list-missing odd.json
expect 1 "not there yet: layers Dens, 1 records" --list-missing odd.json
