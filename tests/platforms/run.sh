#!/usr/bin/env bash
# Builds Keel, and runs its tests and its demo, on fresh Debian systems. See --help.
set -euo pipefail

readonly ALL_SYSTEMS="
bookworm trixie
bookworm,march=x86-64-v3 bookworm,march=x86-64-v4
trixie,march=x86-64-v3 trixie,march=x86-64-v4
bookworm,cc=clang-16 bookworm,cc=clang-19 trixie,cc=gcc-12 trixie,cc=gcc-13 trixie,cc=clang-19
bookworm,arch=arm64 trixie,arch=arm64
bookworm,packages trixie,packages"

help() {
  cat <<TEXT
usage: tests/platforms/run.sh [OPTIONS] [SYSTEM...]

Creates a minimal Debian system in a folder with debootstrap, clones the committed state of this
repository into it and runs the README's two commands, ./dev demo and ./dev test. Prints one line
per system. Needs root, debootstrap, unshare and 10 GB of disk space per system; the build takes
minutes. The exit status is 0 if all systems passed, 1 if one failed, 2 for invalid arguments.

A SYSTEM is a Debian release, bookworm or trixie, followed by settings separated by commas:
  march=ARCH    instruction set of the build: native (default), x86-64-v3, x86-64-v4
  cc=COMPILER   gcc-N or clang-N of that release instead of its g++
  arch=arm64    builds for 64-bit ARM with Debian's cross compiler; runs tests and demo under qemu-user
  packages      builds the Debian packages and the archive instead, installs them in a second system
                without build tools, runs the programs, and compiles a program against libkeel-dev
Without SYSTEM arguments, these systems are tested:$(printf '%s' "$ALL_SYSTEMS" | sed 's/^/  /')

options:
  --mirror URL    Debian mirror; default \$KEEL_DEBIAN_MIRROR or http://deb.debian.org/debian
  --work FOLDER   folder for the systems; default /var/tmp/keel-platforms
  --only STEP     run only this step: demo or test
  --reuse         continue in the system of a previous run with --keep, with the clone in it
  --keep          keep the systems' folders; by default, the folder of a passed system is removed
  --verbose       also print the output of the commands; by default it is only in FOLDER/SYSTEM.log
  --list          print the systems that are tested without SYSTEM arguments
  --help          print this text

The systems also use the proxies and download options of this machine's apt, and http_proxy.
TEXT
}

fail() {
  echo "run.sh: $1" >&2
  exit "${2:-1}"
}

mirror=${KEEL_DEBIAN_MIRROR:-http://deb.debian.org/debian}
work=/var/tmp/keel-platforms
only='' keep='' reuse='' verbose='' systems=()
while [ $# -gt 0 ]; do
  case "$1" in
    --mirror | --work | --only)
      [ $# -gt 1 ] || fail "$1: no value; see --help" 2
      declare "${1#--}=$2"
      shift
      ;;
    --keep) keep=1 ;;
    --reuse) reuse=1 ;;
    --verbose) verbose=1 ;;
    --list) printf '%s\n' $ALL_SYSTEMS; exit ;;
    --help | -h) help; exit ;;
    -*) fail "unknown option '$1'; see --help" 2 ;;
    *) systems+=("$1") ;;
  esac
  shift
