# train_ctr --dynamic: tables for unbounded ids, without a vocabulary.
. "$(dirname "$0")/common.sh"
small_data "$work/data" 300
cd "$work"
train=("$bin/train_ctr" --data data --epochs 2 --batch_size 50 --workers 1)
for model in dlrm wide_deep dcn; do
  "${train[@]}" --model $model --dynamic --strategy tpu --cores 2 --export $model.keras \
    --write_predictions "$model.csv" >out
  grep -q "table item: 11 rows, 11 ids admitted, 0 evicted" out || fail "$(cat out)"
  grep -q "table user: 23 rows" out || fail "$(cat out)"
done
"${train[@]}" --dynamic --strategy cpu --capacity 5 --eviction lru --admission count:2 \
  --not_admitted hashed:3 --dynamic_columns item --in_order --progressive >out
grep -qE "table item: [1-5] rows, [0-9]+ ids admitted, [1-9][0-9]* evicted" out || fail "$(cat out)"
if grep -q "table user" out; then fail "the vocabulary of user was replaced: $(cat out)"; fi
grep -qE "^progressive auc 0\.[0-9]{4}$" out || fail "no progressive AUC: $(cat out)"
expect_error 0 "hashed:K" "$bin/train_ctr" --help
expect_error 2 "--dynamic" "${train[@]}" --capacity 3
expect_error 2 "--admission must be one of" "${train[@]}" --dynamic --admission often
expect_error 2 "count:N" "${train[@]}" --dynamic --admission count
expect_error 2 "capacity" "${train[@]}" --dynamic --eviction lru
expect_error 2 "'price'" "${train[@]}" --dynamic --dynamic_columns price
