# Tests keel inspect, diff and convert on tables for unbounded ids (D-104).
# Tests savedmodel/tool/stored_table.cc.
. "$(dirname "$0")/common.sh"
cd "$work"
model=$files/dynamic.keras checkpoint=$files/dynamic_checkpoints/ckpt-1.h5

# inspect FILE
for file in "$model" "$files/dynamic.h5"; do
  expect "tables/users  int64 ids, 2 rows of 2, capacity 100" "$keel" inspect "$file"
  tr -d ' ' <out >dense
  for text in "most frequent ids  8714213 (" '"abc" (' '"admission":{"type":"count"' "counters"; do
    grep -qF -- "${text// /}" dense || fail "no '$text' in $(cat out)"
  done
done
expect "/vars/words  string ids, 2 rows of 2" "$keel" inspect "$files/dynamic.weights.h5"
expect "int64 ids, 2 rows of 2, 1 pending ids" "$keel" inspect "$checkpoint"
grep -qF '"not_admitted":' out || fail "no counters in $(cat out)"

# inspect FILE --row TABLE ID
for file in "$model" "$files/dynamic.h5" "$files/dynamic.weights.h5"; do
  expect "[8714213]: count " "$keel" inspect "$file" --row users 8714213
  grep -E "\[8714213\] = -?[0-9.e-]+ -?[0-9.e-]+$" out >row || fail "no row in $(cat out)"
  sed 's/.*= //' row >>rows
  expect "[77]: not in the table, pending count 0" "$keel" inspect "$file" --row users 77
  grep -q "a lookup returns zeros" out || fail "no result of a lookup: $(cat out)"
  expect "[abc]: count " "$keel" inspect "$file" --row words abc
  expect "[d e]: count " "$keel" inspect "$file" --row words "d e"
  expect "a lookup returns fallback row " "$keel" inspect "$file" --row words nothing
done
[ "$(sort -u rows | wc -l)" -eq 1 ] || fail "other rows: $(cat rows)"
expect "last 3, born 1" "$keel" inspect "$checkpoint" --row users 8714213
grep -qF -- "$(sort -u rows)" out || fail "another row: $(cat out)"
grep -q "accumulator = " out || fail "no slot: $(cat out)"
expect "[77]: not in the table, pending count 1" "$keel" inspect "$checkpoint" --row users 77
expect_bad "received 'x'" "$keel" inspect "$model" --row users x
expect_bad "has no weight 'bars'" "$keel" inspect "$model" --row bars 0

# diff
expect "no differences" "$keel" diff "$model" "$files/dynamic.h5"
expect "no differences" "$keel" diff "$model" "$files/dynamic.weights.h5"
expect_error 1 "table tables/users: 1 ids only in B, the first 77" \
  "$keel" diff "$model" "$files/later.keras"
grep -qE "table tables/users: rows of [12] ids differ, by up to .* at 8714213" out ||
  fail "no rows: $(cat out)"
grep -qF "table tables/words: counts of 1 ids differ, the first at \"abc\"" out ||
  fail "no counts: $(cat out)"
expect "no differences" "$keel" diff "$files/dynamic_checkpoints/ckpt-2.h5" "$files/dynamic_checkpoints"
expect_error 1 "ids only in B" "$keel" diff "$checkpoint" "$files/dynamic_checkpoints"
grep -q "slot accumulator of " out || fail "no slots: $(cat out)"
expect_error 1 "only in A" "$keel" diff "$model" "$files/ranker.keras"

# convert
expect "wrote a.h5" "$keel" convert "$model" a.h5
expect "wrote b.keras" "$keel" convert a.h5 b.keras
expect "no differences" "$keel" diff "$model" b.keras
expect "wrote c.keras" "$keel" convert "$model" c.keras --min_count 4
expect_error 1 "ids only in A" "$keel" diff "$model" c.keras
expect "[8714213]: count " "$keel" inspect c.keras --row users 8714213
expect "[-5]: not in the table" "$keel" inspect c.keras --row users -5
expect "wrote d.weights.h5" "$keel" convert "$model" d.weights.h5 --min_count 4
expect "no differences" "$keel" diff c.keras d.weights.h5
expect_bad "--min_count" "$keel" convert "$model" e.keras --min_count -1

# predict
for file in "$model" "$files/dynamic.h5"; do
  expect "within atol" "$keel" predict "$file" "$files/dynamic_rows.json" \
    --expected "$files/dynamic_expected.json" --atol 1e-6
done
