# Checks that training ends when the validation loss no longer decreases, with the weights of the
# best epoch.
. "$(dirname "$0")/common.sh"
small_data "$work/data"
# Prints the validation curve, one value per epoch.
curve() { sed -n 's/.*val_loss: \([0-9.e-]*\).*/\1/p' "$1"; }
# Random labels, which a model can only memorize.
awk -F, -v OFS=, 'NR > 1 { $1 = (NR * NR * 7919 % 1009) % 2 } { print }' "$work/data/train.csv" >"$work/train.csv"
mv "$work/train.csv" "$work/data/train.csv"
flags=(--data "$work/data" --strategy cpu --learning_rate 0.01 --dropout 0 --embedding_dropout 0)
"$bin/train_ctr" "${flags[@]}" --patience 2 --epochs 50 --export "$work/best.h5" >"$work/out"
curve "$work/out" >"$work/curve"
epochs=$(wc -l <"$work/curve")
best=$(sed -n 's/^weights of epoch \([0-9]*\),.*/\1/p' "$work/out")
[ "$epochs" -eq $((best + 2)) ] || fail "$epochs epochs, the best is $best: $(cat "$work/out")"
[ "$epochs" -lt 50 ] || fail "all epochs have run"
awk -v best="$best" '{ v[NR] = $1 } END { for (i in v) if (v[i] < v[best]) exit 1 }' "$work/curve" ||
  fail "not the best epoch: $(cat "$work/out")"
# A run with as many epochs as the best epoch ends with the same weights.
"$bin/train_ctr" "${flags[@]}" --patience 2 --epochs "$best" --export "$work/short.h5" >"$work/out"
same_files "$work/best.h5" "$work/short.h5"

"$bin/train_ctr" "${flags[@]}" --epochs 2 --validation_split 0 >"$work/out"
! grep -q "val_loss" "$work/out" || fail "validated: $(cat "$work/out")"
grep -q "on 600 rows" "$work/out" || fail "not all rows: $(cat "$work/out")"
"$bin/train_ctr" "${flags[@]}" --epochs 2 --validation_csv "$work/data/test.csv" >"$work/out"
grep -q "on 600 rows, validated on 600" "$work/out" || fail "other rows: $(cat "$work/out")"
# The validation loss on the test rows equals the log loss of the test.
test_loss=$(sed -n 's/.*log_loss \([0-9.]*\).*/\1/p' "$work/out")
curve "$work/out" | awk -v loss="$test_loss" '$1 == loss { found = 1 } END { exit !found }' ||
  fail "no epoch has the test's log loss $test_loss: $(cat "$work/out")"
expect_error 2 "--validation_split: must be" "$bin/train_ctr" "${flags[@]}" --validation_split 1
expect_error 2 "nowhere.csv" "$bin/train_ctr" "${flags[@]}" --validation_csv "$work/nowhere.csv"
