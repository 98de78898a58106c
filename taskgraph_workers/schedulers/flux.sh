# shellcheck shell=bash
# An id without its letter that isn't ASCII, as flux batch prints it with FLUX_F58_FORCE_ASCII=1.
# shellcheck disable=SC2317 # inside of a Slurm job its own is called
tw_job_id() { echo "${FLUX_ENCLOSING_ID/#$'\xc6\x92'/f}"; }

# Flux never puts a job back into its queue.
# shellcheck disable=SC2317 # inside of a Slurm job its own is called
tw_restarts() { echo 0; }
# shellcheck disable=SC2317 # inside of a Slurm job its own is called
tw_requeue_job() {
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
tw_start_group() { # NAME on=2x3,1x1 [cores=C gpus=G] COMMAND
    local tw_name=$1 tw_command=${*: -1} tw_on='' tw_cores=0 tw_gpus=0 tw_said tw_node tw_counts
    for tw_said in "${@:2:$#-2}"; do local "tw_${tw_said%%=*}=${tw_said#*=}"; done
    tw_deal "$tw_on" "$(flux getattr size)"
    if [ "$tw_cores" = 0 ]; then
        tw_share_out bash -c "$(tw_shares tw_flux_share tw_before)" tw_flux_share \
            "$tw_name" "$(tw_job_id)" "$tw_command" "${tw_counts[@]}" &
        tw_pids+=("$!")
        return
    fi
    for tw_node in "${!tw_counts[@]}"; do
        [ "${tw_counts[tw_node]}" -gt 0 ] || continue
        tw_hold "$tw_node" "${tw_counts[tw_node]}" "$tw_cores" "$tw_gpus" --job-name="$tw_name" \
            bash -c "$(tw_shares tw_flux_task)" tw_flux_task \
            "$tw_node" "$tw_name" "$(tw_job_id)" "$(tw_before "$tw_node" "${tw_counts[@]}")" \
            "$tw_command" &
        tw_pids+=("$!")
    done
}

# Signals of Flux's own (--signal, time limit, cancel) go to every process of the script.
tw_share_out() {
    trap '' USR1 USR2 ALRM HUP
    exec flux exec -n -r all -d "$PWD" "$@"
}

# Without exit-timeout=none the first worker to end takes the others with it, 30 seconds later.
tw_hold() {
    local tw_node=$1 tw_count=$2 tw_cores=$3 tw_gpus=$4
    shift 4
    trap '' USR1 USR2 ALRM HUP
    [ "$tw_gpus" = 0 ] || set -- -g "$tw_gpus" "$@"
    exec flux run -N 1 -n "$tw_count" -c "$tw_cores" --requires=rank:"$tw_node" --cwd="$PWD" \
        -o cpu-affinity=per-task -o gpu-affinity=per-task -o exit-timeout=none "$@" </dev/null
}

# A node that doesn't answer any more keeps nobody waiting.
tw_clear_nodes() {
    timeout -k 5 30 flux exec -n -r all -d / rm -rf "$tw_share_dir" >/dev/null 2>&1
}

# tw_flux_share GROUP JOB COMMAND COUNT...: on each node, by flux exec.
# shellcheck disable=SC2317 # nodes call it
tw_flux_share() {
    local tw_group=$1 tw_job=$2 tw_command=$3 tw_rank
    shift 3
    tw_rank=$(flux getattr rank) && [ "$tw_rank" -lt "$#" ] || return 69
    tw_run_share "$tw_rank" "$tw_group" "$tw_job" "$(tw_before "$tw_rank" "$@")" \
        "${@:tw_rank + 1:1}" "$tw_command"
}

# tw_flux_task NODE GROUP JOB FIRST COMMAND: one worker, by flux run.
# shellcheck disable=SC2317 # nodes call it
tw_flux_task() {
    tw_run_share "$1" "$2" "$3" "$(($4 + FLUX_TASK_RANK))" 1 "$5"
}

# On each node.
# shellcheck disable=SC2317 # nodes call it
tw_flux_end() { tw_end_share "$(flux getattr rank)"; }

# A signal through flux exec, or of flux job kill, would reach all that the workers have started.
tw_end_workers() {
    (trap '' TERM && tw_share_out bash -c "$(tw_shares tw_flux_end)" tw_flux_end) &
}
