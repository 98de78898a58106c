# shellcheck shell=bash
#: bare
# Options and traps that lines above have set, or BASH_ENV: from here on, bash is as it comes.
set +aefkmuCET +o pipefail +o posix
shopt -u nullglob failglob nocasematch extdebug
IFS=$' \t\n'
trap - ERR DEBUG RETURN
#: inside
    # This is the job itself: it starts Flux on every node, and this script once more inside of it.
    tw_stop_file=$tw_folder/workers-$(tw_job_id).stop
    trap 'touch "$tw_stop_file"' TERM INT HUP USR1 USR2
    @launcher@ \
        flux start bash "$0" inside "$(tw_job_id)" "$(tw_restarts)" "$SECONDS" "$tw_folder" &
    tw_flux=$!
    while :; do
        wait "$tw_flux"
        tw_code=$?
        kill -0 "$tw_flux" 2>/dev/null || break # else only a trap has interrupted the waiting
    done
    rm -f "$tw_stop_file"
    if [ "$tw_code" = "$tw_come_again" ]; then
        tw_requeue_job
        tw_code=$?
    fi
    exit "$tw_code"
#: outside
# Inside of Flux the job is still that of the scheduler which started it.
tw_job=$2 tw_restarted=$3 SECONDS=$4 tw_folder=$5
tw_job_id() { echo "$tw_job"; }
tw_restarts() { echo "$tw_restarted"; }
tw_requeue_job() { exit "$tw_come_again"; }
#: watch
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
#: loop
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
