# Tests the help of the tool and the errors for invalid arguments.
. "$(dirname "$0")/common.sh"
expect "keel predict MODEL INPUTS" "$keel" help
expect "--atol" "$keel" --help
expect "usage: keel inspect FILE [--row TABLE ID]" "$keel" help inspect
expect "usage: keel diff A B" "$keel" diff --help
expect "keel 0." "$keel" --version
expect_error 2 "keel convert IN OUT" "$keel"
expect_bad "unknown command 'train'" "$keel" train
expect_bad "unknown command 'train'" "$keel" help train
expect_bad "unknown flag '--fast'; see keel help predict" "$keel" predict a b --fast
expect_bad "INPUTS is missing" "$keel" predict a
expect_bad "FILE is missing" "$keel" inspect
expect_bad "unexpected argument 'c'" "$keel" diff a b c
expect_bad "--atol needs 1 values, received 0" "$keel" diff a b --atol
expect_bad "--row needs 2 values, received 1" "$keel" inspect a --row b
expect_bad "--atol is given twice" "$keel" diff a b --atol 1 --atol=2
expect_bad "--atol must be a number of at least 0, received 'many'" "$keel" diff a b --atol many
expect_bad "at least 0, received '-1'" "$keel" diff a b --atol -1
expect_bad "--batch_size must be a whole number of at least 1" \
  "$keel" predict "$files/ranker.keras" "$files/rows.json" --batch_size 0
if [ -w /dev/full ]; then
  status=0
  "$keel" help >/dev/full 2>"$work/out" || status=$?
  [ "$status" -eq 2 ] || fail "a full disk is no error"
fi
