#!/bin/bash
#flux: --job-name=Merlin
#flux: --nodes=2
#flux: --time-limit=7200s
#flux: --queue=pdebug
#flux: --bank=wbronze
#flux: --output="merlin_workers_{{id}}.out"
#
# Made by taskgraph-workers 1.0
#   workers: 4 simulators, 2 trainers, of demo (demo.yaml)
#   nodes: 2 (packed); exclusive 10, packed 2, certain 2, useful 2
#   a node: 36 cores, 4 GPUs (--node)
# To end the workers once their tasks are done: touch workers-JOBID.stop, here.
#
# What workers expand themselves, and files of the machine's, are not for shellcheck:
# shellcheck disable=SC1091,SC2016

folder=$PWD  # that of submission, before a line below may leave it

# --- The environment ---

export PATH=/opt/merlin/bin:"$PATH"

# Options and traps that lines above have set, or BASH_ENV: from here on, bash is as it comes.
set +aefkmuCET +o pipefail +o posix
shopt -u nullglob failglob nocasematch extdebug
IFS=$' \t\n'
trap - ERR DEBUG RETURN

# --- When workers end ---

deadline=6900 # seconds, of 7200 s
margin=300
last_call=7185 # for workers of a job that will be requeued
requeues=0 # at most
every=5 # seconds from one look around to the next
# A command that ends well once the work is done.
until="merlin monitor /home/user/demo.yaml --sleep 60"

# --- flux ---

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

# An id without its letter that isn't ASCII, as flux batch prints it with FLUX_F58_FORCE_ASCII=1.
# shellcheck disable=SC2317 # inside of a Slurm job its own is called
job_id() { echo "${FLUX_ENCLOSING_ID/#$'\xc6\x92'/f}"; }

# Flux never puts a job back into its queue.
# shellcheck disable=SC2317 # inside of a Slurm job its own is called
restarts() { echo 0; }
# shellcheck disable=SC2317 # inside of a Slurm job its own is called
requeue_job() {
    echo "workers: Flux has no way to put a job back into its queue" >&2
    return 69
}

# Where Flux was started by Slurm, and its brokers did not find one another, each is alone, and each
# runs this script.
if [ "${SLURM_NTASKS:-1}" -gt 1 ] && [ "$(flux getattr instance-level) $(flux getattr size)" = "0 1" ]
then
    echo "workers: the brokers of Flux did not find one another: try srun --mpi=pmi2" >&2
    exit 69
fi

# Those that hold cores, and GPUs, are tasks of a job on each of their nodes. The others have no part
# in Flux's books.
start_group() { # NAME on=2x3,1x1 [cores=C gpus=G] COMMAND
    local name=$1 command=${*: -1} on='' cores=0 gpus=0 said node counts
    for said in "${@:2:$#-2}"; do local "${said%%=*}=${said#*=}"; done
    deal "$on" "$(flux getattr size)"
    if [ "$cores" = 0 ]; then
        share_out bash -c "$(shares flux_share before)" flux_share \
            "$name" "$(job_id)" "$command" "${counts[@]}" &
        pids+=("$!")
        return
    fi
    for node in "${!counts[@]}"; do
        [ "${counts[node]}" -gt 0 ] || continue
        hold "$node" "${counts[node]}" "$cores" "$gpus" --job-name="$name" \
            bash -c "$(shares flux_task)" flux_task \
            "$node" "$name" "$(job_id)" "$(before "$node" "${counts[@]}")" "$command" &
        pids+=("$!")
    done
}

# Signals of Flux's own (--signal, time limit, cancel) go to every process of the script.
share_out() {
    trap '' USR1 USR2 ALRM HUP
    exec flux exec -n -r all -d "$PWD" "$@"
}

# Without exit-timeout=none the first worker to end takes the others with it, 30 seconds later.
hold() {
    local node=$1 count=$2 cores=$3 gpus=$4
    shift 4
    trap '' USR1 USR2 ALRM HUP
    [ "$gpus" = 0 ] || set -- -g "$gpus" "$@"
    exec flux run -N 1 -n "$count" -c "$cores" --requires=rank:"$node" --cwd="$PWD" \
        -o cpu-affinity=per-task -o gpu-affinity=per-task -o exit-timeout=none "$@" </dev/null
}

# A node that doesn't answer any more keeps nobody waiting.
clear_nodes() { timeout -k 5 30 flux exec -n -r all -d / rm -rf "$share_dir" >/dev/null 2>&1; }

# flux_share GROUP JOB COMMAND COUNT...: on each node, by flux exec.
# shellcheck disable=SC2317 # nodes call it
flux_share() {
    local group=$1 job=$2 command=$3 rank
    shift 3
    rank=$(flux getattr rank) && [ "$rank" -lt "$#" ] || return 69
    run_share "$rank" "$group" "$job" "$(before "$rank" "$@")" "${@:rank + 1:1}" "$command"
}

# flux_task NODE GROUP JOB FIRST COMMAND: one worker, by flux run.
# shellcheck disable=SC2317 # nodes call it
flux_task() {
    run_share "$1" "$2" "$3" "$(($4 + FLUX_TASK_RANK))" 1 "$5"
}

