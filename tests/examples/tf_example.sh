# Checks that a model that was trained on CSV files makes the same predictions from CSV and from
# tf.Example files that another program wrote for the same rows. Skipped without the data.
. "$(dirname "$0")/common.sh"
data=${KEEL_DATA_DIR:-$root/../shared/data}
csv=$data/chicago_taxi records=$data/../interop/tfrecord
if [ ! -d "$csv" ] || [ ! -d "$records" ]; then
  echo "skipped: no data in $csv and $records"
  exit 77
fi
cd "$work"
"$bin/train_ctr" --data "$csv" --epochs 1 --embedding_dim 4 --export model.keras \
  --write_predictions trained.csv
predict() { # predict OUTPUT FILES...
  local output=$1
  shift
  "$bin/keel" predict model.keras "$@" --signature serve_examples --output "$output"
}
# The training program has read the rows with data::read_csv.
predict test.csv "$csv/test.csv"
tail -n +2 trained.csv >expected
tail -n +2 test.csv | cmp - expected || fail "other predictions than those of train_ctr"

# The records have a different order and split, so rows are matched by score.
sorted() { tail -n +2 "$1" | LC_ALL=C sort; }
predict all.csv "$csv/train.csv" "$csv/test.csv"
sorted all.csv >all
check() { # check PART ROWS MOST: at most so many of its records have a score that no row has
  predict "$1.csv" "$records/chicago_taxi_$1"/*.gz
  sorted "$1.csv" >"$1"
  [ "$(wc -l <"$1")" -eq "$2" ] || fail "$1: not $2 rows"
  local others
  others=$(LC_ALL=C comm -13 all "$1" | wc -l)
  [ "$others" -le "$3" ] || fail "$1: $others records have another score than their row"
  echo "$1: $2 records, $others with a score that no row has"
}
check eval 5091 0
check train 9909 1 # one ride is another one in the CSV file
[ "$(uniq all | wc -l)" -ge 14000 ] || fail "rows have equal scores, which cannot tell them apart"

# The signature is preserved in other formats.
"$bin/keel" convert model.keras model.h5
cp eval.csv eval_of_keras.csv
"$bin/keel" predict model.h5 "$records"/chicago_taxi_eval/*.gz --output eval.csv
same_files eval.csv eval_of_keras.csv

expect_error 2 "row 1, column 'dropoff_census_tract': requires 1 value, received 0; a signature for" \
  "$bin/keel" predict model.h5 "$csv/test.csv"
cp "$csv/test.csv" csv_tfrecord
expect_error 2 "csv_tfrecord" "$bin/keel" predict model.h5 csv_tfrecord
# Integers in CSV are integers in examples; fares are not integers.
small_data numbers 40
sed -i '1s/.*/click,fare,trip_seconds,payment_type,company/' numbers/t*.csv
sed -i 's/"age", "price"/"fare", "trip_seconds"/; s/"user", "item"/"payment_type", "company"/' \
  numbers/schema.json
"$bin/train_ctr" --data numbers --epochs 1 --export other.h5
expect_error 2 "feature 'fare': expected int64, received float32" \
  "$bin/keel" predict other.h5 "$records"/chicago_taxi_eval/*.gz
