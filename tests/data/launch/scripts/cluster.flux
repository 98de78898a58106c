#!/bin/bash
#flux: --job-name=workers
#flux: --nodes=3
#flux: --time-limit=86400s
#flux: --queue=pdebug
#flux: --bank=wbronze
#flux: --output="workers-{{id}}.out"
#
# Made by taskgraph-workers 1.0
#   workers: 5 trainers, 3 helpers, of cluster lab (lab.yml)
#   nodes: 3 (packed); exclusive unknown, packed 3, certain 3, useful unknown
#   a node: 36 cores, 4 GPUs, 256GiB of memory (cluster lab)
# To end the workers once their tasks are done: touch workers-JOBID.stop, here.
#
# What workers expand themselves, and files of the machine's, are not for shellcheck:
# shellcheck disable=SC1091,SC2016

tw_folder=$PWD  # that of submission, before a line below may leave it

# --- The environment ---

module load cuda
. /opt/worker/bin/activate

# Options and traps that lines above have set, or BASH_ENV: from here on, bash is as it comes.
set +aefkmuCET +o pipefail +o posix
shopt -u nullglob failglob nocasematch extdebug
IFS=$' \t\n'
trap - ERR DEBUG RETURN

# --- When workers end ---

tw_deadline=84600 # seconds, of 86400 s
tw_margin=1800
tw_last_call=86385 # for workers of a job that will be requeued
tw_requeues=0 # at most
tw_every=5 # seconds from one look around to the next
# A command that ends well once the work is done.
tw_until=""

# --- flux ---

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

# --- What watches over the workers ---

tw_job=$(tw_job_id)
tw_stop_file=$tw_folder/workers-$tw_job.stop
tw_pids=() tw_groups=() # what workers were started with, and the group of each
tw_asking=()            # what tw_end_workers has started that does not end by itself
tw_status=0 tw_asked='' tw_ending='' tw_again='' tw_nap='' tw_work='' tw_next_look=0

tw_say() { printf '%(%F %T)T workers: %s\n' -1 "$*"; }

# tw_started GROUP: what tw_start_group has added to tw_pids is this group's.
tw_started() {
    while [ "${#tw_groups[@]}" -lt "${#tw_pids[@]}" ]; do tw_groups+=("$1"); done
}

tw_is_running() {
    case " $(jobs -rp | tr '\n' ' ') " in *" $1 "*) ;; *) return 1 ;; esac
}

# Takes note of all that have ended; fails once there are none left.
tw_collect() {
    local tw_index tw_running tw_code
    tw_running=" $(jobs -rp | tr '\n' ' ') "
    for tw_index in "${!tw_pids[@]}"; do
        case $tw_running in *" ${tw_pids[tw_index]} "*) continue ;; esac
        wait "${tw_pids[tw_index]}"
        tw_code=$?
        unset "tw_pids[tw_index]"
        # 143: a worker that knows nothing better to do when it is asked to end.
        if [ "$tw_code" = 0 ] || { [ "$tw_code" = 143 ] && [ -n "$tw_ending" ]; }; then continue; fi
        tw_say "a worker of ${tw_groups[tw_index]} ended with status $tw_code"
        [ "$tw_status" != 0 ] || tw_status=$tw_code
    done
    [ "${#tw_pids[@]}" -gt 0 ]
}

# The command $tw_until ends well once the work is done. If it fails, it is tried again after a
# minute.
tw_work_is_done() {
    local tw_code
    [ -n "$tw_until" ] || return 1
    if [ -z "$tw_work" ]; then
        [ "$SECONDS" -ge "$tw_next_look" ] || return 1
        bash -c "$tw_until" </dev/null &
        tw_work=$!
        return 1
    fi
    ! tw_is_running "$tw_work" || return 1
    wait "$tw_work"
    tw_code=$?
    tw_work=''
    [ "$tw_code" != 0 ] || return 0
    tw_say "what tells that the work is done failed with status $tw_code; next try in 60 s"
    tw_next_look=$((SECONDS + 60))
    return 1
}

tw_end() {
    tw_ending=$1
    tw_say "they are asked to end once their tasks are done: $tw_ending"
    # One more signal would end what asks them, before that has a trap of its own.
    trap '' "${tw_signals[@]}"
    tw_end_workers
    tw_heed
}

tw_time_is_up() {
    [ "$tw_deadline" -gt 0 ] && [ "$SECONDS" -ge "$tw_deadline" ]
}

# The job's time is up: its workers end, and the job goes back into the queue if it may.
tw_end_for_time() {
    local tw_count
    if [ "$tw_requeues" -gt 0 ]; then
        tw_count=$(tw_restarts)
        if [ "${tw_count:-0}" -lt "$tw_requeues" ]; then
            tw_again=yes
        else
            tw_say "not requeued: it was $tw_requeues times already"
        fi
    fi
    tw_end "the time limit is $tw_margin s ahead"
}

