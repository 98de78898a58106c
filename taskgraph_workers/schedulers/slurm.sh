# shellcheck shell=bash
: "${SLURM_JOB_ID:?a script for Slurm has to be submitted, with sbatch}"
tw_job_id() { echo "$SLURM_JOB_ID"; }
tw_restarts() { echo "${SLURM_RESTART_COUNT:-0}"; }
tw_requeue_job() { scontrol requeue "$SLURM_JOB_ID"; }

# Forget what an outer step, or the shell that submitted this job, would tell every srun.
tw_forget_steps() {
    unset "${!SLURM_STEP@}" "${!SLURM_CPU_BIND@}" "${!SLURM_MEM@}" "${!SLURM_NTASKS@}" "${!SRUN_@}" \
        "${!SLURM_GPUS_PER_@}" "${!SLURM_GPU_BIND@}" SLURM_GPUS SLURM_GRES SLURM_NPROCS SLURM_EXACT \
        SLURM_OVERLAP SLURM_OVERCOMMIT SLURM_CPUS_PER_TASK SLURM_TRES_PER_TASK SLURM_DISTRIBUTION \
        SLURM_EXCLUSIVE SLURM_HINT SLURM_THREADS_PER_CORE SLURM_EXPORT_ENV SLURM_HOSTFILE
}
tw_forget_steps
mapfile -t tw_nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
tw_next_node=0
# Where workers have their process ids, on each node: for this run of this job, and no other.
tw_worker_folder=/tmp/workers-$UID-$SLURM_JOB_ID-$RANDOM$RANDOM
tw_holders=() # the sruns of workers that hold something, until those have it

# A worker may end, or fail, without the others of its step: --wait=0, --kill-on-bad-exit=0.
tw_worker_step() { srun --export=ALL --mpi=none --input=none --wait=0 --kill-on-bad-exit=0 "$@"; }

