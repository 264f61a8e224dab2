#!/bin/sh
# Do people answer differently, to what, and since when? A row is a respondent.
# Usage: sh examples/survey/run.sh [FOLDER]; reports and the ledger go to FOLDER, output/survey if none is named.
set -eu
here=$(dirname "$0")
out=${1:-output/survey}
. "$here/../worked.sh"

ask plan --problem "$here/problem.toml" --report "$out/plan.html" --save-design "$out/design.json"
ask ledger grant --ledger "$out/ledger.db" --dataset survey --epsilon 1.5
ask test "$data/survey_latest.csv" --problem "$here/problem.toml" --request latest --report "$out/test.html" $paid
ask detect "$data/survey.csv" --problem "$here/problem.toml" --request when --report "$out/detect.html" $paid
ask fit "$data/survey_latest.csv" --problem "$here/problem.toml" --request other --report "$out/fit.html" $paid
ask ledger show --ledger "$out/ledger.db"
