# shellcheck shell=bash
: "${SLURM_JOB_ID:?a script for Slurm has to be submitted, with sbatch}"
job_id() { echo "$SLURM_JOB_ID"; }
restarts() { echo "${SLURM_RESTART_COUNT:-0}"; }
requeue_job() { scontrol requeue "$SLURM_JOB_ID"; }

# Forget what an outer step, or the shell that submitted this job, would tell every srun.
forget_steps() {
    unset "${!SLURM_STEP@}" "${!SLURM_CPU_BIND@}" "${!SLURM_MEM@}" "${!SLURM_NTASKS@}" "${!SRUN_@}" \
        "${!SLURM_GPUS_PER_@}" "${!SLURM_GPU_BIND@}" SLURM_GPUS SLURM_GRES SLURM_NPROCS SLURM_EXACT \
        SLURM_OVERLAP SLURM_OVERCOMMIT SLURM_CPUS_PER_TASK SLURM_TRES_PER_TASK SLURM_DISTRIBUTION \
        SLURM_EXCLUSIVE SLURM_HINT SLURM_THREADS_PER_CORE SLURM_EXPORT_ENV SLURM_HOSTFILE
}
forget_steps
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
next_node=0
# Where workers have their process ids, on each node: for this run of this job, and no other.
worker_folder=/tmp/workers-$UID-$SLURM_JOB_ID-$RANDOM$RANDOM
holders=() # the sruns of workers that hold something, until those have it

# A worker may end, or fail, without the others of its step: --wait=0, --kill-on-bad-exit=0.
worker_step() { srun --export=ALL --mpi=none --input=none --wait=0 --kill-on-bad-exit=0 "$@"; }

