#!/bin/sh
# Runs every test in `tests`.
failed=0
for test in tests/*.sh; do
    [ -e "$test" ] || continue
    sh "$test" || failed=1
done
exit $failed