tw_look() {
    if [ -n "$tw_ending" ]; then
        return
    elif [ -n "$tw_asked" ]; then
        tw_end "got signal $tw_asked"
    elif [ -e "$tw_stop_file" ]; then
        tw_end "there is a file $tw_stop_file"
    elif tw_time_is_up; then
        tw_end_for_time
    elif tw_work_is_done; then
        tw_end "the work is done"
    fi
}

# Nothing is left running: only what this script has started is killed.
# shellcheck disable=SC2317 # the trap at EXIT calls it
tw_finish() {
    trap '' "${tw_signals[@]}"
    # shellcheck disable=SC2086 # what is empty is no word
    kill $tw_nap $tw_work "${tw_asking[@]}" "${tw_pids[@]}" 2>/dev/null
    rm -f "$tw_stop_file"
}

# Whoever ends the job sends one of these. They interrupt waiting, and nothing else.
tw_signals=(TERM INT HUP USR1 USR2 ALRM)
tw_heed() {
    local tw_signal
    for tw_signal in "${tw_signals[@]}"; do
        # shellcheck disable=SC2064 # now, since $tw_signal changes
        trap "tw_asked=$tw_signal" "$tw_signal"
    done
}
tw_heed
trap tw_finish EXIT

# --- The workers ---

TASKGRAPH_WORKERS_DETECT_1=$(cat <<'END_OF_TASKGRAPH_WORKERS_DETECT_1'
# What only this machine knows (taskgraph-workers)
tw_say() { printf 'taskgraph-workers: %s\n' "$1" >&2; }
tw_fail() { tw_say "$1"; exit 69; }
tw_nl='
'
tw_flat() { # the start of TEXT, on one line
  IFS=" $tw_nl"
  # shellcheck disable=SC2086
  set -- $1
  printf %.300s "$*"
}

# Sets tw_gpus to lines "index uuid MiB" (MiB "mig": split up by MIG).
tw_list() {
  tw_out=$(nvidia-smi --query-gpu=index,uuid,memory.total \
    --format=csv,noheader,nounits </dev/null) ||
    tw_fail "$tw_names: nvidia-smi failed ($?): '$(tw_flat "$tw_out")'. Does the driver\
 work on this machine, and was its container given a GPU?"
  tw_L=$(nvidia-smi -L </dev/null 2>/dev/null) || tw_L=
  IFS=$tw_nl
  for tw_line in $tw_out; do
    IFS=$(printf ', \t\r')
    # shellcheck disable=SC2086
    set -- $tw_line
    case ${1-}${2-} in
      '') continue ;;
      [0-9][GM][PI][UG]-?* | [0-9][0-9][GM][PI][UG]-?*) ;;
      *) tw_fail "$tw_names: nvidia-smi printed '$(tw_flat "$tw_line")', not a GPU" ;;
    esac
    set -- "$1" "$2" "${3:--}"
    tw_below=${tw_L#*"UUID: $2)"}
    [ "$tw_below" = "$tw_L" ] || case $2${tw_below%%"$tw_nl"GPU *} in
      GPU-*"UUID: MIG-"*) set -- "$1" "$2" mig ;;
    esac
    [ "${tw_same:=$3}" = "$3" ] || tw_mixed=y
    tw_gpus=$tw_gpus$1\ $2\ $3$tw_nl
    tw_ids=$tw_ids${tw_ids:+,}$1
    tw_all=$((tw_all + 1))
  done
  tw_smi="shows $tw_all GPUs"
}

# Sets tw_gpu for one INDEX, or a UUID or the beginning of just one.
tw_find() {
  tw_gpu=
  IFS=$tw_nl
  for tw_line in $tw_gpus; do
    case $1 in
      "${tw_line%% *}") tw_gpu=$tw_line ;;
      GPU-?* | MIG-?*)
        case $tw_line in *" $1"*) tw_gpu=$tw_gpu${tw_gpu:+ and }$tw_line ;; esac ;;
    esac
  done
  case $tw_smi:$1:$tw_L in
    :[0-9]: | :[0-9][0-9]: | :GPU-?*:) tw_gpu="$1 -" ;;
    :MIG-?*: | *:MIG-?*:*"UUID: $1"*) tw_gpu=${tw_gpu:-$1 mig} ;;
  esac
  case $tw_gpu in '' | *' and '*) return 1 ;; esac
}

