# Checks that the Python example serves Keras's files with Keras's predictions. Skipped without
# python3.
. "$(dirname "$0")/common.sh"
python=$(command -v python3) || {
  echo "skipped: no python3"
  exit 77
}
# With h5py, if it is installed, the example also lists the weights.
for candidate in "$python" /usr/bin/python3; do
  if "$candidate" -c 'import h5py' 2>/dev/null; then
    python=$candidate with_h5py=1
    break
  fi
done
library=$bin/../lib/libkeel_c.so cases=$root/tests/cases/keras_models
"$bin/tool_fixtures" "$work/files"
export PYTHONDONTWRITEBYTECODE=1
serve() { "$python" "$root/examples/serve_ctypes.py" "$library" "$@"; }
for file in "$cases/ncf.keras" "$cases/nested.h5" "$cases/seq_pool.keras"; do
  name=${file%.*}
  serve "$file" "$name.inputs.json" "$name.expected.json" >"$work/out" || fail "$file: $(cat "$work/out")"
  grep -q "^max difference" "$work/out" || fail "no difference: $(cat "$work/out")"
done
serve "$work/files/ranker.h5" "$work/files/rows.json" "$work/files/expected.json" >"$work/out"
grep -q "seen: ragged int64" "$work/out" || fail "no signature: $(cat "$work/out")"
if [ -n "${with_h5py:-}" ]; then
  grep -q "h5py: .*users/embeddings:0 (8, 2)" "$work/out" || fail "no weights: $(cat "$work/out")"
else
  echo "without h5py: weights are not listed"
fi
expect_error 1 "nowhere.h5" serve "$work/nowhere.h5"
expect_error 1 "dtype must be float32" serve "$work/files/ranker.h5" <(sed 's/float32/float64/' "$work/files/rows.json")
