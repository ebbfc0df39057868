# Tests train_ctr and serve_hdf5 with names of columns that layers have as well, missing integers,
# quotes that are data, and labels of one class.
. "$(dirname "$0")/common.sh"
# data FOLDER SCHEMA TRAIN TEST: writes a folder of data from texts with printf's escapes.
data() {
  mkdir -p "$work/$1"
  echo "$2" >"$work/$1/schema.json"
  printf '%b' "$3" >"$work/$1/train.csv"
  printf '%b' "$4" >"$work/$1/test.csv"
}
train() { # train FOLDER FLAGS...
  local folder=$1
  shift
  "$bin/train_ctr" --data "$work/$folder" --model wide_deep --strategy cpu --workers 1 --epochs 8 \
    --validation_split 0 --min_count 1 "$@"
}

# Clicks depend on whether the integer is missing: -1 never has one, an empty field always does.
rows=$(for i in $(seq 100); do echo "0,-1\\n1,\\n0,7\\n"; done | tr -d '\n')
data missing '{"label": "y", "numeric": [], "categorical": ["slot"]}' "y,slot\n$rows" "y,slot\n$rows"
train missing --export "$work/missing.h5" --write_predictions "$work/trained.csv" >"$work/out"
grep -qF "test auc 1.0000" "$work/out" || fail "an empty field is -1: $(cat "$work/out")"
"$bin/serve_hdf5" --model "$work/missing.h5" --csv "$work/missing/test.csv" --output "$work/served.csv"
same_files "$work/trained.csv" "$work/served.csv"
train missing --export "$work/dynamic.h5" --dynamic >"$work/out"
grep -qF "test auc 1.0000" "$work/out" || fail "an empty field is -1: $(cat "$work/out")"
train missing --export "$work/keras.keras" --dynamic --for_keras >"$work/out"
grep -qF "test auc 1.0000" "$work/out" || fail "an empty field is -1: $(cat "$work/out")"
echo '{"inputs": [{"name": "slot", "dtype": "int64", "shape": [2], "data": [-9223372036854775808, -1]}]}' \
  >"$work/in.json"
for file in missing.h5 dynamic.h5 keras.keras; do
  "$bin/keel" predict "$work/$file" "$work/in.json" | tr -d '[]{},' |
    awk '{exit !($(NF - 1) > 0.5 && $NF < 0.5)}' || fail "$file: an empty field is -1"
done
"$bin/keel" predict "$work/missing.h5" "$work/missing/test.csv" --signature serve_examples \
  --output "$work/examples.csv"
[ "$(cut -c1-5 "$work/examples.csv" | sort -u | wc -l)" -ge 3 ] || fail "two categories are one"

# Names of columns that derived layers and tables have, too.
rows=$(for i in $(seq 50); do echo "1,$i,a,b,c,d\\n0,$i,b,a,d,c\\n"; done | tr -d '\n')
header="y,price,price_buckets,price_wide,price/lookup,wide_deep\n"
data names '{"label": "y", "numeric": ["price"],
  "categorical": ["price_buckets", "price_wide", "price/lookup", "wide_deep"]}' "$header$rows" "$header$rows"
for file in names.h5 names.keras; do
  train names --export "$work/$file" --write_predictions "$work/trained.csv" >"$work/out"
  "$bin/keel" predict "$work/$file" "$work/names/test.csv" --signature serve_examples \
    --output "$work/examples.csv"
  [ "$(wc -l <"$work/examples.csv")" -eq 101 ] || fail "not 100 rows"
  train names --for_keras --export "$work/keras_$file" >"$work/out"
done
"$bin/serve_hdf5" --model "$work/names.h5" --csv "$work/names/test.csv" --output "$work/served.csv"
same_files "$work/trained.csv" "$work/served.csv"

# Errors of schema.json and of the export come before the training.
data bad '{"label": "y", "numeric": ["price"], "categorical": [], "delimeter": ";"}' "y,price\n1,2\n" "y,price\n1,2\n"
expect_error 2 "unknown key 'delimeter'; the known keys are label" train bad
data bad '{"label": "y", "numeric": ["price"], "categorical": [""]}' "y,price,\n1,2,a\n" "y,price,\n1,2,a\n"
expect_error 2 "a column has no name" train bad

# Two quotes 200 lines apart are data in a file with tabs, and an error in one with commas.
log() { # log SEPARATOR
  echo "y$1item$1title"
  for i in $(seq 300); do
    case $i in 5 | 205) title='"The' ;; *) title=plain ;; esac
    echo "$((i % 2))$1i$((i % 7))$1$title"
  done
}
mkdir "$work/tabs" "$work/commas"
echo '{"label": "y", "numeric": [], "categorical": ["item"], "delimiter": "\t"}' >"$work/tabs/schema.json"
echo '{"label": "y", "numeric": [], "categorical": ["item"]}' >"$work/commas/schema.json"
log $'\t' | tee "$work/tabs/train.csv" >"$work/tabs/test.csv"
log , | tee "$work/commas/train.csv" >"$work/commas/test.csv"
train tabs >"$work/out"
grep -qF "on 300 rows" "$work/out" || fail "quotes hide rows"
expect_error 2 "a quoted field that begins on line 6 spans more than 100 lines" train commas
train commas --no_quoting --export "$work/commas.h5" >"$work/out"
grep -qF "on 300 rows" "$work/out" || fail "quotes hide rows"
expect_error 2 "a quoted field that begins on line 6 spans" \
  "$bin/serve_hdf5" --model "$work/commas.h5" --csv "$work/commas/test.csv"
"$bin/serve_hdf5" --model "$work/commas.h5" --csv "$work/commas/test.csv" --no_quoting >"$work/served.csv"
[ "$(wc -l <"$work/served.csv")" -eq 301 ] || fail "not 300 rows"
expect_error 2 "a quoted field that begins on line 6 spans" \
  "$bin/keel" predict "$work/commas.h5" "$work/commas/test.csv" --signature serve_examples
"$bin/keel" predict "$work/commas.h5" "$work/commas/test.csv" --signature serve_examples --no_quoting \
  --output "$work/scores.csv"
[ "$(wc -l <"$work/scores.csv")" -eq 301 ] || fail "not 300 rows"

# The AUC of one class is undefined.
sed -i 's/^0/1/' "$work/commas/test.csv"
train commas --no_quoting >"$work/out" 2>"$work/err"
grep -qF "test auc undefined log_loss" "$work/out" || fail "$(cat "$work/out")"
grep -qF "warning: the labels of the test rows are all the same" "$work/err" || fail "$(cat "$work/err")"

# A terminal shows the head of an epoch once.
if command -v script >/dev/null; then
  script -qec "$bin/train_ctr --data $work/tabs --epochs 1 --workers 1 --strategy cpu" /dev/null >"$work/out"
  [ "$(grep -c 'Epoch 1/1' "$work/out")" -eq 1 ] || fail "heads: $(cat "$work/out")"
fi
