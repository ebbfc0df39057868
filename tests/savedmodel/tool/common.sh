# Sourced by the scripts beside it: what they share. Each gets the folder of the programs, a folder
# of its own, and the root of the sources.
. "$3/tests/examples/common.sh"
keel=$bin/keel cases=$root/tests/cases/keras_models files=$work/files
"$bin/tool_fixtures" "$files"

# expect TEXT COMMAND...: it ends with 0 and says the text.
expect() { expect_error 0 "$@"; }

# expect_bad TEXT COMMAND...: status 2, and one line that says the text.
expect_bad() {
  expect_error 2 "$@"
  [ "$(wc -l <"$work/out")" -eq 1 ] || fail "more than one line: $(cat "$work/out")"
}

# Files that are none: missing, empty, text, cut short.
head -c 2000 "$files/ranker.keras" >"$work/cut.keras"
head -c 2000 "$files/ranker.h5" >"$work/cut.h5"
: >"$work/empty.h5"
echo "no model" >"$work/text.keras"
