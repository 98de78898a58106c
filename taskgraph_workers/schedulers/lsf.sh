# shellcheck shell=bash
tw_job_id() { echo "$LSB_JOBID"; }

# LSF does not count them.
tw_restarts() { cat "${tw_folder:-.}/workers-$LSB_JOBID.restarts" 2>/dev/null || echo 0; }
tw_requeue_job() {
    echo "$(($(tw_restarts) + 1))" >"${tw_folder:-.}/workers-$LSB_JOBID.restarts"
    brequeue "$LSB_JOBID"
}

# Host and slots in turn: node1 36 node2 36.
read -ra tw_hosts <<<"${LSB_MCPU_HOSTS-}"
tw_node_count() { echo $((${#tw_hosts[@]} / 2)); }
# Some versions give what they run to a shell, and plain words are the same to all.
tw_on_node() { exec blaunch "${tw_hosts[$1 * 2]}" /bin/bash "$(printf %q "$2")"; }

# Where there is jsrun, this script runs on a launch node, which is none of the job's nodes. A jsrun
# can't run inside of another: workers whose tasks bring it stay here.
if command -v jsrun >/dev/null; then
    tw_end_file=${tw_folder:-$PWD}/.workers-$LSB_JOBID.end
    rm -f "$tw_end_file" # of a run before this one

    tw_start_group() { # NAME on=2x3,1x1 [cores=C gpus=G] COMMAND
        local tw_name=$1 tw_command=${*: -1} tw_on='' tw_cores=0 tw_gpus=0
        local tw_said tw_part tw_most=0 tw_total=0
        for tw_said in "${@:2:$#-2}"; do local "tw_${tw_said%%=*}=${tw_said#*=}"; done
        for tw_part in ${tw_on//,/ }; do
            tw_total=$((tw_total + ${tw_part%x*} * ${tw_part#*x}))
            [ "${tw_part%x*}" -le "$tw_most" ] || tw_most=${tw_part%x*}
        done
        if [ "$tw_cores" = 0 ]; then
            tw_run_share 0 "$tw_name" "$(tw_job_id)" 0 "$tw_total" "$tw_command" &
        else
            jsrun -n "$tw_total" -r "$tw_most" -a 1 -c "$tw_cores" -g "$tw_gpus" \
                -b "packed:$tw_cores" \
                bash -c "$(tw_shares tw_jsrun_task)" tw_jsrun_task \
                "$tw_name" "$(tw_job_id)" "$tw_command" "$tw_end_file" </dev/null &
        fi
        tw_pids+=("$!")
    }

    # tw_jsrun_task GROUP JOB COMMAND FILE: one worker, which ends once that file is there.
    # shellcheck disable=SC2317 # nodes call it
    tw_jsrun_task() {
        local tw_rank=${JSM_NAMESPACE_RANK:-${PMIX_RANK:-0}} tw_watch tw_status
        tw_share_dir=$tw_share_dir-$tw_rank
        while ! [ -e "$4" ]; do sleep 2; done && tw_end_share "$tw_rank" &
        tw_watch=$!
        tw_run_share "$tw_rank" "$1" "$2" "$tw_rank" 1 "$3"
        tw_status=$?
        kill "$tw_watch" 2>/dev/null
        tw_clear_share
        return "$tw_status"
    }

    tw_end_workers() {
        : >"$tw_end_file"
        tw_end_share 0
    }
    tw_clear_nodes() { rm -rf "$tw_share_dir" "$tw_end_file"; }
fi