done
case "$only" in "" | demo | test) ;; *) fail "--only $only: must be demo or test" 2 ;; esac
# shellcheck disable=SC2206  # each word is a system
[ ${#systems[@]} -gt 0 ] || systems=($ALL_SYSTEMS)

# Sets the variables for a system's settings; fails on invalid settings.
parse() {
  local setting
  suite=${1%%,*} march='' cc='' arch='' packages=''
  case "$suite" in bookworm | trixie) ;; *) fail "$1: no release '$suite'; use bookworm or trixie" 2 ;; esac
  for setting in $(printf '%s' "${1#"$suite"}" | tr , ' '); do
    case "$setting" in
      march=native | march=x86-64-v3 | march=x86-64-v4) march=${setting#*=} ;;
      cc=gcc-[0-9]* | cc=clang-[0-9]*) cc=${setting#*=} ;;
      arch=arm64) arch=arm64 ;;
      packages) packages=1 ;;
      *) fail "$1: unknown setting '$setting'; see --help" 2 ;;
    esac
  done
  [ -z "$arch" ] || [ -z "$march$cc$packages" ] || fail "$1: arch takes no other setting" 2
  [ -z "$packages" ] || [ -z "$march$cc" ] || fail "$1: packages takes no other setting" 2
}
for system in "${systems[@]}"; do parse "$system"; done

[ "$(id -u)" -eq 0 ] || fail "must run as root: debootstrap and chroot need it"
for tool in debootstrap unshare git; do
  command -v "$tool" >/dev/null || fail "no $tool; apt-get install debootstrap util-linux git"
done
source=$(cd "$(dirname "$0")/../.." && pwd)
[ -z "$(git -C "$source" status --porcelain)" ] || echo "note: uncommitted changes are not tested" >&2
mkdir -p "$work"
work=$(cd "$work" && pwd)

# Registers ARM programs with the kernel, so that scripts can start them: the kernel recognizes the header
# of an ARM ELF file and runs it with the system's qemu-user. Since Linux 6.7, the registration ends with
# its mount.
readonly BINFMT=/proc/sys/fs/binfmt_misc
readonly ARM64_MAGIC='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
readonly ARM64_MASK='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
readonly ARM64_FORMAT=":keel-arm64:M::$ARM64_MAGIC:$ARM64_MASK:/usr/bin/qemu-aarch64:"
unregister_arm64() {
  if [ -e $BINFMT/keel-arm64 ]; then echo -1 >$BINFMT/keel-arm64; fi
}

