# shellcheck shell=bash
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
