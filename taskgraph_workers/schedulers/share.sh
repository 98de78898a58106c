# shellcheck shell=bash
# Where the process ids of workers are kept, on each node of its own, for this run of this job.
tw_share_dir=/tmp/workers-$UID-$$-$RANDOM$RANDOM

# tw_run_share KEY GROUP JOB FIRST COUNT COMMAND [CORES GPUS CORE GPU]: runs on a node, starts its
# share of a group there, and ends with it, with the highest status of a worker. KEY tells apart
# nodes that share a /tmp. Workers are bound to CORES cores and GPUS GPUs each, beginning with those
# of index CORE and GPU, unless these words are left out.
# shellcheck disable=SC2317 # nodes call it
tw_run_share() {
    local tw_key=$1 tw_group=$2 tw_job=$3 tw_first=$4 tw_count=$5 tw_command=$6
    local tw_index tw_code tw_alive tw_worst=0 tw_running=()
    shift 6
    mkdir -m 700 "$tw_share_dir" 2>/dev/null
    [ -O "$tw_share_dir" ] || { echo "workers: can't write in $tw_share_dir" >&2; return 73; }
    trap 'tw_end_share "$tw_key"' TERM
    for ((tw_index = tw_first; tw_index < tw_first + tw_count; tw_index++)); do
        tw_run_worker "$tw_key.$tw_group.$tw_index" "$tw_group.j$tw_job.$tw_index" \
            "$tw_command" "$((tw_index - tw_first))" "$@" </dev/null &
        tw_running[tw_index]=$!
    done
    while [ "${#tw_running[@]}" -gt 0 ]; do
        tw_alive=$(jobs -rp)
        for tw_index in "${!tw_running[@]}"; do
            case " ${tw_alive//$'\n'/ } " in *" ${tw_running[tw_index]} "*) continue ;; esac
            wait "${tw_running[tw_index]}"
            tw_code=$?
            unset "tw_running[tw_index]"
            rm -f "$tw_share_dir/$tw_key.$tw_group.$tw_index"
            # 143: a worker that knows nothing better to do when it is asked to end.
            [ "$tw_code" != 0 ] || continue
            [ "$tw_code" != 143 ] || [ ! -e "$tw_share_dir/$tw_key-ending" ] || continue
            echo "workers: $tw_group.j$tw_job.$tw_index ended with status $tw_code" >&2
            [ "$tw_code" -le "$tw_worst" ] || tw_worst=$tw_code
        done
        [ "${#tw_running[@]}" = 0 ] || sleep 1
    done
    return "$tw_worst"
}

# Becomes one worker.
# shellcheck disable=SC2317 # nodes call it
tw_run_worker() {
    local tw_file=$1 tw_name=$2 tw_command=$3 tw_nth=$4 tw_node
    shift 4
    # First the id, then the look whether it is too late: tw_end_share does it the other way round.
    echo "$BASHPID" >"$tw_share_dir/$tw_file"
    [ ! -e "$tw_share_dir/${tw_file%%.*}-ending" ] || exit 0
    [ "$#" = 0 ] || tw_bind_worker "$tw_nth" "$@"
    trap - INT QUIT # which bash takes from what it starts in the background
    tw_node=$(uname -n)
    export WORKER_NAME=$tw_name.${tw_node%%.*}
    exec bash -c "$tw_command"
}

# tw_end_share KEY: runs on a node, asks the workers there to end. TERM goes to their main processes
# alone: what they have started, such as a process of Celery's pool, would die of it with its task.
# shellcheck disable=SC2317 # nodes call it
tw_end_share() {
    local tw_file tw_pid
    mkdir -m 700 "$tw_share_dir" 2>/dev/null
    [ -O "$tw_share_dir" ] || return 73
    : >"$tw_share_dir/$1-ending"
    for tw_file in "$tw_share_dir/$1".*; do
        read -r tw_pid 2>/dev/null <"$tw_file" || continue
        rm -f "$tw_file" # once is enough: some take a second TERM for a reason to hurry
        kill -TERM "$tw_pid" 2>/dev/null
    done
}

# Runs on a node where all workers have ended.
# shellcheck disable=SC2317 # nodes call it
tw_clear_share() { rm -rf "$tw_share_dir"; }

# tw_shares FUNCTION...: the text of bash -c that calls the first, with all it needs, on another
# node.
tw_shares() {
    printf 'tw_share_dir=%q\n' "$tw_share_dir"
    declare -f tw_run_share tw_run_worker tw_end_share tw_clear_share "$@"
    printf '%s "$@"\n' "$1"
}

# tw_before NODE COUNT...: how many workers are on nodes before that one.
# shellcheck disable=SC2317 # nodes call it
tw_before() {
    local tw_node=$1 tw_sum=0
    shift
    while [ "$((tw_node--))" -gt 0 ]; do tw_sum=$((tw_sum + $1)) && shift; done
    echo "$tw_sum"
}

# tw_deal 2x3,1x1 NODES: how many workers go on each node, into tw_counts: here 2 on three of them,
# and 1.
tw_deal() {
    local tw_part tw_node tw_total=0
    tw_counts=()
    for tw_part in ${1//,/ }; do
        for ((tw_node = 0; tw_node < ${tw_part#*x}; tw_node++)); do
            tw_counts+=("${tw_part%x*}")
            tw_total=$((tw_total + ${tw_part%x*}))
        done
    done
    [ "$2" != "${#tw_counts[@]}" ] || return 0
    if [ "${2:-0}" -lt 1 ]; then
        echo "workers: the job's nodes can't be told" >&2
        exit 69
    fi
    echo "workers: planned for ${#tw_counts[@]} nodes, here are $2:" \
        "$tw_total workers are dealt over them" >&2
    tw_counts=()
    for ((tw_node = 0; tw_node < $2; tw_node++)); do
        tw_counts[(tw_node + tw_dealt) % $2]=$((tw_total / $2 + (tw_node < tw_total % $2)))
    done
    tw_dealt=$((tw_dealt + tw_total)) # the next group goes on where this one ends
}
tw_dealt=0