# Runs a command in the system in folder ROOT, with the mounts of a container. The mounts and the processes
# are in namespaces of their own, which end with the command.
in_system() { # ROOT COMMAND...
  # shellcheck disable=SC2016  # for the inner shell
  unshare --mount --propagation private --pid --fork bash -c '
    set -e
    root=$1 source=$2 binfmt=$3 format=$4
    shift 4
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    if [ -n "$format" ]; then
      mount -t binfmt_misc binfmt_misc "$root$binfmt"
      grep -qs "^magic 7f454c460201010000000000000000000200b7" "$root$binfmt"/* ||
        printf "%s" "$format" >"$root$binfmt/register"
    fi
    mkdir -p "$root/source"
    mount --bind -o ro "$source" "$root/source"
    exec chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      HOME=/root LANG=C.UTF-8 CI=true http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" "$@"
  ' in_system "$1" "$source" $BINFMT "${arch:+$ARM64_FORMAT}" "${@:2}"
}

# Creates a minimal system of the release in folder $1: a copy of a base system that is kept in $work.
make_system() {
  local root=$1 base=$work/base-$suite
  if [ ! -e "$base/complete" ]; then
    rm -rf "$base"
    debootstrap --variant=minbase "$suite" "$base" "$mirror" || {
      echo "debootstrap failed: is $mirror a Debian mirror with $suite? See --mirror"
      return 1
    }
    cp /etc/resolv.conf "$base/etc/resolv.conf"
    # Debian's installer does the same. Open MPI 4 looks up its own host, and waits 5 s if there is none.
    printf '127.0.0.1 localhost\n127.0.1.1 %s\n' "$(hostname)" >"$base/etc/hosts"
    apt-config dump Acquire | grep -E '^Acquire::([a-z]+::([^"]*::)?Proxy|Retries|Check-Date|Check-Valid-Until)' \
      >"$base/etc/apt/apt.conf.d/90this-machine" || true
    : >"$base/complete"
  fi
  [ -z "$reuse" ] || [ ! -e "$root" ] || return 0
  rm -rf "$root"
  cp -a "$base" "$root"
}

install_in() { # ROOT PACKAGES...
  in_system "$1" sh -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null' sh "${@:2}"
}

clone_in() { # ROOT
  [ ! -e "$1/keel" ] || return 0
  in_system "$1" sh -c "git config --global safe.directory '*' && git clone -q /source /keel"
}

# The steps of a system. Each prints to the log and sets report, the text of the system's line.
run_commands() { # ROOT
  local root=$1 preset=() variables=() begin failed='' warnings passed
  install_in "$root" git ca-certificates || return 1
  case "$cc" in
    gcc-*)
      install_in "$root" "g++-${cc#gcc-}" || return 1
      variables+=("CC=$cc" "CXX=g++-${cc#gcc-}")
      ;;
    clang-*)
      # Clang uses the standard library of GCC.
      install_in "$root" "$cc" g++ || return 1
      variables+=("CC=$cc" "CXX=clang++-${cc#clang-}")
      ;;
  esac
  [ -z "$march" ] || variables+=("KEEL_CMAKE_ARGS=-DKEEL_MARCH=$march")
  if [ -n "$arch" ]; then
    preset=(arm64)
    install_in "$root" qemu-user || return 1
  fi
  clone_in "$root" || return 1

  if [ "$only" != test ]; then
    begin=$SECONDS
    progress demo
    in_system "$root" env "${variables[@]}" sh -c 'cd /keel && ./dev demo "$@"' sh "${preset[@]}" ||
      failed+=", demo FAILED"
    demo_seconds=$((SECONDS - begin))
  fi
  if [ "$only" != demo ] && [ -z "$failed" ]; then
    begin=$SECONDS
    progress tests
    in_system "$root" env "${variables[@]}" sh -c 'cd /keel && ./dev test "$@"' sh "${preset[@]}" ||
      failed+=", tests FAILED"
    test_seconds=$((SECONDS - begin))
  fi
  warnings=$(grep -cE 'warning: .*\[-W|ld: warning: |^CMake Warning' "$log" || true)
  if [ "$warnings" -eq 0 ]; then report="built without a warning"; else report="$warnings WARNINGS"; fi
  passed=$(sed -nE 's/^([0-9]+)% tests passed, ([0-9]+) tests failed out of ([0-9]+)$/\3 tests, \2 failed/p' "$log" |
    tail -1)
  report+="${passed:+, $passed}${demo_seconds:+, demo $demo_seconds s}${test_seconds:+, build and tests $test_seconds s}$failed"
  [ "$warnings" -eq 0 ] && [ -z "$failed" ]
}

# Uses the installed packages in a system without build tools.
readonly USE_PROGRAMS='
set -eu
keel --version
cd "$(mktemp -d)"
train_ctr --data synthetic --model dlrm --strategy tpu --cores 4 --epochs 1 --export model.h5 \
  --write_test_csv test.csv --write_predictions predictions.csv
serve_hdf5 --model model.h5 --csv test.csv --output served.csv
cmp predictions.csv served.csv
keel inspect model.h5
echo "library: $(ldd "$(command -v keel)" | sed -n "s/.*=> \(.*libkeel.so[^ ]*\).*/\1/p")"
# The library for processors without AVX-512 must make the same predictions.
loader=$(ls /lib64/ld-linux-x86-64.so.2 2>/dev/null || true)
if [ -n "$loader" ]; then
  "$loader" --glibc-hwcaps-mask x86-64-v3 "$(command -v serve_hdf5)" --model model.h5 --csv test.csv --output v3.csv
  cmp served.csv v3.csv && echo "x86-64-v3: identical predictions"
fi'
readonly USE_PYTHON='
set -eu
cd "$(mktemp -d)"
train_ctr --data synthetic --model dlrm --epochs 1 --export model.h5
python3 -c "
import keel
with keel.load(\"model.h5\", mapped=True) as model:
    print(model, model.signatures[\"serving_default\"])"'
packages_in() { # ROOT BEGIN-OF-NAME...
  local begin
  for begin in "${@:2}"; do
    (cd "$1" && printf '/%s\n' root/packages/$begin*.deb)
  done
}
run_packages() { # ROOT
  local root=$1 clean=$1-installed begin
  install_in "$root" git ca-certificates || return 1
  clone_in "$root" || return 1
  begin=$SECONDS
  progress packages
  in_system "$root" sh -c 'cd /keel && ./dev package' || { report="packages FAILED"; return 1; }
  local seconds=$((SECONDS - begin))

  progress "installed packages"
  make_system "$clean" || return 1
  mkdir -p "$clean/root/packages"
  cp "$root"/keel/build/packages/* "$clean/root/packages"
  # shellcheck disable=SC2046  # each name is an argument
  install_in "$clean" $(packages_in "$clean" 'libkeel[0-9]*' keel_) &&
    in_system "$clean" sh -c "$USE_PROGRAMS" || { report="use of the programs FAILED"; return 1; }
  # shellcheck disable=SC2046  # each name is an argument
  install_in "$clean" $(packages_in "$clean" python3-keel_) &&
    in_system "$clean" sh -c "$USE_PYTHON" || { report="use of the Python package FAILED"; return 1; }
  # Test the archive; the dependencies of the removed packages stay installed.
  in_system "$clean" sh -c 'apt-get purge -y -qq keel "libkeel0*" >/dev/null && cd /opt &&
    tar xf /root/packages/keel-*.tar.gz && PATH=/opt/$(ls /opt)/bin:$PATH sh -c "$1"' sh "$USE_PROGRAMS" ||
    { report="use of the archive FAILED"; return 1; }

  progress "program against libkeel-dev"
  # shellcheck disable=SC2046  # each name is an argument
  install_in "$clean" g++ cmake make $(packages_in "$clean" libkeel) &&
    cp -r "$source/tests/install" "$clean/root/consumer" &&
    in_system "$clean" sh -c 'cd /root/consumer && cmake -B build -DCMAKE_BUILD_TYPE=Release &&
      cmake --build build && build/consumer && build/consumer_c' || { report="use of libkeel-dev FAILED"; return 1; }
  report="packages made in $seconds s, installed, used and compiled against; $(grep -h '^library: ' "$log" | head -1)"
  [ -n "$keep" ] || rm -rf "$clean"
}

progress() { echo "$system: $* ($(date +%T))" >&3; }

status=0
trap unregister_arm64 EXIT
exec 3>&1
lines=()
for system in "${systems[@]}"; do
  parse "$system"
  root=$work/$(printf '%s' "$system" | tr -c 'a-z0-9\n' -)
  log=$work/$(printf '%s' "$system" | tr -c 'a-z0-9\n' -).log
  report='' demo_seconds='' test_seconds=''
  begin=$SECONDS
  steps=run_commands
  [ -z "$packages" ] || steps=run_packages
  progress "system"
  : >"$log"
  # Do not run the steps in a pipe or a subshell: they set report.
  if [ -n "$verbose" ]; then exec 4> >(tee "$log"); else exec 4>"$log"; fi
  result=passed
  { make_system "$root" && "$steps" "$root"; } >&4 2>&1 || result=FAILED
  exec 4>&-
  lines+=("$system: $result: ${report:-no system}; $((SECONDS - begin)) s in all")
  echo "${lines[-1]}"
  if [ "$result" = passed ]; then
    [ -n "$keep" ] || rm -rf "$root"
  else
    status=1
    echo "see $log; the system is in $root"
    [ -n "$verbose" ] || tail -n 20 "$log" | sed 's/^/    /'
  fi
done
if [ ${#systems[@]} -gt 1 ]; then
  echo
  printf '%s\n' "${lines[@]}"
fi
exit $status
