#!/bin/sh
# Tests wordcount.sh: a name, an input, and what must come out.
failed=0

check() {
    actual=$(printf '%s\n' "$2" | sh wordcount.sh | tr '\n' ',')
    if [ "$actual" = "$3" ]; then
        echo "ok    $1"
    else
        echo "FAIL  $1: expected $3 got $actual"
        failed=1
    fi
}

check 'words are counted' 'a b a' '2 a,1 b,'
check 'punctuation is ignored' 'yes, no; yes!' '2 yes,1 no,'
check 'case is ignored' 'The the THE end' '3 the,1 end,'
exit $failed
