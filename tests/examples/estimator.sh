# Tests an estimator: train, resume, export, and write and print lookup statistics.
. "$(dirname "$0")/common.sh"
"$bin/estimator" --model_dir "$work/run" --steps 60 >"$work/first"
grep -q "^global_step 60$" "$work/first" || fail "no 60 steps: $(cat "$work/first")"
"$bin/estimator" --model_dir "$work/run" --steps 60 >"$work/second"
grep -q "^global_step 120$" "$work/second" || fail "no 120 steps: $(cat "$work/second")"
[ -f "$work/run/export/120/model.h5" ] || fail "nothing was exported"
expect_error 2 "--model_dir is required" "$bin/estimator"

"$bin/profile_embedding" "$work/run/profiles" >"$work/profiles"
grep -q "tbl_item_seen_shared_embedding" "$work/profiles" || fail "no table: $(cat "$work/profiles")"
grep -q "ids/example" "$work/profiles" || fail "no columns: $(cat "$work/profiles")"
"$bin/profile_embedding" --help | grep -q "Usage" || fail "no help"
expect_error 2 "DIR is required" "$bin/profile_embedding"
expect_error 2 "nowhere" "$bin/profile_embedding" "$work/nowhere"
for file in "$work"/run/profiles/*; do echo "{}" >"$file"; done
expect_error 2 ".profile.json" "$bin/profile_embedding" "$work/run/profiles"
