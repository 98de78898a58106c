# shellcheck shell=bash
# Workers on nodes where no environment comes along and nothing is bound: everything is carried in a
# file, and the node binds its workers itself.
tw_cores_taken=() tw_gpus_taken=() # on each node

tw_start_group() { # NAME on=2x3,1x1 [cores=C gpus=G] COMMAND
    local tw_name=$1 tw_command=${*: -1} tw_on='' tw_cores=0 tw_gpus=0 tw_first=0
    local tw_said tw_node tw_count tw_counts tw_held
    for tw_said in "${@:2:$#-2}"; do local "tw_${tw_said%%=*}=${tw_said#*=}"; done
    tw_deal "$tw_on" "$(tw_node_count)"
    for tw_node in "${!tw_counts[@]}"; do
        tw_count=${tw_counts[tw_node]} tw_held=()
        [ "$tw_count" -gt 0 ] || continue
        if [ "$tw_cores" != 0 ]; then
            tw_held=("$tw_cores" "$tw_gpus"
                "${tw_cores_taken[tw_node]:-0}" "${tw_gpus_taken[tw_node]:-0}")
            tw_cores_taken[tw_node]=$((${tw_cores_taken[tw_node]:-0} + tw_count * tw_cores))
            tw_gpus_taken[tw_node]=$((${tw_gpus_taken[tw_node]:-0} + tw_count * tw_gpus))
        fi
        tw_at_node "$tw_node" tw_run_share \
            "$tw_node" "$tw_name" "$(tw_job_id)" "$tw_first" "$tw_count" "$tw_command" \
            "${tw_held[@]}" &
        tw_pids+=("$!")
        tw_first=$((tw_first + tw_count))
    done
}

tw_end_workers() {
    local tw_node
    for ((tw_node = 0; tw_node < $(tw_node_count); tw_node++)); do
        tw_at_node "$tw_node" tw_end_share "$tw_node" &
    done
}

# A node that doesn't answer any more keeps nobody waiting.
tw_clear_nodes() {
    local tw_node tw_pid tw_clearing=() tw_limit=$((SECONDS + 30))
    for ((tw_node = 0; tw_node < $(tw_node_count); tw_node++)); do
        tw_at_node "$tw_node" tw_clear_share >/dev/null 2>&1 &
        tw_clearing+=("$!")
    done
    for tw_pid in "${tw_clearing[@]}"; do
        while tw_is_running "$tw_pid" && [ "$SECONDS" -lt "$tw_limit" ]; do sleep 0.2; done
        kill "$tw_pid" 2>/dev/null
    done
}

# tw_at_node NODE FUNCTION WORD...: becomes what calls the function there.
tw_at_node() {
    local tw_node=$1 tw_file
    shift
    trap '' USR1 USR2 ALRM HUP
    tw_file=$(tw_carry "$@") || exit 73
    tw_on_node "$tw_node" "$tw_file" </dev/null
}

# tw_carry FUNCTION WORD...: writes a file, which the nodes share and nobody else may read, that
# calls it with the environment that is here, and prints its name.
tw_carry() {
    local tw_file tw_name
    tw_file=$(mktemp "${tw_folder:-$PWD}/.workers-XXXXXXXX") || return
    {
        printf 'rm -f %q\ncd %q || exit 66\n' "$tw_file" "$PWD"
        for tw_name in $(compgen -e); do
            case $tw_name in
            *[!A-Za-z0-9_]*) continue ;; # a function
            CUDA_VISIBLE_DEVICES | TMPDIR | HOSTNAME | PWD | OLDPWD | SHLVL | _) continue ;;
            PBS_NODENUM | PBS_TASKNUM | PBS_VNODENUM | PBS_MOMPORT | LSF_PM_*) continue ;;
            SHELLOPTS | BASHOPTS) continue ;; # the node's own, and what can't be set
            esac
            printf 'export %s=%q\n' "$tw_name" "${!tw_name}"
        done
        printf 'set --'
        printf ' %q' "${@:2}"
        echo
        tw_shares "$1" tw_bind_worker
    } >"$tw_file"
    echo "$tw_file"
}

# tw_bind_worker NTH CORES GPUS CORE GPU: this process, to its part of what the job may use here.
# shellcheck disable=SC2317 # nodes call it
tw_bind_worker() {
    local tw_nth=$1 tw_cores=$2 tw_gpus=$3 tw_core=$4 tw_gpu=$5
    local tw_part tw_from tw_to tw_listed=() tw_allowed=()
    IFS=, read -ra tw_listed <<<"${CUDA_VISIBLE_DEVICES-}"
    [ "${#tw_listed[@]}" -gt 0 ] ||
        mapfile -t tw_listed < <(seq 0 $((tw_gpu + (tw_nth + 1) * tw_gpus)))
    tw_listed=("${tw_listed[@]:tw_gpu + tw_nth * tw_gpus:tw_gpus}")
    if [ "${#tw_listed[@]}" != "$tw_gpus" ]; then
        echo "workers: too few GPUs on $(uname -n): ${CUDA_VISIBLE_DEVICES-}" >&2
        exit 69
    fi
    tw_part=$(IFS=, && echo "${tw_listed[*]}")
    export CUDA_VISIBLE_DEVICES=${tw_part:--1}
    while read -r tw_part; do
        tw_from=${tw_part%-*} tw_to=${tw_part#*-}
        while [ "$tw_from" -le "$tw_to" ]; do tw_allowed+=("$((tw_from++))"); done
    done < <(sed -n 's/^Cpus_allowed_list:\s*//p' /proc/self/status | tr , '\n')
    tw_allowed=("${tw_allowed[@]:tw_core + tw_nth * tw_cores:tw_cores}")
    # Where there are fewer than it takes (a site's ncpus may count threads), leave it to the kernel.
    [ "${#tw_allowed[@]}" = "$tw_cores" ] || return 0
    tw_part=$(IFS=, && echo "${tw_allowed[*]}")
    taskset -cp "$tw_part" "$BASHPID" >/dev/null 2>&1 || true
}
