#!/bin/sh
# Do visitors buy more often since the new page went live, and since when? A row is a visitor.
# Usage: sh examples/conversion/run.sh [FOLDER]; reports and the ledger go to FOLDER, output/conversion if none is named.
set -eu
here=$(dirname "$0")
out=${1:-output/conversion}
. "$here/../worked.sh"

ask plan --problem "$here/problem.toml" --save-design "$out/design.json"
ask ledger grant --ledger "$out/ledger.db" --dataset conversion --epsilon 1
ask test "$data/conversion_latest.csv" --problem "$here/problem.toml" --request latest --report "$out/test.html" $paid
ask detect "$data/conversion.csv" --problem "$here/problem.toml" --request when $paid
ask ledger show --ledger "$out/ledger.db"
