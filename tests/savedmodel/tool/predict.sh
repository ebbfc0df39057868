# Tests keel predict with inputs of every kind, and the comparison with expected outputs.
# Tests savedmodel/tool/csv_tensors.cc, json_tensors.cc and predict.cc.
. "$(dirname "$0")/common.sh"
model=$files/ranker.keras expected=$files/expected.json
for inputs in rows.json rows.csv rows.tfrecord rows.tfrecord.gz; do
  for file in ranker.keras ranker.h5; do
    expect "within atol 1e-05" "$keel" predict "$files/$file" "$files/$inputs" --expected "$expected"
  done
  expect "score (5, 1): max difference" \
    "$keel" predict "$model" "$files/$inputs" --expected "$expected" --batch_size 2
done
expect "" "$keel" predict "$model" "$files/rows.json"
cp "$work/out" "$work/printed.json"
expect "wrote" "$keel" predict "$model" "$files/rows.csv" --output "$work/out.json"
same_files "$work/printed.json" "$work/out.json"
expect "max difference 0, within atol 0" \
  "$keel" predict "$model" "$files/rows.json" --expected "$work/out.json" --atol 0
expect "wrote" "$keel" predict "$model" "$files/rows.csv" --output "$work/out.csv"
[ "$(head -1 "$work/out.csv")" = score ] || fail "no header: $(cat "$work/out.csv")"
[ "$(wc -l <"$work/out.csv")" -eq 6 ] || fail "not 5 rows: $(cat "$work/out.csv")"
sed 's/"data": \[0\./"data": [7./' "$expected" >"$work/other.json"
expect_error 1 "1 of 5 too far" "$keel" predict "$model" "$files/rows.json" --expected "$work/other.json"
expect "within atol 10" \
  "$keel" predict "$model" "$files/rows.json" --expected "$work/other.json" --atol 10
expect "and rtol 10" \
  "$keel" predict "$model" "$files/rows.json" --expected "$work/other.json" --atol 0 --rtol 10
sed 's/"shape": \[5, 1\]/"shape": [1, 5]/' "$expected" >"$work/shape.json"
expect_error 1 "float32 (5, 1), expected float32 (1, 5)" \
  "$keel" predict "$model" "$files/rows.json" --expected "$work/shape.json"
# Outputs with another layout differ even if their values are equal.
sed 's/"shape": \[5, 1\]/"shape": [5, 1], "row_splits": [0, 2, 5]/' "$expected" >"$work/ragged.json"
cmp -s "$expected" "$work/ragged.json" && fail "nothing is ragged"
expect_error 1 "score: dense, expected ragged" \
  "$keel" predict "$model" "$files/rows.json" --expected "$work/ragged.json"
