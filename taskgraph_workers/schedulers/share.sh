# shellcheck shell=bash
# Where the process ids of workers are kept, on each node of its own, for this run of this job.
share_dir=/tmp/workers-$UID-$$-$RANDOM$RANDOM

# run_share KEY GROUP JOB FIRST COUNT COMMAND [CORES GPUS CORE GPU]: runs on a node, starts its
# share of a group there, and ends with it, with the highest status of a worker. KEY tells apart
# nodes that share a /tmp. Workers are bound to CORES cores and GPUS GPUs each, beginning with those
# of index CORE and GPU, unless these words are left out.
# shellcheck disable=SC2317 # nodes call it
run_share() {
    local key=$1 group=$2 job=$3 first=$4 count=$5 command=$6 index code alive worst=0 running=()
    shift 6
    mkdir -m 700 "$share_dir" 2>/dev/null
    [ -O "$share_dir" ] || { echo "workers: can't write in $share_dir" >&2; return 73; }
    trap 'end_share "$key"' TERM
    for ((index = first; index < first + count; index++)); do
        run_worker "$key.$group.$index" "$group.j$job.$index" "$command" "$((index - first))" "$@" \
            </dev/null &
        running[index]=$!
    done
    while [ "${#running[@]}" -gt 0 ]; do
        alive=$(jobs -rp)
        for index in "${!running[@]}"; do
            case " ${alive//$'\n'/ } " in *" ${running[index]} "*) continue ;; esac
            wait "${running[index]}"
            code=$?
            unset "running[index]"
            rm -f "$share_dir/$key.$group.$index"
            # 143: a worker that knows nothing better to do when it is asked to end.
            if [ "$code" = 0 ] || { [ "$code" = 143 ] && [ -e "$share_dir/$key-ending" ]; }; then
                continue
            fi
            echo "workers: $group.j$job.$index ended with status $code" >&2
            [ "$code" -le "$worst" ] || worst=$code
        done
        [ "${#running[@]}" = 0 ] || sleep 1
    done
    return "$worst"
}

# Becomes one worker.
# shellcheck disable=SC2317 # nodes call it
run_worker() {
    local file=$1 name=$2 command=$3 nth=$4 node
    shift 4
    # First the id, then the look whether it is too late: end_share does it the other way round.
    echo "$BASHPID" >"$share_dir/$file"
    [ ! -e "$share_dir/${file%%.*}-ending" ] || exit 0
    [ "$#" = 0 ] || bind_worker "$nth" "$@"
    trap - INT QUIT # which bash takes from what it starts in the background
    node=$(uname -n)
    export WORKER_NAME=$name.${node%%.*}
    exec bash -c "$command"
}

# end_share KEY: runs on a node, asks the workers there to end. TERM goes to their main processes
# alone: what they have started, such as a process of Celery's pool, would die of it with its task.
# shellcheck disable=SC2317 # nodes call it
end_share() {
    local file pid
    mkdir -m 700 "$share_dir" 2>/dev/null
    [ -O "$share_dir" ] || return 73
    : >"$share_dir/$1-ending"
    for file in "$share_dir/$1".*; do
        read -r pid 2>/dev/null <"$file" || continue
        rm -f "$file" # once is enough: some take a second TERM for a reason to hurry
        kill -TERM "$pid" 2>/dev/null
    done
}

# Runs on a node where all workers have ended.
# shellcheck disable=SC2317 # nodes call it
clear_share() { rm -rf "$share_dir"; }

# shares FUNCTION...: the text of bash -c that calls the first, with all it needs, on another node.
shares() {
    printf 'share_dir=%q\n' "$share_dir"
    declare -f run_share run_worker end_share clear_share "$@"
    printf '%s "$@"\n' "$1"
}

# before NODE COUNT...: how many workers are on nodes before that one.
# shellcheck disable=SC2317 # nodes call it
before() {
    local node=$1 sum=0
    shift
    while [ "$((node--))" -gt 0 ]; do sum=$((sum + $1)) && shift; done
    echo "$sum"
}

# deal 2x3,1x1 NODES: how many workers go on each node, into counts: here 2 on three of them, and 1.
deal() {
    local part node total=0
    counts=()
    for part in ${1//,/ }; do
        for ((node = 0; node < ${part#*x}; node++)); do
            counts+=("${part%x*}")
            total=$((total + ${part%x*}))
        done
    done
    [ "$2" != "${#counts[@]}" ] || return 0
    if [ "${2:-0}" -lt 1 ]; then
        echo "workers: the job's nodes can't be told" >&2
        exit 69
    fi
    echo "workers: planned for ${#counts[@]} nodes, here are $2: $total workers are dealt over them" >&2
    counts=()
    for ((node = 0; node < $2; node++)); do
        counts[(node + dealt) % $2]=$((total / $2 + (node < total % $2)))
    done
    dealt=$((dealt + total)) # the next group goes on where this one ends
}
dealt=0
