# Functions that the scripts of this folder source. Each script gets the folder of the programs, a
# work folder, and the root of the sources.
. "$3/tests/examples/common.sh"
keel=$bin/keel cases=$root/tests/cases/keras_models files=$work/files
"$bin/tool_fixtures" "$files"

# expect TEXT COMMAND...: checks that the command exits with 0 and prints the text.
expect() { expect_error 0 "$@"; }

# expect_bad TEXT COMMAND...: checks for status 2 and one line that contains the text.
expect_bad() {
  expect_error 2 "$@"
  [ "$(wc -l <"$work/out")" -eq 1 ] || fail "more than one line: $(cat "$work/out")"
}

# Invalid files: missing, empty, text, truncated.
head -c 2000 "$files/ranker.keras" >"$work/cut.keras"
head -c 2000 "$files/ranker.h5" >"$work/cut.h5"
: >"$work/empty.h5"
echo "no model" >"$work/text.keras"
