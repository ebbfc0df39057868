# Invalid data raises an error that names the file, the row and the column.
. "$(dirname "$0")/common.sh"
broken() { # broken NAME SED-SCRIPT: a data folder whose train.csv went through sed
  small_data "$work/$1" 40
  sed -i "$2" "$work/$1/train.csv"
}
broken text '5s/,[0-9.]*,u/,cheap,u/'
expect_error 2 "price" "$bin/train_ctr" --data "$work/text"
grep -q "row 4" "$work/out" || fail "no row: $(cat "$work/out")"
grep -q "cheap" "$work/out" || fail "no text: $(cat "$work/out")"
broken label '3s/^[01]/nan/'
expect_error 2 "row 2" "$bin/train_ctr" --data "$work/label"
broken label_value '3s/^[01]/7/'
expect_error 2 "click" "$bin/train_ctr" --data "$work/label_value"
broken fields '6s/$/,extra/'
expect_error 2 "row 5" "$bin/train_ctr" --data "$work/fields"
broken header '1s/price/cost/'
expect_error 2 "price" "$bin/train_ctr" --data "$work/header"
broken quote '4s/"//'
expect_error 2 "train.csv" "$bin/train_ctr" --data "$work/quote"
broken encoding '5s/,u[0-9]*,/,caf\xE9,/'
expect_error 2 "row 4, column 'user': must be UTF-8, received byte 233 after 'caf'" \
  "$bin/train_ctr" --data "$work/encoding"
