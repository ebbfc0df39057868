# Functions that the scripts of this folder source.
set -euo pipefail
bin=$1 work=$2 root=$3
rm -rf "$work"
mkdir -p "$work"

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# small_data FOLDER [ROWS]: writes a small click data set.
small_data() {
  local folder=$1 rows=${2:-600}
  mkdir -p "$folder"
  echo '{"label": "click", "numeric": ["age", "price"], "categorical": ["user", "item"]}' >"$folder/schema.json"
  local part
  for part in train test; do
    awk -v rows="$rows" -v shift="$([ $part = test ] && echo 7 || echo 0)" 'BEGIN {
      print "click,age,price,user,item"
      for (i = 0; i < rows; ++i) {
        u = (i * 7 + shift) % 23; t = (i * 13 + shift) % 11
        printf "%d,%d,%.2f,u%d,\"i,%d\"\n", (u + t) % 2, 20 + i % 50, (i * 37 % 100) / 10, u, t
      }
    }' >"$folder/$part.csv"
  done
}

# expect_error STATUS TEXT COMMAND...: checks that the command exits with the status and prints the
# text.
expect_error() {
  local status=$1 text=$2 got=0
  shift 2
  "$@" >"$work/out" 2>&1 || got=$?
  [ "$got" -eq "$status" ] || fail "status $got, expected $status, of: $*
$(cat "$work/out")"
  grep -qF -- "$text" "$work/out" || fail "no '$text' in the output of: $*
$(cat "$work/out")"
}

same_files() {
  cmp "$1" "$2" || fail "$1 and $2 differ"
}
