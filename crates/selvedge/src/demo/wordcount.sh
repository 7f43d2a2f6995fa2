#!/bin/sh
# Prints how often each word of its input occurs, the most frequent first.
tr -cs '[:alpha:]' '\n' |
    awk 'NF { count[$1]++ } END { for (word in count) print count[word], word }' |
    sort -k1,1nr -k2,2