# same KEY RAGGED SPARSE ROW_SPLITS INDICES DENSE_SHAPE: prints input or output tensors of
# same.keras.
same() {
  echo "{\"$1\": [
    {\"name\": \"$2\", \"shape\": [3], \"row_splits\": [$4], \"data\": [1, 2, 3]},
    {\"name\": \"$3\", \"shape\": [$6], \"indices\": [$5], \"data\": [4, 5]}]}"
}
same inputs seen tags "0, 1, 3" "0, 2, 1, 5" "2, 6" >"$work/seen.json"
# other TEXT STATUS ROW_SPLITS INDICES DENSE_SHAPE
other() {
  same outputs a b "$3" "$4" "$5" >"$work/same.json"
  expect_error "$2" "$1" \
    "$keel" predict "$files/same.keras" "$work/seen.json" --expected "$work/same.json"
}
other "within atol 1e-05" 0 "0, 1, 3" "0, 2, 1, 5" "2, 6"
other "a: row_splits that differ by up to 1 at [1]" 1 "0, 2, 3" "0, 2, 1, 5" "2, 6"
other "a: row_splits (3,), expected (4,)" 1 "0, 1, 3, 3" "0, 2, 1, 5" "2, 6"
other "b: indices that differ by up to 1 at [1, 1]" 1 "0, 1, 3" "0, 2, 1, 4" "2, 6"
other "b: dense_shape (2, 6), expected (2, 7)" 1 "0, 1, 3" "0, 2, 1, 5" "2, 7"
# Several files are predicted one after the other.
expect "wrote" "$keel" predict "$model" "$files/rows.csv" "$files/rows.csv" --output "$work/twice.csv"
tail -n +2 "$work/out.csv" | cat "$work/out.csv" - >"$work/expected.csv"
same_files "$work/expected.csv" "$work/twice.csv"
cp "$files/rows.tfrecord" "$work/rows_tfrecord-00000-of-00002"
cp "$files/rows.tfrecord.gz" "$work/rows_tfrecord-00001-of-00002.gz"
expect "wrote" "$keel" predict "$model" "$work"/rows_tfrecord-* --output "$work/twice.csv"
same_files "$work/expected.csv" "$work/twice.csv"
# CSV for a signature that takes examples has one column per feature.
sed '1s/user/user_id/' "$files/rows.csv" >"$work/features.csv"
expect "within atol 1e-05" "$keel" predict "$model" "$work/features.csv" \
  --signature serve_examples --batch_size 2 --expected "$expected"
sed '4s/^1,\([0-9]*\),/1,\1.0,/' "$files/rows.csv" >"$work/decimal.csv"
cmp -s "$work/decimal.csv" "$files/rows.csv" && fail "no decimal number"
expect "within atol 1e-05" "$keel" predict "$model" "$work/decimal.csv" --expected "$expected"
# Files and predictions of Keras.
for file in "$cases"/*.keras "$cases"/*.h5; do
  name=${file%.*}
  case $file in *.weights.h5 | *_weights_only_*) continue ;; esac
  expect "within atol 1e-05" "$keel" predict "$file" "$name.inputs.json" --expected "$name.expected.json"
done
name=$cases/ncf_weights_only_legacy
expect "within atol 1e-05" "$keel" predict "$cases/ncf.keras" "$name.inputs.json" \
  --weights "$name.h5" --expected "$name.expected.json"

cd "$work"
expect_bad "no signature 'other'; it has serve_examples, serving_default" \
  "$keel" predict "$model" "$files/rows.json" --signature other
expect_bad "no signature of the model takes examples" \
  "$keel" predict "$files/mixed.keras" "$files/rows.tfrecord"
expect_bad "'serving_default' does not take examples" \
  "$keel" predict "$model" "$files/rows.tfrecord" --signature serving_default
expect_bad "must end in .json or .csv, or be records with 'tfrecord' in their name" \
  "$keel" predict "$model" rows.txt
expect_bad "must be files of one kind, received '$files/rows.csv' and '$files/rows.json'" \
  "$keel" predict "$model" "$files/rows.csv" "$files/rows.json"
expect_bad "--output must end in .json or .csv" \
  "$keel" predict "$model" "$files/rows.json" --output rows.txt
expect_bad "--atol and --rtol require --expected" "$keel" predict "$model" "$files/rows.json" --atol 1
expect_bad "nowhere.json: cannot be read" "$keel" predict "$model" nowhere.json
expect_bad "nowhere.csv" "$keel" predict "$model" nowhere.csv
expect_bad "nowhere.tfrecord" "$keel" predict "$model" nowhere.tfrecord
expect_bad "nowhere.json" "$keel" predict "$model" "$files/rows.json" --expected nowhere.json
expect_bad "nowhere/out.csv: cannot be created" \
  "$keel" predict "$model" "$files/rows.json" --output nowhere/out.csv
expect_bad "contains weights, Keras 3 HDF5" \
  "$keel" predict "$files/ranker.weights.h5" "$files/rows.json"
for file in cut.keras cut.h5 empty.h5 text.keras; do
  expect_bad "$file" "$keel" predict "$file" "$files/rows.json"
done
head -c 100 "$files/rows.json" >cut.json
expect_bad "cut.json" "$keel" predict "$model" cut.json
# bad SED-SCRIPT TEXT: checks that rows.json modified by sed is refused.
bad() {
  sed "$1" "$files/rows.json" >bad.json
  cmp -s bad.json "$files/rows.json" && fail "sed $1 changes nothing"
  expect_bad "$2" "$keel" predict "$model" bad.json
}
bad 's/"inputs"/"outputs"/' 'bad.json'
bad 's/"user"/"person"/g' "the model has no input 'person'"
bad 's/"name": "user"/"name": "age"/' "input 'age'"
bad 's/\[5, 2\]/[5, 3]/' "shape (5, 3) requires 15 values, received 10"
bad 's/\[5, 2\]/[2, 5]/' "input 'age' must have shape (?, 2), received (2, 5)"
bad 's/\[5, 2\]/[-5, 2]/' "'age'"
bad 's/"float32"/"float33"/' "float33"
bad 's/\[0, 2, 2/[0, 3, 2/' "seen"
bad 's/"row_splits": \[[^]]*\], //' "input 'seen' must be ragged int64, received int64"
bad '2d' "input 'user' is missing"
bad '2s/"data": \[0/"data": ["x"/' "'user'"
bad '2s/"data": \[0/"data": [99/' "99"
# Performs the same check with rows.csv.
bad_csv() {
  sed "$1" "$files/rows.csv" >bad.csv
  expect_bad "$2" "$keel" predict "$model" bad.csv --batch_size 2
}
bad_csv '1s/seen/watched/' "seen"
bad_csv '4s/^1,[0-9]*/1,x/' "row 3, column 'user': must be int64, received 'x'"
bad_csv '4s/^1,[0-9]*/1,1 2/' "row 3, column 'user': requires 1 value, received 2"
bad_csv '5s/;.*//' "row 4, column 'age': requires 2 values, received 1"
bad_csv '2,$d' "has no rows"
bad_csv '4s/^1,[0-9]*/1,1.5/' "row 3, column 'user': must be int64, received '1.5'"
bad_csv '4s/^1,[0-9]*/1,7000/' "bad.csv: rows 3 to 4: "
# Performs the same check with features.csv.
bad_features() {
  sed "$1" features.csv >bad.csv
  expect_bad "$2" "$keel" predict "$model" bad.csv --batch_size 2 --signature serve_examples
}
bad_features '1s/user_id/user/' "user_id"
bad_features '4s/^1,[0-9]*/1,/' "row 3, column 'user_id': is empty, but the feature has no default"
bad_features '4s/^1,[0-9]*/1,x/' "row 3, column 'user_id': must be int64, received 'x'"
bad_features '5s/;.*//' "row 4, column 'age': requires 2 values, received 1"
expect_bad "a CSV file cannot hold input 'tags'" "$keel" predict "$files/mixed.keras" "$files/rows.csv"
head -c 100 "$files/rows.tfrecord" >bad.tfrecord
expect_bad "bad.tfrecord" "$keel" predict "$model" bad.tfrecord
cp "$files/rows.tfrecord" bad_tfrecord.gz
expect_bad "bad_tfrecord.gz" "$keel" predict "$model" bad_tfrecord.gz
# A model with one input accepts any input name. Errors list the available inputs.
expect "only" "$keel" predict "$files/compiled.keras" "$files/any_name.json"
expect_bad "no input 'a'; it takes 'x'" \
  "$keel" predict "$files/compiled.keras" "$files/other_names.json"
expect_bad "it takes 'age', 'seen', 'user'" "$keel" predict "$model" "$files/any_name.json"
expect "within atol" "$keel" predict "$model" "$files/rows.json" --expected "$expected" \
  --weights "$files/alone.h5" --by_name
expect_bad "by_name is for weights" "$keel" predict "$model" "$files/rows.json" --by_name
# Numbers that float32 cannot represent.
for number in 1e39 -1e39 1e400; do
  echo "{\"inputs\": [{\"name\": \"age\", \"shape\": [1], \"data\": [$number]}]}" >"$work/large.json"
  expect_bad "large.json" "$keel" predict "$model" "$work/large.json"
done
