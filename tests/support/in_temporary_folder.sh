#!/usr/bin/env bash
# in_temporary_folder.sh COMMAND [ARGUMENT...]: runs a command with the exit status of the command.
# Its working directory is a new folder, which is removed afterwards with everything that the command
# has written there and into the temporary folder of the system. `{}` in an argument is replaced by
# the path of the folder.
set -eu
folder=$(mktemp -d "${TMPDIR:-/tmp}/keel.XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
mkdir "$folder/tmp"
export TMPDIR=$folder/tmp
cd "$folder"
"${@//\{\}/$folder}"