# On each node.
# shellcheck disable=SC2317 # nodes call it
flux_end() { end_share "$(flux getattr rank)"; }

# A signal through flux exec, or of flux job kill, would reach all that the workers have started.
end_workers() {
    (trap '' TERM && share_out bash -c "$(shares flux_end)" flux_end) &
}

# --- What watches over the workers ---

job=$(job_id)
stop_file=$folder/workers-$job.stop
pids=() groups=() # what workers were started with, and the group of each
asking=()         # what end_workers has started that does not end by itself
status=0 asked='' ending='' again='' nap='' work='' next_look=0

say() { printf '%(%F %T)T workers: %s\n' -1 "$*"; }

# started GROUP: what start_group has added to pids is this group's.
started() {
    while [ "${#groups[@]}" -lt "${#pids[@]}" ]; do groups+=("$1"); done
}

is_running() {
    case " $(jobs -rp | tr '\n' ' ') " in *" $1 "*) ;; *) return 1 ;; esac
}

# Takes note of all that have ended; fails once there are none left.
collect() {
    local index running code
    running=" $(jobs -rp | tr '\n' ' ') "
    for index in "${!pids[@]}"; do
        case $running in *" ${pids[index]} "*) continue ;; esac
        wait "${pids[index]}"
        code=$?
        unset "pids[index]"
        # 143: a worker that knows nothing better to do when it is asked to end.
        if [ "$code" = 0 ] || { [ "$code" = 143 ] && [ -n "$ending" ]; }; then continue; fi
        say "a worker of ${groups[index]} ended with status $code"
        [ "$status" != 0 ] || status=$code
    done
    [ "${#pids[@]}" -gt 0 ]
}

# The command $until ends well once the work is done. If it fails, it is tried again after a minute.
work_is_done() {
    local code
    [ -n "$until" ] || return 1
    if [ -z "$work" ]; then
        [ "$SECONDS" -ge "$next_look" ] || return 1
        bash -c "$until" </dev/null &
        work=$!
        return 1
    fi
    ! is_running "$work" || return 1
    wait "$work"
    code=$?
    work=''
    [ "$code" != 0 ] || return 0
    say "what tells that the work is done failed with status $code; next try in 60 s"
    next_look=$((SECONDS + 60))
    return 1
}

end() {
    ending=$1
    say "they are asked to end once their tasks are done: $ending"
    # One more signal would end what asks them, before that has a trap of its own.
    trap '' "${signals[@]}"
    end_workers
    heed
}

time_is_up() {
    [ "$deadline" -gt 0 ] && [ "$SECONDS" -ge "$deadline" ]
}

# The job's time is up: its workers end, and the job goes back into the queue if it may.
end_for_time() {
    local count
    if [ "$requeues" -gt 0 ]; then
        count=$(restarts)
        if [ "${count:-0}" -lt "$requeues" ]; then
            again=yes
        else
            say "not requeued: it was $requeues times already"
        fi
    fi
    end "the time limit is $margin s ahead"
}

look() {
    if [ -n "$ending" ]; then
        return
    elif [ -n "$asked" ]; then
        end "got signal $asked"
    elif [ -e "$stop_file" ]; then
        end "there is a file $stop_file"
    elif time_is_up; then
        end_for_time
    elif work_is_done; then
        end "the work is done"
    fi
}

# Nothing is left running: only what this script has started is killed.
# shellcheck disable=SC2317 # the trap at EXIT calls it
finish() {
    trap '' "${signals[@]}"
    # shellcheck disable=SC2086 # what is empty is no word
    kill $nap $work "${asking[@]}" "${pids[@]}" 2>/dev/null
    rm -f "$stop_file"
}

# Whoever ends the job sends one of these. They interrupt waiting, and nothing else.
signals=(TERM INT HUP USR1 USR2 ALRM)
heed() {
    local signal
    for signal in "${signals[@]}"; do
        # shellcheck disable=SC2064 # now, since $signal changes
        trap "asked=$signal" "$signal"
    done
}
heed
trap finish EXIT

# --- The workers ---

start_group simulators on=2x2 'exec celery -A merlin worker -l INFO --prefetch-multiplier 1 -Ofair --concurrency 1 -n "$WORKER_NAME" -Q "[merlin]_simulate"'
started simulators
start_group trainers on=1x2 'exec celery -A merlin worker -l INFO --prefetch-multiplier 1 -Ofair --concurrency 1 -n "$WORKER_NAME" -Q "[merlin]_train"'
started trainers

say "${#pids[@]} processes started, job $job, on $HOSTNAME"
while collect; do
    look
    # Whoever is not done when the time is up has to begin anew, in the next run of this job.
    if [ -n "$again" ] && [ "$SECONDS" -ge "$last_call" ]; then break; fi
    sleep "$every" &
    nap=$!
    wait "$nap"
done
if [ "${#pids[@]}" = 0 ] && declare -F clear_nodes >/dev/null; then clear_nodes; fi
say "all ended, with status $status"
if [ -n "$again" ]; then
    say "the job goes back into the queue"
    requeue_job
    # shellcheck disable=SC2317 # inside of another scheduler it does not return
    status=$?
fi
exit "$status"
