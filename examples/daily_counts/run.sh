#!/bin/sh
# Do subscribers call more often, and since when? A row is a subscriber's count of one day.
# Usage: sh examples/daily_counts/run.sh [FOLDER]; reports and the ledger go to FOLDER, output/daily_counts if none is named.
set -eu
here=$(dirname "$0")
out=${1:-output/daily_counts}
. "$here/../worked.sh"

ask plan --problem "$here/problem.toml" --save-design "$out/design.json"
ask ledger grant --ledger "$out/ledger.db" --dataset daily_counts --epsilon 1
ask test "$data/daily_counts_latest.csv" --problem "$here/problem.toml" --request latest --report "$out/test.html" $paid
ask detect "$data/daily_counts.csv" --problem "$here/problem.toml" --request when $paid
ask ledger show --ledger "$out/ledger.db"
