# What the four worked problems share: their data, the folder for results, and the command line itself.
# PRIVATEST is the program, if it is not `privatest`; PYTHON makes the data, if it is not `python3`.
mkdir -p "$out"
data=$out/data
"${PYTHON:-python3}" "$here/../make_worked.py" "$data" >/dev/null
paid="--ledger $out/ledger.db --dataset $(basename "$here")"

ask() {
    echo "\$ privatest $*"
    ${PRIVATEST:-privatest} "$@"
    echo
}