# Counts the GPUs of a comma-separated LIST as programs will. CUDA cuts it at the first entry
# that is no GPU, has none at all if one is named twice, and shows a process one MIG device.
tw_count() {
  tw_ids=
  IFS=,
  for tw_e in $1; do
    tw_e=${tw_e# } tw_e=${tw_e% }
    tw_find "$tw_e" || { tw_say "$tw_from='$1' ends at '$tw_e', which is no GPU here"; break; }
    case $tw_seen in
      *" ${tw_gpu% *} "*) tw_fail "$tw_names: $tw_from='$1' repeats $tw_e" ;;
    esac
    tw_seen="$tw_seen ${tw_gpu% *} "
    case $tw_n:$tw_gpu in 0:*) ;; *mig) break ;; esac
    case $tw_from:$tw_e in
      SLURM*) tw_ids=$tw_ids${tw_ids:+ }$tw_e ;;
      *) tw_ids=$tw_ids${tw_ids:+ }$tw_n ;;
    esac
    tw_mibs="$tw_mibs ${tw_gpu##* }"
    tw_n=$((tw_n + 1))
    case $tw_gpu in *mig) break ;; esac
  done
}

# CUDA_VISIBLE_DEVICES rules. Slurm's lists count the GPUs of the node: they matter where a
# task is shown more GPUs than its own.
tw_look() { # NAMES
  set -f
  tw_ifs=$IFS tw_names=$1 tw_from=nvidia-smi tw_n=0 tw_all=0 tw_seen=' '
  tw_smi='' tw_L='' tw_gpus='' tw_ids='' tw_mibs='' tw_same='' tw_mixed=''
  if command -v nvidia-smi >/dev/null 2>&1; then tw_list; fi
  IFS=,
  # shellcheck disable=SC2086
  if [ "${SLURM_STEP_GPUS-}" ]; then set -- SLURM_STEP_GPUS $SLURM_STEP_GPUS
  else set -- SLURM_JOB_GPUS ${SLURM_JOB_GPUS-}; fi
  if [ "${CUDA_VISIBLE_DEVICES+y}" ]; then
    tw_from=CUDA_VISIBLE_DEVICES tw_ids=$CUDA_VISIBLE_DEVICES
  elif [ $# -gt 1 ] && [ $# -le "$tw_all" ]; then
    tw_from=$1
    shift
    tw_ids=$*
  fi
  tw_asked=$tw_ids
  tw_count "$tw_asked"
  tw_what="$tw_n of $tw_all GPUs, from $tw_from"
  [ "$tw_smi" ] ||
    tw_what="$tw_n GPUs, ${CUDA_VISIBLE_DEVICES+from $tw_from, }without nvidia-smi"
}
tw_put() { # NAME VALUE WHY FOUND AT-LEAST UNIT
  [ "$4" -ge "$5" ] || tw_fail "$1: $4 $6 found, at least $5 wanted ($3). Looked at\
 CUDA_VISIBLE_DEVICES (${CUDA_VISIBLE_DEVICES-not set}), SLURM_STEP_GPUS\
 (${SLURM_STEP_GPUS-not set}), SLURM_JOB_GPUS (${SLURM_JOB_GPUS-not set}), nvidia-smi\
 (${tw_smi:-not in PATH}). Choose another pool, give this machine or container its GPUs,\
 or give $1 a value in workers-config."
  tw_say "$1='$2' ($3)"
  export "$1=$2"
}
tw_look 'GPUS'
tw_put GPUS "$tw_ids" "$tw_what" "$tw_n" 1 GPUs
IFS=$tw_ifs
set +f
END_OF_TASKGRAPH_WORKERS_DETECT_1
)
export TASKGRAPH_WORKERS_DETECT_1

tw_start_group trainers on=2x2,1x1 cores=8 gpus=2 'export WORKSPACE=12000; eval "$TASKGRAPH_WORKERS_DETECT_1"; exec start-worker /etc/worker.yml'
tw_started trainers
tw_start_group helpers on=0x2,3x1 cores=1 gpus=0 'cd /scratch && exec start-helper --port "$PORT"'
tw_started helpers

tw_say "${#tw_pids[@]} processes started, job $tw_job, on $HOSTNAME"
while tw_collect; do
    tw_look
    # Whoever is not done when the time is up has to begin anew, in the next run of this job.
    if [ -n "$tw_again" ] && [ "$SECONDS" -ge "$tw_last_call" ]; then break; fi
    sleep "$tw_every" &
    tw_nap=$!
    wait "$tw_nap"
done
if [ "${#tw_pids[@]}" = 0 ] && declare -F tw_clear_nodes >/dev/null; then tw_clear_nodes; fi
tw_say "all ended, with status $tw_status"
if [ -n "$tw_again" ]; then
    tw_say "the job goes back into the queue"
    tw_requeue_job
    # shellcheck disable=SC2317 # inside of another scheduler it does not return
    tw_status=$?
fi
exit "$tw_status"