# How many workers go on each node, into counts: 2x3,1x1 is 2 on each of three nodes, 1 on the next.
deal() { # ON
    local part i total=0
    counts=()
    for part in ${1//,/ }; do
        for ((i = 0; i < ${part#*x}; i++)); do
            counts+=("${part%x*}")
            total=$((total + ${part%x*}))
        done
    done
    [ ${#counts[@]} -ne ${#nodes[@]} ] || return 0
    echo "planned for ${#counts[@]} nodes, here are ${#nodes[@]}: dealing $total workers over them" >&2
    counts=("${nodes[@]/*/0}")
    for ((i = 0; i < total; i++)); do
        counts[next_node]=$((counts[next_node] + 1))
        next_node=$(((next_node + 1) % ${#nodes[@]}))
    done
}

# How many CPUs a core of a node is to Slurm: 2 where it counts threads.
threads() { # NODE
    local cpus sockets cores
    read -r cpus sockets cores < <(sinfo --noheader --nodes="$1" --format='%c %X %Y')
    echo $((cpus > sockets * cores && sockets * cores > 0 ? cpus / (sockets * cores) : 1))
}

# Waits until each worker that holds something has it. Tasks of other workers could take its cores
# before, and srun would ask for them in vain for as long as there are tasks. Steps without their
# cores are not in the list, and those that are no srun's, such as 7.batch, have no number.
await_holders() {
    local limit=$((SECONDS + 60)) index there
    while [ -z "${asked-}" ]; do
        for index in "${!holders[@]}"; do
            is_running "${holders[index]}" || unset "holders[index]"
        done
        [ ${#holders[@]} -gt 0 ] || return 0
        there=$(squeue --noheader --steps --jobs="$SLURM_JOB_ID" --format=%i) || break
        [ "$(grep -c '\.[0-9][0-9]*$' <<<"$there")" -lt ${#holders[@]} ] || break
        if [ "$SECONDS" -ge "$limit" ]; then
            say "some workers still wait for what they hold: the others start all the same"
            break
        fi
        sleep 0.5
    done
    holders=()
}

# Workers that hold cores and GPUs get them from srun, each its own; their groups come first. The
# others hold nothing, since their tasks bring an srun: --overlap lets it have the cores, -O more
# workers than cores be there. What such an srun says of GPUs and nodes goes before gres, task_nodes.
start_group() { # NAME on=2x3,1x1 [cores=C gpus=G memory=MIB | gres=GRES task_nodes=N] COMMAND
    local name=$1 command=${*: -1} first=0 on='' cores='' gpus=0 memory='' gres=''
    local said count node cpus counts task_nodes=$SLURM_JOB_NUM_NODES
    for said in "${@:2:$#-2}"; do
        local "${said%%=*}=${said#*=}"
    done
    deal "$on"
    [ "$cores" ] || await_holders
    for count in $(printf '%s\n' "${counts[@]}" | sort -run); do
        [ "$count" -gt 0 ] || continue
        local here=() has=(--overlap -O -c 1 --gres=none)
        for node in "${!nodes[@]}"; do
            [ "${counts[node]}" -ne "$count" ] || here+=("${nodes[node]}")
        done
        if [ "$cores" ]; then
            cpus=$((cores * $(threads "${here[0]}")))
            has=(--exact -c "$cpus" --gres=none)
            [ "$gpus" -eq 0 ] || has=(--exact -c "$cpus" "--gpus-per-task=$gpus")
            [ -z "$memory" ] || has+=("--mem=$((memory * count))M")
        fi
        worker_step "${has[@]}" --nodelist="$(IFS=,; echo "${here[*]}")" -N ${#here[@]} \
            --ntasks-per-node="$count" -n $((count * ${#here[@]})) \
            bash -c "$(declare -f forget_steps forget_worker run_worker)
                run_worker \"\$@\"" \
            bash "$worker_folder" "$name" "$first" "${cores:+holds}${gres:+gres=$gres}" "$gpus" \
            "$task_nodes" "$command" &
        pids+=($!)
        [ -z "$cores" ] || holders+=($!)
        first=$((first + count * ${#here[@]}))
    done
}

# shellcheck disable=SC2317 # srun calls it
forget_worker() { # FOLDER FILE
    rm -f "$2" "$2.ending"
    rmdir "$1" 2>/dev/null
}

# One worker, on its node. Its file tells end_workers which process to ask; see there.
# shellcheck disable=SC2317 # srun calls it
run_worker() { # FOLDER NAME FIRST-INDEX holds|gres=GRES|'' GPUS TASK-NODES COMMAND
    local folder=$1-$SLURMD_NODENAME gpus=$5 command=$7 pid status over=''
    local file=$folder/$SLURM_STEP_ID.$SLURM_PROCID
    export WORKER_NAME=$2.j$SLURM_JOB_ID.$(($3 + SLURM_PROCID)).$SLURMD_NODENAME
    forget_steps
    export SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 # A worker is no rank of anything.
    case $4 in
    holds) [ "$gpus" -gt 0 ] || [ -z "$SLURM_JOB_GPUS" ] || export CUDA_VISIBLE_DEVICES= ;;
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
    trap 'over=yes; forget_worker "$folder" "$file"' TERM
    set -m # Without it the worker and all its tasks, in the background, would ignore an INT.
    bash -c "$command" &
    pid=$!
    set +m
    for _ in 1 2 3; do # The last worker of another group may be taking the folder away.
        (umask 077 && mkdir -p "$folder" && [ -O "$folder" ] && echo "$pid" >"$file") && break
    done
    [ -z "$over" ] || forget_worker "$folder" "$file"
    [ "$over" ] || [ -e "$file" ] || echo "$WORKER_NAME can't be ended warmly: $folder isn't ours" >&2
    while :; do
        wait "$pid" 2>/dev/null
        status=$?
        kill -0 "$pid" 2>/dev/null || break
    done
    # 143: a worker that knows nothing better to do when it is asked to end.
    [ "$status" != 143 ] || [ ! -e "$file.ending" ] || status=0
    forget_worker "$folder" "$file"
    return "$status"
}

# TERM to the main process of each worker, and to nothing else: a task's own srun has to live on.
# (A TERM to srun leaves only KillWait, and scancel's reach every process.) On each node a step
# stays until the last worker has gone, since some may be starting still. Slurm may refuse a step, or
# be away: then it is asked again, until the script ends.
end_workers() {
    {
        trap - TERM # Here it is ignored, and the script ends this by one.
        until worker_step --overlap -O -c 1 --gres=none -N ${#nodes[@]} -n ${#nodes[@]} \
            --ntasks-per-node=1 bash -c "$(declare -f end_here); end_here \"\$1\"" bash "$worker_folder"
        do sleep 2; done
    } >/dev/null 2>&1 &
    asking+=($!)
}

# shellcheck disable=SC2317 # srun calls it
end_here() { # FOLDER
    local folder=$1-$SLURMD_NODENAME file pid
    while [ "$SECONDS" -lt 30 ] || [ -d "$folder" ]; do
        for file in "$folder"/*[0-9]; do
            [ -s "$file" ] && read -r pid <"$file" && mv "$file" "$file.ending" && kill -TERM "$pid"
        done
        sleep 1
    done
}