# How many workers go on each node, into tw_counts: 2x3,1x1 is 2 on each of three nodes, 1 on the
# next.
tw_deal() { # ON
    local tw_part tw_i tw_total=0
    tw_counts=()
    for tw_part in ${1//,/ }; do
        for ((tw_i = 0; tw_i < ${tw_part#*x}; tw_i++)); do
            tw_counts+=("${tw_part%x*}")
            tw_total=$((tw_total + ${tw_part%x*}))
        done
    done
    [ ${#tw_counts[@]} -ne ${#tw_nodes[@]} ] || return 0
    echo "planned for ${#tw_counts[@]} nodes, here are ${#tw_nodes[@]}:" \
        "dealing $tw_total workers over them" >&2
    tw_counts=("${tw_nodes[@]/*/0}")
    for ((tw_i = 0; tw_i < tw_total; tw_i++)); do
        tw_counts[tw_next_node]=$((tw_counts[tw_next_node] + 1))
        tw_next_node=$(((tw_next_node + 1) % ${#tw_nodes[@]}))
    done
}

# How many CPUs a core of a node is to Slurm: 2 where it counts threads.
tw_threads() { # NODE
    local tw_cpus tw_sockets tw_cores
    read -r tw_cpus tw_sockets tw_cores < <(sinfo --noheader --nodes="$1" --format='%c %X %Y')
    tw_cores=$((tw_sockets * tw_cores))
    echo $((tw_cpus > tw_cores && tw_cores > 0 ? tw_cpus / tw_cores : 1))
}

# Waits until each worker that holds something has it. Tasks of other workers could take its cores
# before, and srun would ask for them in vain for as long as there are tasks. Steps without their
# cores are not in the list, and those that are no srun's, such as 7.batch, have no number.
tw_await_holders() {
    local tw_limit=$((SECONDS + 60)) tw_index tw_there
    while [ -z "${tw_asked-}" ]; do
        for tw_index in "${!tw_holders[@]}"; do
            tw_is_running "${tw_holders[tw_index]}" || unset "tw_holders[tw_index]"
        done
        [ ${#tw_holders[@]} -gt 0 ] || return 0
        tw_there=$(squeue --noheader --steps --jobs="$SLURM_JOB_ID" --format=%i) || break
        [ "$(grep -c '\.[0-9][0-9]*$' <<<"$tw_there")" -lt ${#tw_holders[@]} ] || break
        if [ "$SECONDS" -ge "$tw_limit" ]; then
            tw_say "some workers still wait for what they hold: the others start all the same"
            break
        fi
        sleep 0.5
    done
    tw_holders=()
}

# Workers that hold cores and GPUs get them from srun, each its own; their groups come first. The
# others hold nothing, since their tasks bring an srun: --overlap lets it have the cores, -O more
# workers than cores be there. What such an srun says of GPUs and nodes goes before gres, task_nodes.
tw_start_group() { # NAME on=2x3,1x1 [cores=C gpus=G memory=MIB | gres=GRES task_nodes=N] COMMAND
    local tw_name=$1 tw_command=${*: -1} tw_on='' tw_cores='' tw_gpus=0 tw_memory='' tw_gres=''
    local tw_said tw_count tw_node tw_cpus tw_counts tw_first=0 tw_task_nodes=$SLURM_JOB_NUM_NODES
    for tw_said in "${@:2:$#-2}"; do
        local "tw_${tw_said%%=*}=${tw_said#*=}"
    done
    tw_deal "$tw_on"
    [ "$tw_cores" ] || tw_await_holders
    for tw_count in $(printf '%s\n' "${tw_counts[@]}" | sort -run); do
        [ "$tw_count" -gt 0 ] || continue
        local tw_here=() tw_has=(--overlap -O -c 1 --gres=none)
        for tw_node in "${!tw_nodes[@]}"; do
            [ "${tw_counts[tw_node]}" -ne "$tw_count" ] || tw_here+=("${tw_nodes[tw_node]}")
        done
        if [ "$tw_cores" ]; then
            tw_cpus=$((tw_cores * $(tw_threads "${tw_here[0]}")))
            tw_has=(--exact -c "$tw_cpus" --gres=none)
            [ "$tw_gpus" -eq 0 ] || tw_has=(--exact -c "$tw_cpus" "--gpus-per-task=$tw_gpus")
            [ -z "$tw_memory" ] || tw_has+=("--mem=$((tw_memory * tw_count))M")
        fi
        tw_worker_step "${tw_has[@]}" \
            --nodelist="$(IFS=,; echo "${tw_here[*]}")" -N ${#tw_here[@]} \
            --ntasks-per-node="$tw_count" -n $((tw_count * ${#tw_here[@]})) \
            bash -c "$(declare -f tw_forget_steps tw_forget_worker tw_run_worker)
                tw_run_worker \"\$@\"" \
            bash "$tw_worker_folder" "$tw_name" "$tw_first" \
            "${tw_cores:+holds}${tw_gres:+gres=$tw_gres}" "$tw_gpus" "$tw_task_nodes" "$tw_command" &
        tw_pids+=($!)
        [ -z "$tw_cores" ] || tw_holders+=($!)
        tw_first=$((tw_first + tw_count * ${#tw_here[@]}))
    done
}

# shellcheck disable=SC2317 # srun calls it
tw_forget_worker() { # FOLDER FILE
    rm -f "$2" "$2.ending"
    rmdir "$1" 2>/dev/null
}

# One worker, on its node. Its file tells tw_end_workers which process to ask; see there.
# shellcheck disable=SC2317 # srun calls it
tw_run_worker() { # FOLDER NAME FIRST-INDEX holds|gres=GRES|'' GPUS TASK-NODES COMMAND
    local tw_folder=$1-$SLURMD_NODENAME tw_gpus=$5 tw_command=$7 tw_pid tw_status tw_over=''
    local tw_file=$tw_folder/$SLURM_STEP_ID.$SLURM_PROCID
    export WORKER_NAME=$2.j$SLURM_JOB_ID.$(($3 + SLURM_PROCID)).$SLURMD_NODENAME
    tw_forget_steps
    export SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 # A worker is no rank of anything.
    case $4 in
    holds) [ "$tw_gpus" -gt 0 ] || [ -z "$SLURM_JOB_GPUS" ] || export CUDA_VISIBLE_DEVICES= ;;
    *)
        # To its tasks it is as in the script itself, save that each srun takes what it asks for,
        # where it asks for no nodes on as many as it was sized for. (srun 22.05 reads the second.)
        export SLURM_EXACT=1 SLURM_NNODES=$6 SLURM_JOB_NUM_NODES=$6
        export SLURM_TASKS_PER_NODE=$SLURM_JOB_CPUS_PER_NODE
        [ -z "$4" ] || export SLURM_GRES=${4#gres=}
        ;;
    esac
    trap : INT HUP USR1 USR2
    # Slurm then ends everything in this step, so there is nobody left to ask.
    trap 'tw_over=yes; tw_forget_worker "$tw_folder" "$tw_file"' TERM
    set -m # Without it the worker and all its tasks, in the background, would ignore an INT.
    bash -c "$tw_command" &
    tw_pid=$!
    set +m
    for _ in 1 2 3; do # The last worker of another group may be taking the folder away.
        (umask 077 && mkdir -p "$tw_folder" && [ -O "$tw_folder" ] && echo "$tw_pid" >"$tw_file") &&
            break
    done
    [ -z "$tw_over" ] || tw_forget_worker "$tw_folder" "$tw_file"
    [ "$tw_over" ] || [ -e "$tw_file" ] ||
        echo "$WORKER_NAME can't be ended warmly: $tw_folder isn't ours" >&2
    while :; do
        wait "$tw_pid" 2>/dev/null
        tw_status=$?
        kill -0 "$tw_pid" 2>/dev/null || break
    done
    # 143: a worker that knows nothing better to do when it is asked to end.
    [ "$tw_status" != 143 ] || [ ! -e "$tw_file.ending" ] || tw_status=0
    tw_forget_worker "$tw_folder" "$tw_file"
    return "$tw_status"
}

# TERM to the main process of each worker, and to nothing else: a task's own srun has to live on.
# (A TERM to srun leaves only KillWait, and scancel's reach every process.) On each node a step
# stays until the last worker has gone, since some may be starting still. Slurm may refuse a step, or
# be away: then it is asked again, until the script ends.
tw_end_workers() {
    {
        trap - TERM # Here it is ignored, and the script ends this by one.
        until tw_worker_step --overlap -O -c 1 --gres=none -N ${#tw_nodes[@]} -n ${#tw_nodes[@]} \
            --ntasks-per-node=1 \
            bash -c "$(declare -f tw_end_here); tw_end_here \"\$1\"" bash "$tw_worker_folder"
        do sleep 2; done
    } >/dev/null 2>&1 &
    tw_asking+=($!)
}

# shellcheck disable=SC2317 # srun calls it
tw_end_here() { # FOLDER
    local tw_folder=$1-$SLURMD_NODENAME tw_file tw_pid
    while [ "$SECONDS" -lt 30 ] || [ -d "$tw_folder" ]; do
        for tw_file in "$tw_folder"/*[0-9]; do
            [ -s "$tw_file" ] && read -r tw_pid <"$tw_file" && mv "$tw_file" "$tw_file.ending" &&
                kill -TERM "$tw_pid"
        done
        sleep 1
    done
}
