# Tests training and serving with files without a header line, with tabs and empty fields, using the
# names in schema.json.
. "$(dirname "$0")/common.sh"
mkdir "$work/clicks"
cat >"$work/clicks/schema.json" <<'JSON'
{"label": "label", "numeric": ["i1", "i2"], "categorical": ["c1", "c2"], "delimiter": "\t",
 "columns": ["label", "i1", "i2", "c1", "c2"], "train": "train.txt", "test": "test.txt"}
JSON
rows() { # rows COUNT SHIFT
  awk -v rows="$1" -v shift="$2" 'BEGIN {
    OFS = "\t"
    for (i = 0; i < rows; ++i) {
      u = (i * 7 + shift) % 23; t = (i * 13 + shift) % 11
      print (u + t) % 2, (i % 5 ? i % 50 : ""), (i % 7 ? -t : ""), sprintf("%08x", u * 2654435), (t ? sprintf("%08x", t) : "")
    }
  }'
}
rows 600 0 >"$work/clicks/train.txt"
rows 200 7 >"$work/clicks/test.txt"
"$bin/train_ctr" --data "$work/clicks" --epochs 2 --export "$work/model.h5" \
  --write_predictions "$work/trained.csv"
"$bin/serve_hdf5" --model "$work/model.h5" --csv "$work/clicks/test.txt" \
  --schema "$work/clicks/schema.json" --output "$work/served.csv"
same_files "$work/trained.csv" "$work/served.csv"
[ "$(wc -l <"$work/served.csv")" -eq 201 ] || fail "not 200 rows"
sed -i '3s/\t/,/' "$work/clicks/train.txt"
expect_error 2 "row 3: expected 5 fields" "$bin/train_ctr" --data "$work/clicks"
sed -i 's/"c2"\], "train"/"c3"], "train"/' "$work/clicks/schema.json"
expect_error 2 "column 'c2' must be listed once in 'columns'" "$bin/train_ctr" --data "$work/clicks"
