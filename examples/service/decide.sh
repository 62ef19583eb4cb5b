#!/bin/sh
# One decision and its reward with curl, and what the service tells everybody.
#
#   KEY=dpb_… PERSON=reader-1 ./decide.sh [experiment] [reward]
#
# The key needs the scopes `decide` and `reward`; what is public needs none. Leave PERSON out where the
# experiment does not declare `rounds_per_person`.
set -eu
URL=${URL:-http://127.0.0.1:8000}
EXPERIMENT=${1:-headline}
REWARD=${2:-1}
: "${KEY:?is the API key, with the scopes decide and reward}"

# post PATH JSON: up to five more attempts while the service is busy or not up yet. They are safe: all hold
# the same request key or ticket. The key and the body go to curl's input, because everybody on the machine
# can read a command's arguments.
post() {
    quoted=$(printf '%s' "$2" | sed 's/["\\]/\\&/g')
    curl --silent --show-error --fail-with-body --retry 5 --retry-connrefused --max-time 10 \
        --config - "$URL$1" <<END
header = "Authorization: Bearer $KEY"
header = "Content-Type: application/json"
data = "$quoted"
END
}

# refused ANSWER: it says what is wrong.
refused() {
    printf '%s\n' "$1" >&2
    exit 1
}

# field NAME: the text of that field in the JSON on the input.
field() {
    sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p"
}

# A new key for each decision. Asked again with the same one, the service repeats its answer.
REQUEST=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
WHO=${PERSON:+", \"person\": \"$PERSON\""}

DECISION=$(post "/v1/experiments/$EXPERIMENT/decide" "{\"request\": \"$REQUEST\"$WHO}") || refused "$DECISION"
echo "decided:  $DECISION"

# … show the action to the person, see what she does …

TICKET=$(printf '%s' "$DECISION" | field ticket)
RECORDED=$(post /v1/reward "{\"ticket\": \"$TICKET\", \"reward\": $REWARD}") || refused "$RECORDED"
echo "rewarded: $RECORDED"

echo "public:   $(curl --silent --show-error --fail "$URL/v1/experiments/$EXPERIMENT")"
echo "The page for everybody is $URL/"
