#!/bin/sh
# Does the analyser read high, and since when? A row is a patient.
# Usage: sh examples/lab_value/run.sh [FOLDER]; reports and the ledger go to FOLDER, output/lab_value if none is named.
set -eu
here=$(dirname "$0")
out=${1:-output/lab_value}
. "$here/../worked.sh"

ask plan --problem "$here/problem.toml" --save-design "$out/design.json"
ask ledger grant --ledger "$out/ledger.db" --dataset lab_value --epsilon 1
ask test "$data/lab_value_latest.csv" --problem "$here/problem.toml" --request latest --report "$out/test.html" $paid
ask detect "$data/lab_value.csv" --problem "$here/problem.toml" --request when $paid
ask ledger show --ledger "$out/ledger.db"
