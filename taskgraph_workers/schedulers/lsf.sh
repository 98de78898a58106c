# shellcheck shell=bash
job_id() { echo "$LSB_JOBID"; }

# LSF does not count them.
restarts() { cat "${folder:-.}/workers-$LSB_JOBID.restarts" 2>/dev/null || echo 0; }
requeue_job() {
    echo "$(($(restarts) + 1))" >"${folder:-.}/workers-$LSB_JOBID.restarts"
    brequeue "$LSB_JOBID"
}

# Host and slots in turn: node1 36 node2 36.
read -ra hosts <<<"${LSB_MCPU_HOSTS-}"
node_count() { echo $((${#hosts[@]} / 2)); }
# Some versions give what they run to a shell, and plain words are the same to all.
on_node() { exec blaunch "${hosts[$1 * 2]}" /bin/bash "$(printf %q "$2")"; }

# Where there is jsrun, this script runs on a launch node, which is none of the job's nodes. A jsrun
# can't run inside of another: workers whose tasks bring it stay here.
if command -v jsrun >/dev/null; then
    end_file=${folder:-$PWD}/.workers-$LSB_JOBID.end
    rm -f "$end_file" # of a run before this one

    start_group() { # NAME on=2x3,1x1 [cores=C gpus=G] COMMAND
        local name=$1 command=${*: -1} on='' cores=0 gpus=0 said part most=0 total=0
        for said in "${@:2:$#-2}"; do local "${said%%=*}=${said#*=}"; done
        for part in ${on//,/ }; do
            total=$((total + ${part%x*} * ${part#*x}))
            [ "${part%x*}" -le "$most" ] || most=${part%x*}
        done
        if [ "$cores" = 0 ]; then
            run_share 0 "$name" "$(job_id)" 0 "$total" "$command" &
        else
            jsrun -n "$total" -r "$most" -a 1 -c "$cores" -g "$gpus" -b "packed:$cores" \
                bash -c "$(shares jsrun_task)" jsrun_task \
                "$name" "$(job_id)" "$command" "$end_file" </dev/null &
        fi
        pids+=("$!")
    }

    # jsrun_task GROUP JOB COMMAND FILE: one worker, which ends once that file is there.
    # shellcheck disable=SC2317 # nodes call it
    jsrun_task() {
        local rank=${JSM_NAMESPACE_RANK:-${PMIX_RANK:-0}} watch status
        share_dir=$share_dir-$rank
        while ! [ -e "$4" ]; do sleep 2; done && end_share "$rank" &
        watch=$!
        run_share "$rank" "$1" "$2" "$rank" 1 "$3"
        status=$?
        kill "$watch" 2>/dev/null
        clear_share
        return "$status"
    }

    end_workers() {
        : >"$end_file"
        end_share 0
    }
    clear_nodes() { rm -rf "$share_dir" "$end_file"; }
fi
