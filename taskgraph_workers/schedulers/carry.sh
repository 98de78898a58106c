# shellcheck shell=bash
# Workers on nodes where no environment comes along and nothing is bound: everything is carried in a
# file, and the node binds its workers itself.
cores_taken=() gpus_taken=() # on each node

start_group() { # NAME on=2x3,1x1 [cores=C gpus=G] COMMAND
    local name=$1 command=${*: -1} on='' cores=0 gpus=0 said node count counts held first=0
    for said in "${@:2:$#-2}"; do local "${said%%=*}=${said#*=}"; done
    deal "$on" "$(node_count)"
    for node in "${!counts[@]}"; do
        count=${counts[node]} held=()
        [ "$count" -gt 0 ] || continue
        if [ "$cores" != 0 ]; then
            held=("$cores" "$gpus" "${cores_taken[node]:-0}" "${gpus_taken[node]:-0}")
            cores_taken[node]=$((${cores_taken[node]:-0} + count * cores))
            gpus_taken[node]=$((${gpus_taken[node]:-0} + count * gpus))
        fi
        at_node "$node" run_share \
            "$node" "$name" "$(job_id)" "$first" "$count" "$command" "${held[@]}" &
        pids+=("$!")
        first=$((first + count))
    done
}

end_workers() {
    local node
    for ((node = 0; node < $(node_count); node++)); do
        at_node "$node" end_share "$node" &
    done
}

# A node that doesn't answer any more keeps nobody waiting.
clear_nodes() {
    local node pid clearing=() limit=$((SECONDS + 30))
    for ((node = 0; node < $(node_count); node++)); do
        at_node "$node" clear_share >/dev/null 2>&1 &
        clearing+=("$!")
    done
    for pid in "${clearing[@]}"; do
        while is_running "$pid" && [ "$SECONDS" -lt "$limit" ]; do sleep 0.2; done
        kill "$pid" 2>/dev/null
    done
}

# at_node NODE FUNCTION WORD...: becomes what calls the function there.
at_node() {
    local node=$1 file
    shift
    trap '' USR1 USR2 ALRM HUP
    file=$(carry "$@") || exit 73
    on_node "$node" "$file" </dev/null
}

# carry FUNCTION WORD...: writes a file, which the nodes share and nobody else may read, that calls
# it with the environment that is here, and prints its name.
carry() {
    local file name
    file=$(mktemp "${folder:-$PWD}/.workers-XXXXXXXX") || return
    {
        printf 'rm -f %q\ncd %q || exit 66\n' "$file" "$PWD"
        for name in $(compgen -e); do
            case $name in
            *[!A-Za-z0-9_]*) continue ;; # a function
            CUDA_VISIBLE_DEVICES | TMPDIR | HOSTNAME | PWD | OLDPWD | SHLVL | _) continue ;;
            PBS_NODENUM | PBS_TASKNUM | PBS_VNODENUM | PBS_MOMPORT | LSF_PM_*) continue ;;
            SHELLOPTS | BASHOPTS) continue ;; # the node's own, and what can't be set
            esac
            printf 'export %s=%q\n' "$name" "${!name}"
        done
        printf 'set --'
        printf ' %q' "${@:2}"
        echo
        shares "$1" bind_worker
    } >"$file"
    echo "$file"
}

# bind_worker NTH CORES GPUS CORE GPU: this process, to its part of what the job may use here.
# shellcheck disable=SC2317 # nodes call it
bind_worker() {
    local nth=$1 cores=$2 gpus=$3 core=$4 gpu=$5 part from to listed=() allowed=()
    IFS=, read -ra listed <<<"${CUDA_VISIBLE_DEVICES-}"
    [ "${#listed[@]}" -gt 0 ] || mapfile -t listed < <(seq 0 $((gpu + (nth + 1) * gpus)))
    listed=("${listed[@]:gpu + nth * gpus:gpus}")
    if [ "${#listed[@]}" != "$gpus" ]; then
        echo "workers: too few GPUs on $(uname -n): ${CUDA_VISIBLE_DEVICES-}" >&2
        exit 69
    fi
    part=$(IFS=, && echo "${listed[*]}")
    export CUDA_VISIBLE_DEVICES=${part:--1}
    while read -r part; do
        from=${part%-*} to=${part#*-}
        while [ "$from" -le "$to" ]; do allowed+=("$((from++))"); done
    done < <(sed -n 's/^Cpus_allowed_list:\s*//p' /proc/self/status | tr , '\n')
    allowed=("${allowed[@]:core + nth * cores:cores}")
    # Where there are fewer than it takes (a site's ncpus may count threads), leave it to the kernel.
    [ "${#allowed[@]}" = "$cores" ] || return 0
    part=$(IFS=, && echo "${allowed[*]}")
    taskset -cp "$part" "$BASHPID" >/dev/null 2>&1 || true
}
