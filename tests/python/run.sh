# Runs a command of Python with the package and the files of the tests: run.sh BIN WORK ROOT
# ARGUMENTS. Skipped without python3. Prefers a Python that has numpy.
set -euo pipefail
bin=$1 work=$2 root=$3
shift 3
python=$(command -v python3) || {
  echo "skipped: no python3"
  exit 77
}
for candidate in "$python" /usr/bin/python3; do
  if "$candidate" -c 'import numpy' 2>/dev/null; then
    python=$candidate
    break
  fi
done
rm -rf "$work"
mkdir -p "$work"
"$bin/tool_fixtures" "$work/files"
"$bin/python_fixtures" "$work/files"
export KEEL_LIBRARY=$bin/../lib/libkeel_c.so KEEL_TEST_BIN=$bin KEEL_TEST_FILES=$work/files
export PYTHONPATH=$root/python:$root/tests/python
cd "$work/files"
exec "$python" -W error "$@"
