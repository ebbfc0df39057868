# Tests the help of the tool and the errors for invalid arguments.
# Tests savedmodel/tool/command_line.cc, keel.cc and model_file.cc.
. "$(dirname "$0")/common.sh"
expect "Runs a model on the inputs in files" "$keel" help
expect "Usage: keel [OPTIONS...] COMMAND" "$keel" --help
expect "Usage: keel inspect [OPTIONS...] FILE" "$keel" help inspect
expect "--row TABLE ID" "$keel" help inspect
expect "Usage: keel diff [OPTIONS...] A B" "$keel" diff --help
expect "--atol" "$keel" diff --help
expect "Usage: keel predict [OPTIONS...] MODEL INPUTS..." "$keel" predict -h
expect "keel 0." "$keel" --version
expect "keel 0." "$keel" version
expect_error 2 "convert " "$keel"
expect_bad "keel: unknown command 'train'; see keel --help" "$keel" train
expect_bad "unknown command 'train'" "$keel" help train
expect_bad "keel: unknown option '--fast'; see keel --help" "$keel" --fast
expect_bad "keel predict: unknown option '--fast'; see keel predict --help" "$keel" predict a b --fast=1
expect_bad "keel predict: INPUTS is required" "$keel" predict a
expect_bad "FILE is required" "$keel" inspect
expect_bad "unexpected argument 'c'" "$keel" diff a b c
expect_bad "--atol: 1 required FLOAT missing" "$keel" diff a b --atol
expect_bad "--row: At least 2 required" "$keel" inspect a --row b
expect_bad "--atol: must be at least 0, received '-2'" "$keel" diff a b --atol 1 --atol=-2
expect_bad "--atol: must be a number, received 'many'" "$keel" diff a b --atol many
expect_bad "--atol: must be at least 0, received '-1'" "$keel" diff a b --atol -1
expect_bad "--atol: must be at least 0, received 'nan'" "$keel" diff a b --atol=nan
expect_bad "--batch_size: must be at least 1, received '0'" \
  "$keel" predict "$files/ranker.keras" "$files/rows.json" --batch_size 0
expect_bad "--rankdir: must be TB, BT, LR, RL; received 'XY'" "$keel" plot a b --rankdir XY
if [ -w /dev/full ]; then
  status=0
  "$keel" help >/dev/full 2>"$work/out" || status=$?
  [ "$status" -eq 2 ] || fail "a full disk is no error"
fi
